// Decisions as a text: written, read back, edited, and refused by line. SPDX-License-Identifier: Apache-2.0
#include "schedule/decisions/decisions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <sstream>

#include "base/access.hpp"
#include "compile/pipeline/experiments.hpp"
#include "decisions/decisions_support.hpp"
#include "fuzz/grow/generator.hpp"
#include "fuzz/grow/random.hpp"
#include "fuzz/told.hpp"
#include "kernel/kernel_support.hpp"
#include "schedule/nest/choices_text.hpp"
#include "schedule/nest/usual_nests.hpp"
#include "schedule/schedule_support.hpp"
#include "stitch/stitch_support.hpp"
#include "support/examples.hpp"
#include "support/sanitized.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::Choices;
using schedule::Decisions;
using schedule::KernelChoices;
using schedule::Level;

namespace {

/// Two softmaxes of one form and a sum of columns, too long for a horizontal kernel, in names that may be
/// chosen.
Graph model(const std::string& name, const std::string& dim) {
  Graph g(name);
  const Dim n = g.dim(dim, {.min = 1, .max = 1 << 20, .hint = 4096});
  const Tensor a = softmax(g.input(name + "_x", f32, {n, 1000}));
  g.output("a", a);
  g.output("b", softmax(matmul(a, g.parameter(name + "_w", f32, {1000, 1000}))));
  g.output("c", sum(g.input(name + "_z", f32, {n, 16384}), {0}));
  return g;
}

Compiled made(const Graph& g, const std::string& decisions, bool skip = false, const char* profile = "h200") {
  return compiled_with(g, decisions, skip, profile);
}

std::string text_of(const Compiled& compiled) { return decisions_text(compiled); }

std::string refused(const Graph& g, const std::string& decisions, const char* profile = "h200") {
  return thrown_by([&] { made(g, decisions, false, profile); });
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// The text without the lines that begin so.
std::string without(const std::string& text, const std::string& begin) {
  std::istringstream lines(text);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(begin)) kept += line + '\n';
  }
  return kept;
}

/// The first entry's text and line.
std::string first_kernel(const std::string& text) {
  const std::size_t at = text.find("kernel ");
  return text.substr(at, text.find('\n', at) - at);
}

int line_of(const std::string& text, const std::string& part) {
  const std::size_t at = text.find(part);
  return static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n')) + 1;
}

}  // namespace

TEST_CASE("decisions read back give the same plan and text", "[schedule]") {
  const Graph g = model("model", "B");
  const Compiled first = made(g, "");
  const std::string text = text_of(first);
  INFO(text);
  const Compiled second = made(g, text);
  CHECK(second.source.text() == first.source.text());
  CHECK(print(second.plan) == print(first.plan));
  CHECK(text_of(second) == text);
  // Softmaxes share an entry.
  CHECK(schedule::parse_decisions(text).kernels.size() == 2);
}

TEST_CASE("names do not matter to decisions", "[schedule]") {
  const std::string text = text_of(made(model("model", "B"), ""));
  const Graph other = model("other", "tokens");
  const Decisions a = schedule::parse_decisions(text),
                  b = schedule::parse_decisions(text_of(made(other, "")));
  REQUIRE(a.kernels.size() == b.kernels.size());
  for (std::size_t i = 0; i < a.kernels.size(); ++i) CHECK(a.kernels[i].key == b.kernels[i].key);
  CHECK(refused(other, text) == "no error");
  // Ranges and hints do.
  const auto key_of = [](const std::string& dim, const DimRange& range) {
    Graph g("one");
    g.output("a", softmax(g.input("x", f32, {g.dim(dim, range), 1000})));
    return schedule::parse_decisions(text_of(made(g, ""))).kernels.at(0).key;
  };
  const std::uint64_t key = key_of("B", {.min = 1, .max = 1 << 20, .hint = 4096});
  CHECK(key_of("N", {.min = 1, .max = 1 << 20, .hint = 4096}) == key);
  CHECK(key_of("B", {.min = 1, .max = 1 << 20, .hint = 4097}) != key);
  CHECK(key_of("B", {.min = 1, .max = 1 << 19, .hint = 4096}) != key);
  CHECK(key_of("B", {.min = 2, .max = 1 << 20, .hint = 4096}) != key);
}

