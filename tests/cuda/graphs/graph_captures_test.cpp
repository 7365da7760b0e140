// Workspaces in graph mode that are given a few sets of buffers in turn: GEMMs are captured once for each
// set, as long as that is kept. SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <algorithm>

#include "base/access.hpp"
#include "compile/compile.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "cuda/products.hpp"
#include "runtime/cuda/gemm_captures.hpp"

namespace fuse::test {
namespace {

constexpr std::ptrdiff_t affected = 3;  // nodes of chained(): two products and a copy

/// chained() in graph mode, and sets of buffers whose operands differ.
struct BufferSets {
  BufferSets(const Fakes& f, int sets) : fakes(f) {
    for (int set = 0; set < sets; ++set) {
      for (std::size_t slot = 0; slot < whole.views.size(); ++slot) {
        whole.buffers.push_back(executable.device().allocate(whole.prepared.bytes(slot)));
        views.push_back(whole.buffers.back().view());
        if (slot < y) upload(whole.buffers.back(), operand(set, slot));
      }
    }
  }
  static std::vector<float> operand(int set, std::size_t slot) {
    return numbers(3 * set + static_cast<int>(slot));
  }

  Status run(int set) {
    const auto first = views.begin() + set * static_cast<std::ptrdiff_t>(whole.views.size());
    whole.views.assign(first, first + static_cast<std::ptrdiff_t>(whole.views.size()));
    return again();
  }
  /// With the buffers of the last run.
  Status again() {
    // What an earlier run left there proves nothing.
    for (const std::size_t slot : {y, same}) std::fill_n(values(slot), n * n, -77.0f);
    const int before = fakes.call_count(), products_before = fakes.blas_call_count();
    const Status status = whole.run();
    calls = fakes.calls_since(before);
    products = fakes.blas_call_count() - products_before;
    return status;
  }
  float* values(std::size_t slot) { return static_cast<float*>(whole.views[slot].address); }
  /// What the last run made is of set `first`'s a, `second`'s b and `third`'s c.
  void check_values(int first, int second, int third) const {
    CHECK(download(whole.views[y]) ==
          product(product(operand(first, a), operand(second, b)), operand(third, c)));
    CHECK(download(whole.views[same]) == operand(first, a));
  }
  void check(int set) {
    run(set).throw_if_failed();
    check_values(set, set, set);
  }
  std::ptrdiff_t count(std::string_view call) const {
    return std::count_if(calls.begin(), calls.end(), [&](auto& one) { return one.starts_with(call); });
  }
  std::ptrdiff_t captures() const { return count("cuStreamBeginCapture"); }

  const Fakes& fakes;
  Executable executable = compile(chained(), Device::cuda());
  WholeRun whole{executable, {}, by_graph};
  std::size_t a = executable.slot("a"), b = executable.slot("b"), c = executable.slot("c");
  std::size_t y = executable.output_slot("y"), same = executable.output_slot("same");
  std::vector<BufferView> views;   // of all sets
  std::vector<std::string> calls;  // of the last run
  int products = 0;                // and its calls of the library
};

TEST_CASE("buffers that come back cost a call for each GEMM", "[cuda][graph]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    BufferSets sets(fakes, 2);
    for (const int set : {0, 1}) {
      sets.check(set);
      CHECK(sets.captures() == 2);
      CHECK(sets.products == 2);
    }
    for (int visit = 0; visit < 6; ++visit) {
      sets.check(visit % 2);
      CHECK(static_cast<std::ptrdiff_t>(of_run(sets.calls).size()) == affected + 5);
      CHECK(sets.count("cuGraphExecChildGraphNodeSetParams") == 2);
      CHECK(sets.count("cuGraphExecMemcpyNodeSetParams") == 1);
      CHECK(sets.count("cuGraphLaunch") == 1);
      CHECK(sets.products == 0);
    }
    // One buffer of the other set: the second product has a pair of addresses that is new to it.
    const BufferView own = std::exchange(sets.whole.views[sets.c], sets.views[sets.c]);
    sets.again().throw_if_failed();
    sets.check_values(1, 1, 0);
    CHECK(sets.captures() == 1);
    sets.whole.views[sets.c] = own;
    sets.again().throw_if_failed();
    sets.check_values(1, 1, 1);
    CHECK(of_run(sets.calls).size() == 6);
  }
  fakes.require_clean();
}

TEST_CASE("of a GEMM the captures used last are kept, and no more", "[cuda][graph]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    constexpr int most = runtime::GemmCaptures::most;
    BufferSets sets(fakes, most + 1);
    const int made = fakes.live("graph");
    for (int set = 0; set < most; ++set) {
      sets.check(set);
      CHECK(sets.captures() == 2);
      CHECK(fakes.live("graph") == made + 2 * (set + 1));
    }
    for (int set = 0; set < most; ++set) {
      sets.check(set);
      CHECK(sets.captures() == 0);
    }
    sets.check(0);     // 1 is the one used longest ago
    sets.check(most);  // and is replaced
    CHECK(sets.captures() == 2);
    CHECK(sets.count("cuGraphDestroy") == 2);
    for (const int set : {0, 2, most}) {
      sets.check(set);
      CHECK(sets.captures() == 0);
    }
    sets.check(1);
    CHECK(sets.captures() == 2);
    // One more set than are kept, in turn.
    for (int visit = 0; visit < 3 * (most + 1); ++visit) {
      sets.check(visit % (most + 1));
      CHECK(fakes.live("graph") == made + 2 * most);
    }
    CHECK(sets.captures() == 2);
    CHECK(sets.count("cuGraphDestroy") == 2);
  }
  fakes.require_clean();
}

