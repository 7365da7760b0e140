// Candidates of an exploration share compiled kernels: what changes one kernel compiles one.
// SPDX-License-Identifier: Apache-2.0
#include <fuse/fuse.hpp>
#include <map>
#include <string>

#include "base/access.hpp"
#include "compile/cache/compile_cache.hpp"
#include "compile/compile.hpp"
#include "compile/pipeline/experiments.hpp"
#include "io/io_support.hpp"
#include "runtime/device/toolchain.hpp"
#include "runtime/runtime_support.hpp"
#include "schedule/decisions/decisions.hpp"
#include "schedule/nest/choices_text.hpp"
#include "support/catch.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// Three kernels, since two GEMMs stand between them.
Graph three_kernels() {
  Graph g("three");
  const Tensor x = g.input("x", f32, {8, 64}), a = g.input("a", f32, {64, 64}),
               b = g.input("b", f32, {64, 64});
  g.output("y", softmax(matmul(tanh(matmul(exp(x * 0.1), a)), b), -1));
  return g;
}

runtime::CompileCache& cache_of(const Device& device) { return backend_of(device)->toolchain()->cache(); }

/// What was looked up and found so far.
std::pair<std::size_t, std::size_t> counts(const Device& device) {
  const auto all = cache_of(device).kernels.counts();
  return {all.hits + all.misses, all.hits};
}

/// What the default decides, with other loops for the kernel at that place of the file.
std::string decisions_with(const Graph& graph, const Device& device, std::size_t kernel,
                           const std::string& nest) {
  const Target target = backend_of(device)->target();
  schedule::Decisions decisions = decisions_of(run_pipeline(ir_of(graph), target, {.record = true}), target);
  decisions.kernels.at(kernel).choices = schedule::parse_choices(nest, "the test");
  return schedule::print(decisions);
}

std::vector<float> result(const Executable& executable) {
  Session session(executable);
  for (const char* name : {"x", "a", "b"}) {
    const std::size_t count = std::string(name) == "x" ? 8 * 64 : 64 * 64;
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>((i * 7 + name[0]) % 13) * 0.1f;
    session.set(name, bytes_of(values));
  }
  session.run();
  return values_of<float>(session.get("y"));
}

}  // namespace

TEST_CASE("a candidate compiles the kernels that no other had", "[explore][emulated][device]") {
  const Graph graph = three_kernels();
  const Device device = Device::emulated({.optimization = 0});
  const Executable usual = runtime::compile_candidate(graph, device, {});
  CHECK(counts(device) == std::pair<std::size_t, std::size_t>(3, 0));
  const std::vector<float> expected = result(usual);
  CHECK(result(compile(graph, device, {.cache = false})) == expected);

  const Executable same = runtime::compile_candidate(graph, device, {});
  CHECK(counts(device) == std::pair<std::size_t, std::size_t>(6, 3));
  CHECK(result(same) == expected);

  for (std::size_t changed = 0; changed < 3; ++changed) {
    INFO("kernel " << changed);
    const auto [looked_up, found] = counts(device);
    // Neither changes the order of a sum: each thread has its own elements, or the lanes of a warp a row.
    const std::string nest = changed == 2
                                 ? "nest = r:grid r:warp2 c:serial c:lane32 c:vector2, register_cache = 32"
                                 : "nest = r:grid r:warp2 r:lane32";
    const Executable other = runtime::compile_candidate(
        graph, device, {.decisions = decisions_with(graph, device, changed, nest)});
    CHECK(counts(device) == std::pair(looked_up + 3, found + 2));
    CHECK(other.source() != usual.source());
    CHECK(result(other) == expected);
  }
  CHECK(device.report().find("compiled kernels: 15 looked up, 9 found, 6 held") != std::string::npos);
}

TEST_CASE("candidates displace nothing that executables share", "[explore][emulated][device]") {
  const Graph graph = three_kernels();
  const Device device = Device::emulated({.optimization = 0});
  const Executable usual = compile(graph, device, {.cache = false});
  const auto texts = cache_of(device).modules.counts();
  const auto graphs = cache_of(device).stages.counts();
  runtime::compile_candidate(graph, device, {});
  CHECK(cache_of(device).modules.counts().held == texts.held);
  CHECK(cache_of(device).stages.counts().held == graphs.held);
  CHECK(counts(device).first == 3);  // of the candidate: others are not cut into kernels
}

TEST_CASE("kernels of a checked device stand at lines of their text, and are compiled with it",
          "[explore][emulated][device]") {
  const Graph graph = three_kernels();
  const Device device = Device::emulated({.checked = true, .optimization = 0});
  const Executable candidate = runtime::compile_candidate(graph, device, {});
  CHECK(counts(device).first == 0);
  CHECK(result(candidate) == result(compile(graph, device, {.cache = false})));
}

TEST_CASE("a candidate of the cpu device runs kernels of two batches", "[explore][cpu][device]") {
  const Graph graph = three_kernels();
  const Device device = Device::cpu({.threads = 1});
  const std::vector<float> expected = result(runtime::compile_candidate(graph, device, {}));
  const auto [looked_up, found] = counts(device);
  REQUIRE(found == 0);
  const Executable other =
      runtime::compile_candidate(graph, device, {.experiments = experiments({.layers = 1})});
  const auto [again, known] = counts(device);
  CHECK(again > looked_up);
  CHECK(known > 0);
  CHECK(result(other) == expected);
}

TEST_CASE("a candidate that is saved names its kernels in images of several batches",
          "[explore][emulated][device]") {
  const Graph graph = three_kernels();
  const Device device = Device::emulated({.optimization = 0});
  const std::vector<float> expected = result(runtime::compile_candidate(graph, device, {}));
  const Executable other = runtime::compile_candidate(
      graph, device, {.decisions = decisions_with(graph, device, 1, "nest = r:grid r:warp2 r:lane32")});
  const TemporaryDirectory folder;
  const std::string path = folder / "other.plan";
  other.save(path);
  CHECK(result(Executable::load(path, device)) == expected);
}