TEST_CASE("an edited decision changes its kernels, or one of them", "[schedule]") {
  const Graph g = model("model", "B");
  const std::string text = text_of(made(g, "")), entry = first_kernel(text);
  const std::string key = entry.substr(0, entry.find('{'));
  const std::string all = with(text, entry, key + "{nest = r:grid c:serial c:warp3 c:lane32}");
  const auto blocks = [](const Compiled& compiled) {
    std::vector<int> result;
    for (const schedule::Schedule& each : compiled.schedules) result.push_back(each.choices.block_threads());
    return result;
  };
  CHECK(blocks(made(g, all))[0] == 96);
  CHECK(blocks(made(g, all))[1] == 96);
  const Compiled one = made(g, text + key + "1 {nest = r:grid c:serial c:warp3 c:lane32}\n");
  CHECK(blocks(one)[0] != 96);
  CHECK(blocks(one)[1] == 96);
  // What was made of an edited text says so, and can be read back.
  CHECK(text_of(one).find(key + "1 {nest = r:grid c:serial c:warp3 c:lane32}") != std::string::npos);
  CHECK(text_of(made(g, text_of(one))) == text_of(one));
}

TEST_CASE("a recorded answer goes before the cost's, for all or for one", "[schedule]") {
  const Graph g = model("model", "B");
  // Nor do kernels that stitching leaves apart become phases of one.
  const std::string text = with(without(without(text_of(made(g, "")), "horizontal "), "regional "),
                                "regional = yes", "regional = no");
  const Decisions decisions = schedule::parse_decisions(text);
  const auto stitch = std::find_if(
      decisions.answers.begin(), decisions.answers.end(),
      [](const schedule::Answer& answer) { return answer.question == ir::Question::stitch && answer.yes; });
  REQUIRE(stitch != decisions.answers.end());
  CHECK_FALSE(stitch->occurrence);  // both softmaxes
  const auto kernels = [&](const std::string& told) { return made(g, told, true).schedules.size(); };
  const std::string entry = fmt::format("stitch {:016x} yes", stitch->key);
  const std::string apart = with(text, entry, fmt::format("stitch {:016x} no", stitch->key));
  const std::size_t usual = kernels(text), all = kernels(apart);
  CHECK(all >= usual + 2);
  CHECK(kernels(text + fmt::format("stitch {:016x} 1 no\n", stitch->key)) == usual + (all - usual) / 2);
  // What is written of it then says so.
  CHECK(text_of(made(g, apart, true)).find(fmt::format("stitch {:016x} no", stitch->key)) !=
        std::string::npos);
  // A kernel that is no more has an entry that fits nothing.
  CHECK(refused(g, apart).find("has no kernel") != std::string::npos);
  CHECK(refused(g, text + "stitch 0123456789abcdef yes\n")
            .find("the compiler does not ask stitch 0123456789abcdef") != std::string::npos);
  CHECK(refused(g, text + fmt::format("stitch {:016x} 7 yes\n", stitch->key))
            .find(fmt::format("the compiler does not ask stitch {:016x} 7", stitch->key)) !=
        std::string::npos);
  CHECK(refused(g, text + entry + "\n").find("has two entries") != std::string::npos);
  CHECK(refused(g, with(text, entry, fmt::format("stitch {:016x} maybe", stitch->key)))
            .find("the answer to stitch is 'maybe'") != std::string::npos);
}

TEST_CASE("decisions bring the options that they were made with", "[schedule]") {
  const Graph g = model("model", "B");
  CompileOptions options;
  change_experiments(options).stitch = Stitch::mapping;
  options.max_inputs = 7;
  options.versions = 1;
  PipelineOptions how = pipeline_options(options);
  how.record = true;
  const Compiled first = run_pipeline(ir_of(g), h200_target(), how);
  const std::string text = text_of(first);
  CHECK(text.find("max_inputs = 7") != std::string::npos);
  CHECK(made(g, text).source.text() == first.source.text());
  CHECK(made(g, "").source.text() != first.source.text());
  const auto edited = [&](const std::string& from, const std::string& to) {
    return refused(g, with(text, from, to));
  };
  CHECK(edited("max_inputs = 7", "max_inputs = 0").find("line 3: max_inputs is '0'") != std::string::npos);
  CHECK(edited("cooperative = never", "cooperative = ever").find("line 3: cooperative is 'ever'") !=
        std::string::npos);
  CHECK(edited("cooperative = never", "cooperatives = never")
            .find("line 3: there is no option 'cooperatives'") != std::string::npos);
  CHECK(edited("cooperative = never", "streams = 4").find("stands there twice") != std::string::npos);
  CHECK(refused(g, text + "options {streams = 2}\n").find("there are options already") != std::string::npos);
}

