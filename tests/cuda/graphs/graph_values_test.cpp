// What a graph computes on the fake driver: GEMMs, copies and memsets, which it does to host memory, of the
// nodes that may start the last one first. SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <algorithm>

#include "cuda/products.hpp"

namespace fuse::test {
namespace {

TEST_CASE("a graph's GEMMs and copies follow the buffers", "[cuda][graph]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    const Executable executable = compile(chained(), Device::cuda());
    WholeRun run(executable, {}, by_graph);
    CHECK(run.prepared.gemms() == 2);
    const std::size_t a = executable.slot("a"), b = executable.slot("b"), c = executable.slot("c");
    const std::size_t y = executable.output_slot("y"), same = executable.output_slot("same");
    for (const std::size_t slot : {a, b, c}) upload(run.buffers[slot], numbers(static_cast<int>(slot)));
    const auto check = [&](int first, int second, int third) {
      run.run().throw_if_failed();
      CHECK(download(run.views[y]) == product(product(numbers(first), numbers(second)), numbers(third)));
      CHECK(download(run.views[same]) == numbers(first));
    };
    const auto in = [](std::size_t slot) { return static_cast<int>(slot); };
    check(in(a), in(b), in(c));
    // Other values in the same memory need no update.
    upload(run.buffers[b], numbers(41));
    int before = fakes.call_count();
    check(in(a), 41, in(c));
    CHECK(fakes.calls_since(before)[1].starts_with("cuGraphLaunch"));
    // Other memory: of a, which the first product and the copy read.
    const Buffer other = executable.device().allocate(run.prepared.bytes(a));
    upload(other, numbers(42));
    run.views[a] = other.view();
    before = fakes.call_count();
    const int products = fakes.blas_call_count();
    check(42, 41, in(c));
    std::vector<std::string> calls = fakes.calls_since(before);
    const auto count = [&](const char* call) {
      return std::count_if(calls.begin(), calls.end(), [&](auto& one) { return one.starts_with(call); });
    };
    CHECK(count("cuStreamBeginCapture") == 1);
    CHECK(count("cuStreamEndCapture") == 1);
    CHECK(count("cuGraphExecChildGraphNodeSetParams") == 1);
    CHECK(count("cuGraphDestroy") == 0);  // it is kept
    CHECK(fakes.blas_call_count() == products + 1);
    CHECK(count("cuGraphExecMemcpyNodeSetParams") == 1);
    CHECK(count("cuGraphLaunch") == 1);
    // Of y, which only the second product writes.
    const Buffer result = executable.device().allocate(run.prepared.bytes(y));
    run.views[y] = result.view();
    check(42, 41, in(c));
    CHECK(fakes.misuse() == 0);
  }
  fakes.require_clean();
}

TEST_CASE("a graph of a sum of nothing sets its output to zero", "[cuda][graph]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    Graph g("nothing");
    const Dim k = g.dim("k", {.min = 0, .max = 64});
    g.output("y", matmul(g.input("a", f32, {n, k}), g.input("b", f32, {k, n})));
    const Executable executable = compile(g, Device::cuda());
    WholeRun run(executable, {{"k", 0}}, by_graph);
    const std::size_t y = executable.output_slot("y");
    for (int again = 0; again < 2; ++again) {
      const Buffer result = executable.device().allocate(run.prepared.bytes(y));
      upload(result, numbers(1));
      run.views[y] = result.view();
      run.buffers.push_back(result);
      run.run().throw_if_failed();
      CHECK(download(run.views[y]) == std::vector<float>(n * n));
    }
  }
  fakes.require_clean();
}

TEST_CASE("a graph without work runs", "[cuda][graph]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    Graph g("empty");
    const Dim rows = g.dim("rows", {.min = 0, .max = 64});
    g.output("y", exp(g.input("x", f32, {rows})));
    WholeRun run(compile(g, Device::cuda()), {{"rows", 0}}, by_graph);
    CHECK(run.run());
    CHECK(fakes.find_call("cuGraphLaunch") == "cuGraphLaunch 0");
  }
  fakes.require_clean();
}

}  // namespace
}  // namespace fuse::test
#endif
