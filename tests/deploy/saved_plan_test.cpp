// Saved plans: what was saved runs as what was compiled, on such a device and on no other.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>

#include "base/access.hpp"
#include "decisions/decisions_support.hpp"
#include "deploy/deploy_support.hpp"
#include "runtime/device/host_gemm.hpp"
#include "runtime/prepare/recorded_run.hpp"
#include "runtime/runtime_support.hpp"
#include "runtime/saved/plan_file.hpp"
#include "support/examples.hpp"
#include "support/failing_calls.hpp"
#include "support/stitch_graphs.hpp"
#include "support/variable.hpp"

namespace fuse::test {
namespace {

Device emulated(const std::string& profile, bool checked = false) {
  return Device::emulated({.profile = profile, .checked = checked, .optimization = 0});
}

/// Dims with a guard, a slice, a gather and a GEMM with its parameter.
Graph of_many_dims() {
  Graph g("many");
  const Dim B = g.dim("B", {.min = 1, .max = 64, .hint = 4}), N = g.dim("N", {.min = 1, .max = 512});
  g.assume(divisible(N, 4));
  const Tensor x = g.input("x", f32, {B, N});
  const Tensor w = g.parameter("w", f32, {8, 16});
  const auto scope = g.scope("head");
  const Tensor first = slice(x, 1, 0, 4);
  g.output("y", softmax(x));
  g.output("first", first * 2.0f);
  g.output("z", matmul(g.input("h", f32, {B, 8}), w) + 1.0f);
  g.output("picked", gather(x, g.input("which", i64, {3}), 0));
  return g;
}

/// Compiled, saved and loaded: the same bits, and the same said of it.
void check_saved(const Graph& graph, const Device& device, const DimValues& dims = {},
                 const CompileOptions& options = {}) {
  const Folder folder;
  const Executable compiled = compile(graph, device, options);
  compiled.save(folder / "plan");
  const Executable loaded = Executable::load(folder / "plan", device);
  INFO(compiled.explain());
  CHECK(run_on_drawn(loaded, dims) == run_on_drawn(compiled, dims));
  CHECK(loaded.explain() == compiled.explain());
  CHECK(loaded.source() == compiled.source());
  CHECK(loaded.prepare(dims).explain() == compiled.prepare(dims).explain());
  CHECK(loaded.prepare(dims).workspace_bytes() == compiled.prepare(dims).workspace_bytes());
  // What was loaded can be saved again: the same bytes.
  loaded.save(folder / "again");
  CHECK(contents_of(folder / "again") == contents_of(folder / "plan"));
  CHECK(folder.names() == std::vector<std::string>{"again", "plan"});
}

}  // namespace

TEST_CASE("saved plan: softmax, layernorm and the transformer block run as compiled", "[deploy][emulated]") {
  const Device device = emulated("h200");
  check_saved(example("softmax"), device, {{"B", 3}});
  check_saved(example("layernorm"), device, {{"B", 3}});
  check_saved(example("transformer_block"), device, {{"B", 1}});
}

TEST_CASE("saved plan: dims, guards, gathers, GEMMs with packed parameters", "[deploy][emulated]") {
  check_saved(of_many_dims(), emulated("a100", true), {{"B", 3}, {"N", 8}});
}

TEST_CASE("saved plan: kernels that spin, clusters, and their parts", "[deploy][emulated]") {
  check_saved(stitch::layer_norm_backward(f32, 64, 32), emulated("a100"));
  check_saved(stitch::group_norm(f32, 4, 65536), emulated("h200"));
}

TEST_CASE("saved plan: an output in its input's memory, no kernels at all", "[deploy][emulated]") {
  Graph donated("donated");
  const Tensor x = donated.input("x", f32, {8});
  donated.output("y", x + 1.0f, x);
  check_saved(donated, emulated("tiny3"));
  Graph gemm("gemm");
  gemm.output("y", matmul(gemm.input("a", f32, {4, 4}), gemm.input("b", f32, {4, 4})));
  check_saved(gemm, emulated("tiny3"));
}

TEST_CASE("saved plan: what decisions say of GEMMs and of the run", "[deploy][emulated][decisions]") {
  Graph g("products");
  for (const char* name : {"a", "b"})
    g.output(name, matmul(g.input(std::string("x") + name, f32, {4, 8}),
                          g.input(std::string("w") + name, f32, {8, name[0] == 'a' ? 4 : 3})));
  const Device device = emulated("tiny3");
  const Executable usual = compile(g, device);
  const Compiled& stages = stages_of(usual);
  const auto gemms = schedule::all_gemm_decisions_of(stages.graph, stages.partition);
  REQUIRE(gemms.size() == 2);
  const std::string run = "run {mode = graph, order = 1 0, streams = 2 7}\n";
  const auto options = [&](int algorithm) {
    CompileOptions told;
    told.decisions = no_decisions(backend_of(device)->target()) + run +
                     fmt::format("gemm {:016x} {{algorithm = {}}}\n", gemms[1].key, algorithm);
    return told;
  };
  check_saved(g, device, {}, options(0));
  const auto load = [&](int algorithm) {
    const Folder folder;
    compile(g, device, options(algorithm)).save(folder / "plan");
    return Executable::load(folder / "plan", device);
  };
  const Workspace workspace = load(0).prepare().workspace({ExecutionMode::automatic});
  CHECK("run {" + to_string(runtime::run_decision_of(workspace)) + "}\n" == run);
  if (runtime::openblas_used())
    CHECK(load(1).prepare().explain().find("on the host, by plain loops") != std::string::npos);
  const std::string wrong = error_of([&] { static_cast<void>(load(9).prepare()); });
  INFO(wrong);
  CHECK(wrong.find("decisions: line 4: there is no algorithm 9 for 4 x 3 matrices") != std::string::npos);
}

TEST_CASE("saved plan: errors of prepare are those of the compiled one", "[deploy][emulated]") {
  const Folder folder;
  const Device device = emulated("h200");
  const Executable compiled = compile(of_many_dims(), device);
  compiled.save(folder / "plan");
  const Executable loaded = Executable::load(folder / "plan", device);
  for (const DimValues& dims : {DimValues{}, DimValues{{"B", 3}}, DimValues{{"B", 3}, {"N", 6}},
                                DimValues{{"B", 100}, {"N", 8}}, DimValues{{"B", 3}, {"N", 8}, {"M", 1}}}) {
    const std::string expected = error_of([&] { static_cast<void>(compiled.prepare(dims)); });
    REQUIRE(expected != "no error");
    CHECK(error_of([&] { static_cast<void>(loaded.prepare(dims)); }) == expected);
  }
  CHECK(
      error_of([&] { static_cast<void>(stages_of(loaded)); }) ==
      "unsupported: a saved plan does not keep the stages of the compiler\n  hint: compile the graph again");
}

TEST_CASE("saved plan: the same graph and options are the same bytes", "[deploy][emulated]") {
  const Folder folder;
  for (const char* name : {"one", "two"}) compile(example("softmax"), emulated("h200")).save(folder / name);
  CHECK(contents_of(folder / "one") == contents_of(folder / "two"));
}

TEST_CASE("saved plan: another device is told field by field", "[deploy][emulated]") {
  const Folder folder;
  compile(example("softmax"), emulated("h200")).save(folder / "plan");
  const std::string other = error_of([&] { Executable::load(folder / "plan", emulated("a100", true)); });
  INFO(other);
  CHECK(other.starts_with("incompatible-version: " + (folder / "plan") + " has no plan for emulated a100"));
  for (const char* field : {"arch is sm_90, here sm_80", "multiprocessors is 132, here 108",
                            "blocks a cluster is 16, here 1", "checked is no, here yes"}) {
    INFO(field);
    CHECK(other.find(field) != std::string::npos);
  }
  CHECK(other.find("fuse is") == std::string::npos);  // what is the same is not told
  CHECK(error_of([&] {
          Executable::load(folder / "plan", Device::reference());
        }).find("device is emulated") != std::string::npos);
}

TEST_CASE("saved plan: one file for several devices", "[deploy][emulated]") {
  const Folder folder;
  const Graph graph = example("softmax");
  const std::vector<Device> devices = {emulated("h200"), emulated("tiny3"), emulated("tiny3", true)};
  std::vector<Executable> executables;
  for (const Device& device : devices) executables.push_back(compile(graph, device));
  save(folder / "plan", executables);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    INFO(devices[i].name());
    const Executable loaded = Executable::load(folder / "plan", devices[i]);
    CHECK(loaded.explain() == executables[i].explain());
    CHECK(run_on_drawn(loaded, {{"B", 2}}) == run_on_drawn(executables[i], {{"B", 2}}));
  }
  const std::string none = error_of([&] { Executable::load(folder / "plan", emulated("v100")); });
  INFO(none);
  CHECK(none.find("plan 0: ") != std::string::npos);
  CHECK(none.find("plan 2: ") != std::string::npos);
}