TEST_CASE("decisions leave nothing to the costs: generated programs for a device of other speeds",
          "[schedule][fuzz]") {
  int differ = 0;
  for (std::uint64_t i = 0; i < test::fewer(std::uint64_t{120}); ++i) {
    const fuzz::Told told = fuzz::told_again(fuzz::generate(fuzz::seed_of(20261126, i)));
    INFO("--seed 20261126 --index " << i);
    CHECK(told.differs == "");
    differ += told.model_differs;
  }
  for (const char* name : {"bert_layer", "layernorm", "softmax"}) {
    fuzz::Case c;
    c.program.graph = ir_of(example(name));
    INFO(name);
    CHECK(fuzz::told_again(c).differs == "");
  }
  if (!sanitized()) CHECK(differ > 2);  // else the other speeds would change nothing
}

TEST_CASE("a text that is no decisions names its line, and what would be right", "[schedule]") {
  const Graph g = model("model", "B");
  const std::string text = text_of(made(g, "")), entry = first_kernel(text);
  const std::string key = entry.substr(0, entry.find('{'));
  const std::string line = "line " + std::to_string(line_of(text, entry)) + ": ";
  const auto edited = [&](const std::string& choices) {
    return refused(g, with(text, entry, key + choices));
  };
  const std::string nest = "nest = r:grid c:serial c:warp8 c:lane32";
  CHECK(edited("{" + nest + ", bloks = 96}").find(line + "there is no key 'bloks'") != std::string::npos);
  CHECK(edited("{mapping = row_block}").find(line + "there is no key 'mapping'") != std::string::npos);
  CHECK(edited("{nest = r:gird}").find(line + "nest is 'r:gird'") != std::string::npos);
  CHECK(edited("{nest = }").find(line + "nest is ''") != std::string::npos);
  CHECK(edited("{" + nest + ", register_cache = 256}").find(line + "register_cache is '256'") !=
        std::string::npos);
  CHECK(
      edited("{" + nest + ", register_cache = 99999999999}").find(line + "register_cache is '99999999999'") !=
      std::string::npos);
  CHECK(edited("{" + nest + ", register_cache = 8, register_cache = 8}")
            .find(line + "the key 'register_cache' stands there twice") != std::string::npos);
  CHECK(edited("{" + nest + ", packed = 1}").find(line + "packed has a value") != std::string::npos);
  CHECK(edited("{" + nest + ",, register_cache = 8}").find(line + "a key is missing") != std::string::npos);
  CHECK(edited("{register_cache = 8}").find(line + "there is no nest") != std::string::npos);
  CHECK(edited("{" + nest).find(line) != std::string::npos);
  CHECK(edited("{blocks = 2, phase {" + nest + "}, phase {" + nest + "}}")
            .find(line + "kernel " + key.substr(7, 16) +
                  " cannot run so: choices of 2 phases, and the kernel has 1") != std::string::npos);
  CHECK(edited("{block = 2, phase {" + nest + "}}").find(line + "there is no key 'block'") !=
        std::string::npos);
  // Nothing that a kernel can do.
  CHECK(edited("{nest = r:grid r:warp4 r:lane32}").find(line + "kernel") != std::string::npos);
  CHECK(edited("{" + nest + " c:vector8}").find("an access of this kernel has at most 4 elements") !=
        std::string::npos);
  CHECK(edited("{nest = r:grid c:serial c:grid3 c:warp8 c:lane32, blocks = 2}")
            .find("fewer blocks than parts") != std::string::npos);
  CHECK(edited("{nest = t:grid y:serial y:warp8 x:lane32}").find("cannot run so") != std::string::npos);
  CHECK(edited("{nest = r:grid c:serial c:warp64 c:lane32}").find("a block of 2048 threads") !=
        std::string::npos);
  CHECK(edited("{" + nest + ", registers = 15}").find(line + "registers is '15'") != std::string::npos);
  CHECK(edited("{nest = r:grid c:serial c:warp32 c:lane32, registers = 72}")
            .find("72 registers: h200 has 65536 for a block of 1024 threads, at most 64 each") !=
        std::string::npos);
  CHECK(edited("{nest = r:grid c:serial c:warp32 c:lane32, registers = 32}") == "no error");
  CHECK(edited("{" + nest + ", packed}").find("packed needs a register_cache") != std::string::npos);
  CHECK(edited("{" + nest + " c:vector4, shared_cache = 7}").find("which are no multiple of 4") !=
        std::string::npos);
  CHECK(edited("{" + nest + ", across}").find("across is for reductions over an outer dim") !=
        std::string::npos);
  CHECK(edited("{\x1b[31m = 4}").find("there is no key '\\x1b[31m'") != std::string::npos);
  // Cut off, of another version, of another target.
  CHECK(refused(g, text.substr(0, text.size() - 9)).find("line ") != std::string::npos);
  CHECK(refused(g, text.substr(0, 17)).find("the target is missing") != std::string::npos);
  CHECK(refused(g, with(text, "decisions 4", "decisions 3")).find("line 1: ") != std::string::npos);
  CHECK(refused(g, text, "a100").find("decisions: the file is for another device") != std::string::npos);
  CHECK(refused(g, text + "kernal x\n").find("'kernal' is no entry") != std::string::npos);
  CHECK(refused(g, text + "kernel 12 {" + nest + "}\n").find("'12' is no key") != std::string::npos);
  CHECK(refused(g, text + entry + "\n").find("has two entries") != std::string::npos);
  CHECK(refused(g, text + key + "-1 {" + nest + "}\n").find("'-1' is no number of a kernel") !=
        std::string::npos);
  CHECK(refused(g, "\n").find("line 1: '' does not begin a file of decisions") != std::string::npos);
  CHECK(refused(g, with(text, "arch", "}\n# {arch")).find("the target lacks the key 'arch'") !=
        std::string::npos);
  CHECK(refused(g, text + key + "2 {" + nest + "}\n").find("there is no number 2") != std::string::npos);
}

