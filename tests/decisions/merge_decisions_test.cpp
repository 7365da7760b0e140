// Decisions of several machines made into one, the same in any order. SPDX-License-Identifier: Apache-2.0
#include "schedule/decisions/merge_decisions.hpp"

#include <algorithm>
#include <functional>

#include "base/access.hpp"
#include "decisions/decisions_support.hpp"
#include "schedule/nest/choices_text.hpp"

namespace fuse::test {
namespace {

using schedule::Decisions;

/// Two kernels with a GEMM between them.
Graph two_kernels() {
  Graph g("two");
  const Tensor x = g.input("x", f32, {64, 32});
  g.output("y", exp(matmul(tanh(x), g.parameter("w", f32, {32, 32}))));
  return g;
}

/// What a machine found: the default, changed.
Decisions found(const std::function<void(Decisions&)>& change = {}) {
  static const Decisions usual = [] {
    const Compiled compiled = compiled_with(two_kernels(), "");
    Decisions all = decisions_of(compiled, h200_target());
    all.gemms = schedule::all_gemm_decisions_of(compiled.graph, compiled.partition);
    all.measured = schedule::Measured{.device = "a", .gemms = "blas 1", .default_us = 100, .tuned_us = 90};
    return all;
  }();
  Decisions result = usual;
  if (change) change(result);
  return result;
}

/// The same for every order of the files.
std::string merged(std::vector<Decisions> files) {
  std::sort(files.begin(), files.end(),
            [](const Decisions& a, const Decisions& b) { return print(a) < print(b); });
  const std::string text = print(schedule::merged(files));
  while (std::next_permutation(files.begin(), files.end(),
                               [](const Decisions& a, const Decisions& b) { return print(a) < print(b); }))
    CHECK(print(schedule::merged(files)) == text);
  return text;
}

std::function<void(Decisions&)> with_nest(std::size_t kernel, const std::string& nest) {
  return [=](Decisions& file) {
    file.kernels.at(kernel).choices = schedule::parse_choices("nest = " + nest, "the test");
  };
}

TEST_CASE("files that agree are merged into what they say", "[schedule][decisions]") {
  const Decisions merged_files = schedule::parse_decisions(merged({found(), found(), found()}));
  Decisions expected = found();
  expected.measured = schedule::Measured{.device = "a", .gemms = "blas 1"};  // the times are of one machine
  CHECK(print(merged_files) == print(expected));
  CHECK(compiled_with(two_kernels(), print(merged_files)).recorded_segments == 2);
}

TEST_CASE("of each kernel, most files decide, and the lesser text where as many do",
          "[schedule][decisions]") {
  const Decisions a = found(with_nest(0, "r:grid r:warp2 r:lane32")), b = found(),
                  c = found(with_nest(1, "r:grid r:warp4 r:lane32"));
  const auto nest = [](const std::string& text, std::size_t kernel) {
    return schedule::parse_decisions(text).kernels.at(kernel).choices.to_string();
  };
  const std::string usual = b.kernels.at(0).choices.to_string();  // nest = r:grid r:warp8 r:lane32
  CHECK(nest(merged({a, b, c}), 0) == usual);
  CHECK(nest(merged({a, b, c}), 1) == b.kernels.at(1).choices.to_string());
  CHECK(nest(merged({a, a, b}), 0) == "nest = r:grid r:warp2 r:lane32");
  CHECK(nest(merged({a, b}), 0) == std::min(std::string("nest = r:grid r:warp2 r:lane32"), usual));
  Decisions slow = a, fast = b;  // the later text gained more, and then the earlier one
  slow.measured->tuned_us = 99;
  fast.measured->tuned_us = 50;
  CHECK(nest(merged({slow, fast}), 0) == usual);
  std::swap(slow.measured, fast.measured);
  CHECK(nest(merged({slow, fast}), 0) == "nest = r:grid r:warp2 r:lane32");
}

TEST_CASE("most files decide how the graph is cut, then what gained most", "[schedule][decisions]") {
  const auto apart = [](double tuned_us) {
    return found([=](Decisions& file) {
      file.measured->tuned_us = tuned_us;
      file.measured->device = "b";
      file.run = schedule::RunDecision{.mode = ExecutionMode::graph};
    });
  };
  const std::string run = "run {mode = graph}";
  CHECK(merged({apart(95), apart(95), found()}).find(run) != std::string::npos);
  CHECK(merged({apart(50), found(), found()}).find(run) == std::string::npos);
  CHECK(merged({apart(80), found()}).find(run) != std::string::npos);
  CHECK(merged({apart(95), found()}).find(run) == std::string::npos);
  CHECK(merged({apart(95), apart(95), found()}).find("measured {device = b, gemms = blas 1}") !=
        std::string::npos);
}

TEST_CASE("steps of a run are those of one file's kernels", "[schedule][decisions]") {
  const auto running = [](Decisions file, std::uint32_t stream) {
    file.run =
        schedule::RunDecision{.mode = ExecutionMode::graph, .order = {0, 1, 2}, .streams = {0, 0, stream}};
    return file;
  };
  const Decisions usual = running(found(), 0), other = found(with_nest(0, "r:grid r:warp2 r:lane32"));
  CHECK(merged({usual, usual}).find("run {mode = graph, order = 0 1 2, streams = 0 0 0}") !=
        std::string::npos);
  const std::string text = merged({usual, usual, running(other, 1), running(other, 2), running(other, 3)});
  CHECK(text.find("run {mode = graph}") != std::string::npos);
  CHECK(text.find("order") == std::string::npos);
}

TEST_CASE("the line of runs is another question than the cut", "[schedule][decisions]") {
  const auto with = [](double tuned_us, bool apart, std::uint32_t stream) {
    return found([=](Decisions& file) {
      file.measured->tuned_us = tuned_us;
      file.run = schedule::RunDecision{
          .mode = ExecutionMode::streams, .order = {0, 1, 2}, .streams = {0, 0, stream}};
      if (apart) file.answers.push_back({.question = ir::Question::horizontal, .key = 7, .yes = false});
    });
  };
  // Two files of one cut that run in two ways outvote one of another cut, which gained more.
  const std::string text = merged({with(90, false, 0), with(80, false, 1), with(50, true, 2)});
  CHECK(text.find("horizontal 0000000000000007") == std::string::npos);
  CHECK(text.find("streams = 0 0 1") != std::string::npos);
  CHECK(merged({with(90, true, 0)}).find("horizontal 0000000000000007") != std::string::npos);
  // The steps stay where a file with this line has the kernels of the merged one, though it did not gain
  // most.
  Decisions fast = with(10, false, 1);
  fast.kernels.at(0).choices = schedule::parse_choices("nest = r:grid r:warp2 r:lane32", "the test");
  CHECK(merged({with(90, false, 1), with(90, false, 1), fast}).find("streams = 0 0 1") != std::string::npos);
}

TEST_CASE("what most files say is taken though the best one says nothing", "[schedule][decisions]") {
  const Decisions full = found();
  const Decisions part = found([](Decisions& file) {
    file.measured->tuned_us = 10;
    file.kernels.erase(file.kernels.begin());
    file.gemms.clear();
  });
  const Decisions all = schedule::parse_decisions(merged({full, full, part}));
  CHECK(all.kernels.size() == full.kernels.size());
  CHECK(all.gemms.size() == full.gemms.size());
}

TEST_CASE("algorithms of GEMMs are of one version of the library", "[schedule][decisions]") {
  const auto with = [](const std::string& library, std::uint32_t algorithm) {
    return found([=](Decisions& file) {
      file.measured->gemms = library;
      for (schedule::GemmDecision& each : file.gemms) each.algorithm = algorithm;
    });
  };
  // A file without a library has no vote.
  const std::string guarded = merged({with("blas 1", 2), with("", 7), with("", 7)});
  CHECK(guarded.find("gemms = blas 1") != std::string::npos);
  CHECK(schedule::parse_decisions(guarded).gemms.at(0).algorithm == 2);
  const std::string text =
      merged({with("blas 1", 2), with("blas 2", 3), with("blas 2", 4), with("blas 2", 4)});
  CHECK(text.find("gemms = blas 2") != std::string::npos);
  CHECK(schedule::parse_decisions(text).gemms.at(0).algorithm == 4);
}

TEST_CASE("what any file avoids is avoided, once", "[schedule][decisions]") {
  const auto avoiding = [](const std::string& nest) {
    return found([=](Decisions& file) {
      schedule::KernelDecision bad = file.kernels.at(0);
      bad.choices = schedule::parse_choices("nest = " + nest, "the test");
      file.avoided.push_back(bad);
    });
  };
  const Decisions all = schedule::parse_decisions(
      merged({avoiding("r:grid r:warp2 r:lane32"), avoiding("r:grid r:warp4 r:lane32"),
              avoiding("r:grid r:warp2 r:lane32"), found()}));
  CHECK(all.avoided.size() == 2);
  // No kernel takes what is avoided, whatever has the votes: the others decide, and the cost where none does.
  const Decisions other = found(with_nest(0, "r:grid r:warp16 r:lane32"));
  const std::string usual = found().kernels.at(0).choices.to_string();
  const Decisions bad = avoiding("r:grid r:warp8 r:lane32");
  REQUIRE(bad.avoided.at(0).choices.to_string() == usual);
  const Decisions left = schedule::parse_decisions(merged({found(), found(), bad, other}));
  CHECK(left.kernels.at(0).choices.to_string() == "nest = r:grid r:warp16 r:lane32");
  CHECK(schedule::parse_decisions(merged({found(), bad})).kernels.size() == 1);
  CHECK(compiled_with(two_kernels(), print(all)).unfit_decisions == 0);
}

TEST_CASE("files of two targets, and none, are refused", "[schedule][decisions]") {
  Decisions other = found();
  other.target = schedule::target_text(target_profile("a100"));
  const std::string said = refusal_of([&] { schedule::merged({found(), other}); });
  CHECK_THAT(said, Catch::Contains("invalid-argument: decisions for different targets: {arch = 80"));
  CHECK_THAT(said, Catch::Contains("} and {arch = 90"));
  CHECK(refusal_of([&] { schedule::merged({other, found()}); }) == said);
  CHECK(refusal_of([&] { schedule::merged({}); }) ==
        "invalid-argument: there are no decisions to merge\n  hint: name the files of each machine");
}

TEST_CASE("with what decisions were measured comes back, and wrong lines are refused",
          "[schedule][decisions]") {
  const Graph g = two_kernels();
  Decisions file = found();
  file.measured = schedule::Measured{
      .device = "GPU {1}, a = b", .gemms = "cuBLASLt 13", .default_us = 12.3456789, .tuned_us = 1e7};
  const std::string text = print(file);
  CHECK_THAT(text, Catch::Contains("measured {device = GPU  1   a   b, gemms = cuBLASLt 13, default_us = "
                                   "12.3457, tuned_us = 1e+07}\n"));
  CHECK(print(schedule::parse_decisions(text)) == text);
  const auto refused = [&](const std::string& line) {
    return refusal_of([&] { schedule::parse_decisions(no_decisions() + line + "\n"); });
  };
  const std::string usual =
      "\n  hint: it has device, gemms, default_us and tuned_us, as fusec tune writes it";
  CHECK(refused("measured {gemms = x}") == "parse: decisions: line 3: the device is missing" + usual);
  CHECK(refused("measured {device = =}") == "parse: decisions: line 3: the device is missing" + usual);
  CHECK(refused("measured {device = x, speed = 3}") ==
        "parse: decisions: line 3: there is no key 'speed'" + usual);
  for (const char* number : {"-3", "0", "nan", "inf", "3us", ""})
    CHECK(refused(std::string("measured {device = x, tuned_us = ") + number + "}") ==
          std::string("parse: decisions: line 3: tuned_us is '") + number +
              "'\n  hint: a number of microseconds above 0");
  CHECK(refused("measured {device = x}\nmeasured {device = x}") ==
        "parse: decisions: line 4: it is said already with what was measured\n  hint: it stands in line 3");
}

TEST_CASE("avoid is about all kernels of a key", "[schedule][decisions]") {
  const std::string line = "avoid 0123456789abcdef {nest = r:grid r:warp8 r:lane32}\n";
  CHECK(compiled_with(two_kernels(), no_decisions() + line).unfit_decisions == 0);  // of another cut
  CHECK(
      refusal(two_kernels(),
              no_decisions() + "avoid 0123456789abcdef 2 {nest = r:grid r:warp8 r:lane32}\n") ==
      "parse: decisions: line 3: avoid has a number\n  hint: it is about all kernels of the key: 'avoid KEY "
      "{...}'");
}

TEST_CASE("a number of an algorithm means what it meant in the version that it was measured with",
          "[schedule][decisions]") {
  const Graph g = two_kernels();
  Decisions file = found();
  file.gemms.at(0).algorithm = 2;
  file.measured->gemms = "blas 1";
  CompileOptions options;
  options.decisions = print(file);
  PipelineOptions how = pipeline_options(options);
  const auto compiled = [&](const std::string& library, bool skip) {
    how.gemm_library = library;
    how.skip_unfit_decisions = skip;
    return run_pipeline(ir_of(g), h200_target(), how);
  };
  CHECK(compiled("blas 1", false).unfit_decisions == 0);
  CHECK(compiled("", false).unfit_decisions == 0);  // it is not known
  CHECK(compiled("blas 2", true).unfit_decisions == 1);
  const std::string said = refusal_of([&] { compiled("blas 2", false); });
  CHECK_THAT(said, Catch::Contains(": algorithm 2 was measured with blas 1, and this machine has blas 2"));
  CHECK_THAT(said, Catch::Contains("invalid-argument: decisions: line "));
  file.gemms.at(0).algorithm = 0;  // what the library prefers, whichever it is
  options.decisions = print(file);
  how = pipeline_options(options);
  CHECK(compiled("blas 2", false).unfit_decisions == 0);
}

}  // namespace
}  // namespace fuse::test