TEST_CASE("saved plan: what cannot be saved", "[deploy][emulated]") {
  const Folder folder;
  const Executable softmax = compile(example("softmax"), emulated("h200"));
  CHECK(error_of([&] {
          compile(example("softmax"), Device::reference()).save(folder / "plan");
        }).starts_with("unsupported: an executable of the reference device has no kernels to save"));
  const std::vector<Executable> twice = {softmax, softmax};
  CHECK(error_of([&] {
          save(folder / "plan", twice);
        }).starts_with("invalid-argument: two executables are for a device such as emulated h200"));
  const std::vector<Executable> two = {softmax, compile(example("layernorm"), emulated("tiny3"))};
  CHECK(error_of([&] { save(folder / "plan", two); }).find("have other inputs, parameters or outputs") !=
        std::string::npos);
  CHECK(error_of([&] { softmax.save(folder / "missing/plan"); }).starts_with("io: "));
  CHECK(error_of([&] { softmax.save(folder.path()); }).starts_with("io: "));
  CHECK(error_of([&] { Executable::load(folder / "nothing", emulated("h200")); }).starts_with("io: "));
  CHECK(folder.names().empty());
}

TEST_CASE("saved plan: where writing it fails, the one before stays", "[deploy][emulated]") {
  const Folder folder;
  const Executable before = compile(example("softmax"), emulated("h200"));
  const Executable after = compile(example("layernorm"), emulated("h200"));
  before.save(folder / "plan");
  const std::string kept = contents_of(folder / "plan");
  static_cast<void>(after.explain());  // what saving asks for is made
  std::vector<std::string> calls;
  {
    const FailingCalls none;
    after.save(folder / "other");
    calls = none.calls();
  }
  REQUIRE(calls.size() >= 3);
  for (std::size_t n = 0; n < calls.size(); ++n) {
    INFO(calls[n]);
    CHECK(error_of([&] {
            const FailingCalls failing(static_cast<int>(n) + 1);
            after.save(folder / "plan");
          }).starts_with("io: cannot write "));
    CHECK(contents_of(folder / "plan") == kept);
    CHECK(folder.names() == std::vector<std::string>{"other", "plan"});
  }
}