TEST_CASE("decisions that fit nothing are left out where that is asked for, and counted", "[schedule]") {
  const Graph g = model("model", "B");
  const std::string text = text_of(made(g, "")) +
                           "kernel 0123456789abcdef {nest = r:grid c:serial c:lane32}\n" +
                           "kernel 0123456789abcdef 3 {nest = r:grid r:lane32}\n";
  CHECK(refused(g, text).find("graph 'model' has no kernel 0123456789abcdef") != std::string::npos);
  const Compiled compiled = made(g, text, true);
  CHECK(compiled.unfit_decisions == 2);
  CHECK(compiled.source.text() == made(g, "").source.text());
}

TEST_CASE("what nobody computes is no question", "[schedule]") {
  Graph g("merged");
  const Tensor x = g.input("x", f32, {3, 8, 16}), w = g.parameter("w", f32, {16, 32});
  for (std::int64_t t = 0; t < 3; ++t)
    g.output("y" + std::to_string(t), tanh(matmul(reshape(slice(x, 0, t, t + 1), {8, 16}), w)));
  // The slices are operands of a merged GEMM, which reads them as one view of x.
  std::string text = without(text_of(made(g, "")), "kernel ");
  for (std::size_t at = text.find("store "); at != std::string::npos; at = text.find("store ", at + 1)) {
    const std::size_t end = text.find('\n', at);
    if (text.compare(end - 3, 3, " no") == 0) text.replace(end - 2, 2, "yes");
  }
  const Compiled stored = made(g, text, true);
  for (const schedule::Segment& segment : stored.partition.segments) CHECK(!segment.results.empty());
}

TEST_CASE("decisions of a scan, and of blocks that wait where none may", "[schedule]") {
  Graph scan("scan");
  scan.output("y", cumulative_sum(scan.input("x", f32, {50, 70}), 1));
  const std::string text = text_of(made(scan, "")), entry = first_kernel(text);
  const std::string key = entry.substr(0, entry.find('{'));
  CHECK(refused(scan, with(text, entry, key + "{nest = r:serial c:serial r:lane32}")) == "no error");
  CHECK(refused(scan, with(text, entry, key + "{nest = r:grid c:serial r:lane32 c:vector2}"))
            .find("cannot run so") != std::string::npos);
  const Graph g = model("model", "B");
  const std::string other = text_of(made(g, "")), softmax = first_kernel(other);
  CompileOptions options;
  options.decisions = with(
      other, softmax,
      softmax.substr(0, softmax.find('{')) + "{nest = r:grid c:serial c:grid2 c:warp8 c:lane32, blocks = 4}");
  const auto compile = [&] { run_pipeline(ir_of(g), h200_target(), pipeline_options(options)); };
  CHECK(thrown_by(compile) == "no error");
  options.grid_barriers = false;
  CHECK(thrown_by(compile).find("its blocks wait for each other, and grid barriers are off") !=
        std::string::npos);
}