TEST_CASE("each call of an update fails once, and the next run is right", "[cuda][graph]") {
  const bool come_back = GENERATE(false, true);
  INFO(come_back);
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    const int count = come_back ? 2 : runtime::GemmCaptures::most + 1;
    BufferSets sets(fakes, count);
    for (int set = 0; set < count; ++set) sets.check(set);
    int set = 0;
    sets.check(set);
    const int live = fakes.live("graph"), calls = static_cast<int>(sets.calls.size());
    CHECK(sets.captures() == (come_back ? 0 : 2));
    for (int nth = 1; nth <= calls; ++nth) {
      set = (set + 1) % count;
      fakes.fail_at("", nth, 999);
      const Status status = sets.run(set);
      REQUIRE(static_cast<int>(sets.calls.size()) >= nth);
      const std::string failed = sets.calls[static_cast<std::size_t>(nth) - 1];
      INFO("call " << nth << ": " << failed << ": " << status.message());
      const bool told = failed != "cuGraphDestroy";  // giving back
      CHECK(status.code() == (told ? ErrorCode::driver : ErrorCode::ok));
      CHECK(fakes.depth() == 0);
      const std::ptrdiff_t captured =
          sets.count("cuGraphExecChildGraphNodeSetParams") - (failed.starts_with("cuGraphExecChild") ? 1 : 0);
      sets.again().throw_if_failed();
      sets.check_values(set, set, set);
      // What was exchanged is not captured twice.
      CHECK(sets.captures() == (come_back ? 0 : 2 - captured));
      CHECK(fakes.live("graph") == live);
    }
  }
  fakes.require_clean();
}

TEST_CASE("a product that cannot be captured is not kept", "[cuda][graph]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    BufferSets sets(fakes, 2);
    sets.check(0);
    const int live = fakes.live("graph");
    for (const int nth : {1, 2}) {
      fakes.blas_fail_at("cublasLtMatmul", nth, 13);
      const Status status = sets.run(1);
      CHECK(contains(status.message(), "CUBLAS_STATUS_EXECUTION_FAILED (13)"));
      CHECK(fakes.live("graph") == live + nth - 1);
      CHECK(fakes.depth() == 0);
    }
    sets.check(1);
    CHECK(sets.captures() == 1);
    sets.check(0);
    CHECK(sets.captures() == 0);
  }
  fakes.require_clean();
}

constexpr const char* exchange = "cuGraphExecChildGraphNodeSetParams";