TEST_CASE("saved plan: names of dims that read like expressions", "[deploy][emulated]") {
  const Folder folder;
  Graph g("names");
  const Dim product = g.dim("B * T", {.min = 1, .max = 64}), b = g.dim("B", {.min = 1, .max = 64}),
            t = g.dim("T x", {.min = 1, .max = 64});
  g.output("y", exp(g.input("x", f32, {product, b, t})));
  g.output("z", exp(g.input("w", f32, {b * t})));
  const Device device = emulated("h200");
  compile(g, device).save(folder / "plan");
  const Prepared prepared =
      Executable::load(folder / "plan", device).prepare({{"B * T", 5}, {"B", 2}, {"T x", 3}});
  CHECK(prepared.shape(0) == std::vector<std::int64_t>{5, 2, 3});
  CHECK(prepared.shape(1) == std::vector<std::int64_t>{6});
}

TEST_CASE("saved plan: no file that it names is opened", "[deploy][emulated]") {
  const Folder folder;
  const Device device = emulated("h200");
  const Executable compiled = compile(example("softmax"), device);
  compiled.save(folder / "plan");
  const std::string bait = folder / "bait.cu";
  write_contents(bait, "never read");
  std::vector<runtime::SavedTarget> targets = runtime::parse_plan_file(contents_of(folder / "plan"), "plan");
  runtime::RunnableBuild runnable = std::move(runtime::runnable(targets.at(0), "plan").at(0));
  runtime::Program& program = runnable.program;
  program.signature.name = program.source_name = runnable.binary.name = runnable.binary.maker = bait;
  for (std::size_t i = 0; i < program.signature.slots.size(); ++i) {
    program.plan.values[i].name = program.signature.slots[i].name += bait;
  }
  for (runtime::Signature::Op& op : program.signature.ops) op.location.file = bait;
  for (runtime::StepOrigin& origin : program.origins) {
    origin.ops = origin.lines = origin.location.file = bait;
  }
  for (schedule::Step& step : program.plan.steps) step.name = bait;
  for (codegen::KernelInfo& kernel : runnable.binary.kernels) {
    for (codegen::OpLine& line : kernel.lines) line.location = bait;
  }
  const runtime::Provenance lies{.explanation = bait, .source = bait, .graph = bait, .options = bait};
  targets[0].builds[0] = runtime::saved_build(program, runnable.binary);
  targets[0].provenance = lies;
  write_contents(folder / "plan", runtime::plan_file(targets));

  const int watch = ::inotify_init1(IN_NONBLOCK);
  REQUIRE(watch >= 0);
  REQUIRE(::inotify_add_watch(watch, bait.c_str(), IN_OPEN | IN_MODIFY) >= 0);
  const Executable loaded = Executable::load(folder / "plan", device);
  CHECK(loaded.explain() == bait);
  CHECK(run_on_drawn(loaded, {{"B", 2}}).size() == 1);
  std::array<char, 4096> events{};
  CHECK(::read(watch, events.data(), events.size()) == -1);  // none
  CHECK(contents_of(bait) == "never read");
  CHECK(::read(watch, events.data(), events.size()) > 0);  // but this one was seen
  ::close(watch);
}

TEST_CASE("saved plan: loading one needs no compiler", "[deploy][emulated]") {
  const Folder folder;
  const Executable compiled = compile(example("layernorm"), emulated("h200"));
  compiled.save(folder / "plan");
  const Variable path("PATH", "/nonexistent"), chosen("FUSE_CXX", nullptr);
  const Device bare = emulated("h200");
  REQUIRE(error_of([&] { compile(example("softmax"), bare); }).starts_with("missing-compiler"));
  CHECK(run_on_drawn(Executable::load(folder / "plan", bare), {{"B", 4}}) ==
        run_on_drawn(compiled, {{"B", 4}}));
}

}  // namespace fuse::test