TEST_CASE("choices that anybody writes are refused, or a kernel has them", "[schedule]") {
  // Values that are all in their ranges, drawn without regard to the kernel.
  fuzz::Random random(20261126);
  using namespace schedule;  // NOLINT
  const std::vector<std::vector<Split>> usual = {
      nest_of_lanes(128),          nest_of_lanes(256, 8, 4),    nest_of_blocks(256, 4),
      nest_of_shared_rows(256, 3), nest_of_columns(256),        nest_of_tiles(256),
      nest_of_elements(256),       nest_of_scans_by_warps(128), nest_of_scans_by_threads(256)};
  std::vector<Graph> graphs;
  graphs.push_back(model("model", "B"));
  Graph others("others");
  const Tensor x = others.input("x", bf16, {64, 256}), z = others.input("z", bf16, {256, 64});
  others.output("t", transpose(x, {1, 0}) + z);
  others.output("s", cumulative_sum(convert(z, f32), 1));
  others.output("m",
                layer_norm(convert(x, f32), others.input("g", f32, {256}), others.input("b", f32, {256})));
  graphs.push_back(std::move(others));
  std::map<std::string, Decisions> of_costs;
  int kept = 0, refusals = 0;
  for (int i = 0; i < 400; ++i) {
    const Graph& g = graphs[static_cast<std::size_t>(i % 2)];
    const char* profile = random.pick({"h200", "tiny3", "tiny2"});
    const Target target = target_profile(profile);
    Decisions& known = of_costs[ir_of(g).name + profile];
    if (known.kernels.empty()) known = decisions_of(made(g, "", false, profile), target);
    Decisions decisions = known;
    for (schedule::KernelDecision& entry : decisions.kernels) {
      for (Choices& phase : entry.choices.phases) {
        const std::function<void()> edits[] = {
            [&] { phase.splits = random.pick(usual); },
            [&] { phase.set('c', Level::warp, random.between(1, 32)); },
            [&] { phase.set('r', Level::warp, random.between(1, 32)); },
            [&] {
              phase.set('c', Level::grid, random.pick({1, 2, 3, 16, 65536}));
            },
            [&] {
              phase.set('c', Level::cluster, random.pick({1, 2, 3, 16}));
            },
            [&] { phase.splits = in_turns(phase.splits, static_cast<int>(random.between(1, 264))); },
            [&] {
              phase.blocks = static_cast<int>(random.pick({0, 1, 3, 6, 1 << 20}));
            },
            [&] {
              phase.set(random.pick({'r', 'c', 'x'}), Level::vector, 1 << random.between(0, 3));
            },
            [&] { phase.set('r', Level::lane, 1 << random.between(0, 5)); },
            [&] { phase.set('c', Level::lane, 1 << random.between(0, 5)); },
            [&] {
              phase.register_cache = static_cast<int>(random.pick({0, 8, 64, 255}));
            },
            [&] {
              phase.shared_cache = static_cast<int>(random.pick({64, 4096, 1 << 20}));
            },
            [&] {
              phase.registers = static_cast<int>(random.pick({0, 16, 64, 255}));
            },
            [&] { phase.online_softmax = !phase.online_softmax; },
            [&] { phase.across = !phase.across; },
            [&] { phase.packed = !phase.packed; }};
        for (std::int64_t n = random.between(1, 4); n > 0; --n)
          edits[random.between(0, std::ssize(edits) - 1)]();
      }
    }
    const std::string text = print(decisions);
    INFO(profile << "\n" << text);
    std::optional<Compiled> compiled;
    CHECK_NOTHROW(compiled = made(g, text, true, profile));
    if (!compiled) continue;
    kept += compiled->unfit_decisions < decisions.kernels.size();
    refusals += compiled->unfit_decisions > 0;
  }
  CHECK(kept > 50);
  CHECK(refusals > 50);
}