TEST_CASE("a graph that cannot be given other buffers is made anew, once", "[cuda][graph]") {
  const int code = GENERATE(910, 801, 1);  // drivers differ in what they call it
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    BufferSets sets(fakes, 4);
    sets.check(0);
    CHECK(sets.whole.workspace.mode_note().empty());
    fakes.fail_at(exchange, 2, code);  // of the second product
    sets.check(1);
    CHECK(sets.count("cuGraphInstantiateWithFlags") == 1);
    CHECK(sets.count("cuGraphLaunch") == 1);
    CHECK(sets.whole.workspace.mode() == ExecutionMode::graph);
    const std::string note = sets.whole.workspace.mode_note();
    CHECK(contains(note, "the driver did not give the CUDA graph other buffers: step "));
    CHECK(contains(note, std::string(exchange) + ": "));
    CHECK(contains(note, "(" + std::to_string(code) + ")"));
    CHECK(contains(note, "; the graph was made anew"));
    sets.again().throw_if_failed();
    CHECK(of_run(sets.calls).size() == 3);
    sets.check(2);  // which the driver takes
    CHECK(sets.count(exchange) == 2);
    CHECK(sets.count("cuGraphInstantiateWithFlags") == 0);
    fakes.fail_at(exchange, 1, code);
    sets.check(3);
    CHECK(sets.count("cuGraphInstantiateWithFlags") == 0);
    CHECK(sets.count("cuGraphLaunch") == 0);
    CHECK(sets.whole.workspace.mode() == ExecutionMode::streams);
    CHECK(contains(sets.whole.workspace.mode_note(),
                   "; runs go step by step on the caller's stream since: step "));
    for (const int set : {0, 1, 1}) {
      sets.check(set);
      CHECK(sets.count("cuGraph") == 0);
      CHECK(sets.products == 2);
    }
    sets.whole.workspace.measure();
    sets.check(2);
    CHECK(sets.whole.workspace.measured());
  }
  fakes.require_clean();
}

TEST_CASE("a graph that cannot be made anew leaves its runs to the stream", "[cuda][graph]") {
  const char* const call =
      GENERATE("cuGraphCreate", "cuGraphAddChildGraphNode", "cuGraphInstantiateWithFlags");
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    BufferSets sets(fakes, 2);
    sets.check(0);
    fakes.fail_at(exchange, 1, 910);
    fakes.fail_at(call, 1, 2);
    sets.check(1);
    CHECK(sets.count("cuGraphLaunch") == 0);
    CHECK(sets.whole.workspace.mode() == ExecutionMode::streams);
    const std::string note = sets.whole.workspace.mode_note();
    INFO(note);
    CHECK(
        contains(note, std::string("the graph cannot be made anew: ") + call + ": CUDA_ERROR_OUT_OF_MEMORY"));
    sets.check(0);
  }
  fakes.require_clean();
}

TEST_CASE("steps of several streams go on the caller's where a graph has ended", "[cuda][graph]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    Graph g("apart");
    const Tensor a = g.input("a", f32, {n, n}), b = g.input("b", f32, {n, n});
    g.output("y", matmul(matmul(a, b), matmul(b, a)));
    const Device device = Device::cuda();
    PipelineOptions apart;
    apart.merge_gemms = false;
    Compiled compiled = run_pipeline(ir_of(g), backend_of(device)->target(), apart);
    REQUIRE(compiled.plan.steps.size() == 3);
    compiled.streams = {.max_streams = 2, .stream = {0, 1, 0}};
    const Executable executable = runtime::make_executable(ir_of(g), std::move(compiled), device);
    WholeRun run(executable, {}, by_graph);
    REQUIRE(run.prepared.streams() == 2);
    std::vector<Buffer> others;
    for (int visit = 0; visit < 3; ++visit) {
      for (const char* const name : {"a", "b"}) {
        others.push_back(device.allocate(run.prepared.bytes(executable.slot(name))));
        upload(others.back(), numbers(visit + *name));
        run.views[executable.slot(name)] = others.back().view();
      }
      fakes.fail_at(exchange, 1, 910);
      run.run().throw_if_failed();
      const auto x = numbers(visit + 'a'), z = numbers(visit + 'b');
      CHECK(download(run.views[executable.output_slot("y")]) == product(product(x, z), product(z, x)));
    }
    CHECK(run.workspace.mode() == ExecutionMode::streams);
    const int before = fakes.call_count();
    run.run().throw_if_failed();
    for (const std::string& call : fakes.calls_since(before))
      CHECK_FALSE(call.starts_with("cuStreamWaitEvent"));
    run.workspace.measure();  // on streams of its own
    run.run().throw_if_failed();
    CHECK(fakes.count("cuStreamWaitEvent") > 0);
  }
  fakes.require_clean();
}

}  // namespace
}  // namespace fuse::test
#endif
