// Workspaces in graph mode on the fake driver: what their graphs hold, which calls a run makes, and what a
// failing one does. SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <sstream>

#include "base/access.hpp"
#include "compile/pipeline/experiments.hpp"
#include "cuda/fake_device.hpp"
#include "cuda/step_accesses.hpp"
#include "runtime/cuda/gemm_captures.hpp"
#include "support/examples.hpp"

namespace fuse::test {
namespace {

std::vector<std::string> nodes(const Fakes& fakes) {
  std::vector<std::string> all;
  for (int i = 0; i < fakes.graph_nodes(); ++i) all.emplace_back(fakes.graph_node(i));
  return all;
}

std::string hex(const void* address) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), " 8:%zx", reinterpret_cast<std::size_t>(address));
  return text.data();
}

std::size_t steps_with(const Prepared::Impl& p, std::size_t slot) {
  std::size_t count = 0;
  for (const runtime::ReadyStep& step : p.steps) {
    const std::vector<Access> touched = accesses(p, step);
    count += std::any_of(touched.begin(), touched.end(), [&](const Access& access) {
      return access.location.slot == static_cast<std::int32_t>(slot);
    });
  }
  return count;
}

TEST_CASE("a run in graph mode with the same buffers is one driver call", "[cuda][graph]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    const Executable executable =
        compile(branches(), Device::cuda(), {.experiments = experiments({.layers = 2})});
    WholeRun run(executable, {}, by_graph);
    CHECK(run.workspace.mode() == ExecutionMode::graph);
    REQUIRE(run.prepared.streams() > 1);
    run.run().throw_if_failed();
    for (int again = 0; again < 3; ++again) {
      const int before = fakes.call_count();
      run.run().throw_if_failed();
      CHECK(of_run(fakes.calls_since(before)) ==
            std::vector<std::string>{"cuCtxPushCurrent",
                                     "cuGraphLaunch " + std::to_string(run.prepared.launches()),
                                     "cuCtxPopCurrent"});
    }
    CHECK(fakes.count("cuLaunchKernel") == 0);
    CHECK(fakes.count("cuStreamWaitEvent") == 0);
    CHECK(fakes.depth() == 0);
  }
  fakes.require_clean();
}

TEST_CASE("another buffer costs a call for each node that has it", "[cuda][graph]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    const Executable executable = compile(branches(), Device::cuda());
    WholeRun run(executable, {}, by_graph);
    run.run().throw_if_failed();
    for (std::size_t slot = 0; slot < run.views.size(); ++slot) {
      const std::size_t affected = steps_with(*impl_of(run.workspace)->prepared, slot);
      REQUIRE(affected > 0);
      const Buffer other = executable.device().allocate(run.prepared.bytes(slot));
      const BufferView first = std::exchange(run.views[slot], other.view());
      const int before = fakes.call_count();
      run.run().throw_if_failed();
      const std::vector<std::string> calls = of_run(fakes.calls_since(before));
      CHECK(calls.size() == affected + 5);
      CHECK(std::count(calls.begin(), calls.end(), "cuGraphExecKernelNodeSetParams") ==
            static_cast<std::ptrdiff_t>(affected));
      std::size_t have = 0;
      for (const std::string& node : nodes(fakes)) {
        have += contains(node, hex(other.address()));
        CHECK(!contains(node, hex(first.address)));
      }
      CHECK(have == affected);
      run.buffers.push_back(other);
    }
    CHECK(steps_with(*impl_of(run.workspace)->prepared, executable.output_slot("y")) == 1);
  }
  fakes.require_clean();
}

TEST_CASE("packed memory that moved costs a call for each node that reads it", "[cuda][graph]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    Graph g("packed");
    const Tensor x = g.input("x", f32, {64, 64}), e = exp(g.parameter("w", f32, {64, 64}));
    g.output("z", matmul(x, e));
    g.output("y", sum(e, {0}));
    const Executable executable = compile(g, Device::cuda());
    WholeRun run(executable, {}, by_graph);
    REQUIRE(run.prepared.packed_bytes() > 0);
    run.run().throw_if_failed();
    const Buffer first = std::exchange(run.packed, executable.device().allocate(run.prepared.packed_bytes()));
    const std::size_t readers = steps_with(*impl_of(run.workspace)->prepared,
                                           static_cast<std::size_t>(runtime::ValueLocation::packed));
    REQUIRE(readers > 0);
    const int before = fakes.call_count();
    run.run().throw_if_failed();
    const std::vector<std::string> calls = of_run(fakes.calls_since(before));
    CHECK(static_cast<std::size_t>(std::count_if(calls.begin(), calls.end(), [](const std::string& call) {
            return contains(call, "SetParams");
          })) == readers);
    for (const std::string& node : nodes(fakes)) CHECK(!contains(node, hex(first.address())));
  }
  fakes.require_clean();
}

TEST_CASE("two sets of buffers in turn cost a call for each node that has one, of GEMMs too",
          "[cuda][graph]") {
  const auto [name, dims] = GENERATE(std::pair<std::string, DimValues>{"transformer_block", {{"B", 2}}},
                                     std::pair<std::string, DimValues>{"bert_layer", {{"B", 1}, {"S", 16}}});
  INFO(name);
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    const Executable executable = compile(example(name), Device::cuda());
    WholeRun run(executable, dims, by_graph);
    REQUIRE(run.prepared.gemms() > 2);
    std::vector<BufferView> others;
    for (std::size_t slot = 0; slot < run.views.size(); ++slot) {
      run.buffers.push_back(executable.device().allocate(run.prepared.bytes(slot)));
      others.push_back(run.buffers.back().view());
    }
    const Prepared::Impl& p = *impl_of(run.workspace)->prepared;
    std::ptrdiff_t affected = 0, gemms = 0;
    for (const runtime::ReadyStep& step : p.steps) {
      const std::vector<Access> touched = accesses(p, step);
      const bool moves = std::any_of(touched.begin(), touched.end(),
                                     [](const Access& access) { return access.location.slot >= 0; });
      affected += moves;
      gemms += moves && step.kind == runtime::ReadyStep::Kind::gemm;
    }
    REQUIRE(gemms > 0);
    for (int visit = 0; visit < 6; ++visit) {
      INFO("visit " << visit);
      const int before = fakes.call_count(), products = fakes.blas_call_count();
      run.run().throw_if_failed();
      const std::vector<std::string> calls = of_run(fakes.calls_since(before));
      const bool first = visit < 2;
      const auto count = [&](const char* call) {
        return std::count_if(calls.begin(), calls.end(), [&](auto& one) { return one.starts_with(call); });
      };
      CHECK(count("cuStreamBeginCapture") == (first ? gemms : 0));
      CHECK(count("cuGraphExecChildGraphNodeSetParams") == gemms);
      CHECK((fakes.blas_call_count() == products) == !first);
      // A capture begins and ends. The context is made current for all updates, and for the launch.
      CHECK(static_cast<std::ptrdiff_t>(calls.size()) == affected + 1 + 4 + (first ? 2 * gemms : 0));
      std::swap(run.views, others);
    }
  }
  fakes.require_clean();
}

TEST_CASE("a longer buffer at the same address is no other buffer", "[cuda][graph]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    const Executable executable = compile(branches(), Device::cuda());
    WholeRun run(executable, {}, by_graph);
    const std::int64_t bytes = run.prepared.bytes(0);
    const Buffer longer = executable.device().allocate(2 * bytes);
    run.views[0] = {longer.address(), bytes};
    run.run().throw_if_failed();
    run.views[0] = longer.view();
    int before = fakes.call_count();
    run.run().throw_if_failed();
    CHECK(of_run(fakes.calls_since(before)).size() == 3);
    // It is looked at all the same.
    run.views[0].bytes = bytes - 1;
    before = fakes.call_count();
    CHECK(run.run().code() == ErrorCode::invalid_argument);
    CHECK(fakes.calls_since(before).empty());
  }
  fakes.require_clean();
}

/// "kernel NAME grid ... args ..." of each kernel, by streams and by a graph, for the same memory.
void check_same_launches(const Graph& graph, const DimValues& dims = {}) {
  INFO(graph.name());
  const FakeEnvironment environment;
  const Fakes fakes;
  const Executable executable = compile(graph, Device::cuda());
  WholeRun run(executable, dims);
  const Prepared::Impl& p = *impl_of(run.workspace)->prepared;
  int before = fakes.call_count();
  run.run().throw_if_failed();
  std::vector<std::string> launched, in_graph;
  for (std::string call : fakes.calls_since(before)) {
    const bool cooperative = call.starts_with("cuLaunchCooperativeKernel ");
    if (!cooperative && !call.starts_with("cuLaunchKernel ")) continue;
    call.replace(0, call.find(' '), "kernel");
    const std::size_t stream = call.find(" stream ");
    call.erase(stream, call.find(" args") - stream);
    launched.push_back(call + (cooperative ? " cooperative" : ""));
  }
  Workspace graphed = run.prepared.workspace(run.workspace.memory(), by_graph);
  REQUIRE(run.prepared.run(run.stream, run.views, graphed, run.packed.view()));
  std::vector<std::set<std::size_t>> ended;  // before each node, by the graph's edges
  for (const std::string& node : nodes(fakes)) {
    const std::size_t after = node.rfind(" after");
    if (node.starts_with("kernel ")) in_graph.push_back(node.substr(0, after));
    std::set<std::size_t>& before_it = ended.emplace_back();
    std::istringstream numbers(node.substr(after + 6));
    for (std::size_t other = 0; numbers >> other;) {
      before_it.insert(other);
      before_it.insert(ended[other].begin(), ended[other].end());
    }
  }
  CHECK(static_cast<std::int64_t>(launched.size()) == run.prepared.launches());
  CHECK(in_graph == launched);
  REQUIRE(ended.size() == p.commands.list.size());
  const auto touched = [&](std::size_t node) { return accesses(p, p.steps[p.commands.list[node].step]); };
  for (std::size_t j = 0; j < ended.size(); ++j) {
    for (std::size_t i = 0; i < j; ++i) {
      if (!conflict(touched(i), touched(j))) continue;
      INFO(fmt::format("{} and {}", p.steps[p.commands.list[i].step].label,
                       p.steps[p.commands.list[j].step].label));
      CHECK(ended[j].contains(i));
    }
  }
}

TEST_CASE("a graph launches what streams do, behind what they do", "[cuda][graph]") {
  check_same_launches(branches(4));
  check_same_launches(overwritten());
  check_same_launches(example("transformer_block"), {{"B", 2}});
  check_same_launches(example("bert_layer"), {{"B", 1}, {"S", 16}});
  check_same_launches(example("layernorm"), {{"B", 16}});
}

/// A kernel whose blocks wait for each other, between two of ours.
Graph waiting() {
  Graph g("waiting");
  CustomKernel kernel{
      .name = "turns",
      .source = R"(FUSE_KERNEL(32) turns(global<const int> x, global<int> y, global<int> barrier) {
  store(y, (long long)blockIdx.x * 32 + threadIdx.x, load(x, (long long)blockIdx.x * 32 + threadIdx.x));
  grid_barrier(barrier);
}
)",
      .threads = 32,
      .grid = 4,
      .grid_barrier = true};
  kernel.reference = [](std::span<const HostView>, HostView) {};
  const Tensor x = g.input("x", i32, {4, 32});
  g.output("y", custom_call(kernel, {x + 1}, i32, {4, 32}) * 2);
  return g;
}

TEST_CASE("a kernel that spins is a cooperative node, behind the memset of its counter", "[cuda][graph]") {
  check_same_launches(waiting());
  const FakeEnvironment environment;
  const Fakes fakes;
  WholeRun run(compile(waiting(), Device::cuda()), {}, by_graph);
  run.run().throw_if_failed();
  int cooperative = 0, cleared = -1;
  const std::vector<std::string> all = nodes(fakes);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].starts_with("memset 0 ")) cleared = static_cast<int>(i);
    if (!contains(all[i], " cooperative")) continue;
    ++cooperative;
    INFO(all[i]);
    CHECK(contains(all[i].substr(all[i].rfind(" after")), std::to_string(cleared)));
  }
  CHECK(cooperative == 1);
  CHECK(cleared >= 0);
}

TEST_CASE("each driver call of a run in graph mode fails once: a named status, and the next run is right",
          "[cuda][graph]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    Graph g("both");
    const Tensor x = g.input("x", f32, {32, 32});
    g.output("y", exp(matmul(exp(x), x)));
    const Executable executable = compile(g, Device::cuda());
    WholeRun run(executable, {}, by_graph);
    run.run().throw_if_failed();
    // One more than are kept, in turn: each is captured anew, and replaces another.
    std::vector<Buffer> inputs;
    for (std::size_t i = 0; i <= runtime::GemmCaptures::most; ++i) {
      inputs.push_back(executable.device().allocate(run.prepared.bytes(0)));
    }
    std::size_t turn = 0;
    const auto exchange = [&] { run.views[0] = inputs[++turn % inputs.size()].view(); };
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      exchange();
      run.run().throw_if_failed();
    }
    int before = fakes.call_count();
    exchange();
    run.run().throw_if_failed();
    const int calls = fakes.call_count() - before;
    REQUIRE(calls >= 8);
    for (int nth = 1; nth <= calls; ++nth) {
      before = fakes.call_count();
      const BufferView gone = run.views[0];
      exchange();
      fakes.fail_at("", nth, 999);
      const Status status = run.run();
      INFO("call " << nth << ": " << fakes.call(before + nth - 1) << ": " << status.message());
      const bool told = fakes.call(before + nth - 1) != std::string("cuGraphDestroy");  // giving back
      CHECK(status.code() == (told ? ErrorCode::driver : ErrorCode::ok));
      CHECK(contains(status.message(), told ? "CUDA_ERROR_UNKNOWN (999)" : ""));
      CHECK(fakes.depth() == 0);
      run.run().throw_if_failed();
      for (const std::string& node : nodes(fakes)) CHECK(!contains(node, hex(gone.address)));
      run.run().throw_if_failed();
    }
  }
  fakes.require_clean();
}

TEST_CASE("each driver call of making a workspace fails once: a named error, and nothing is left",
          "[cuda][graph]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    Graph g("both");
    const Tensor x = g.input("x", f32, {32, 32});
    g.output("y", exp(matmul(exp(x), x)));
    const Executable executable = compile(g, Device::cuda());
    const Prepared prepared = executable.prepare();
    int before = fakes.call_count();
    (void)prepared.workspace(by_graph);
    const int calls = fakes.call_count() - before;
    const int memory = fakes.live("memory"), streams = fakes.live("stream");
    int failed = 0;
    for (int nth = 1; nth <= calls; ++nth) {
      before = fakes.call_count();
      fakes.fail_at("", nth, 2);
      std::string message;
      try {
        (void)prepared.workspace(by_graph);
      } catch (const Error& error) {
        message = error.what();
        ++failed;
      }
      const std::string call = fakes.call(before + nth - 1);
      INFO("call " << nth << ": " << call << ": " << message);
      // Giving back tells nobody.
      if (!message.empty()) CHECK(contains(message, call.substr(0, call.find(' '))));
      CHECK(fakes.live("graph") == 0);
      CHECK(fakes.live("memory") == memory);
      CHECK(fakes.live("stream") == streams);
      CHECK(fakes.live("event") == 0);
      CHECK(fakes.depth() == 0);
    }
    CHECK(failed > 20);
  }
  fakes.require_clean();
}

TEST_CASE("automatic is a graph where the cost model expects it to pay", "[cuda][graph]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  const auto mode = [](const Graph& graph, const Device& device) {
    return compile(graph, device, {.experiments = experiments({.layers = 2})})
        .prepare()
        .workspace({ExecutionMode::automatic})
        .mode();
  };
  Graph small("small");
  small.output("y", exp(small.input("x", f32, {64})));
  CHECK(mode(small, Device::cuda()) == ExecutionMode::streams);
  CHECK(mode(branches(4), Device::cuda()) == ExecutionMode::graph);
  Graph large("large");  // the host is far ahead of the device
  const Tensor x = large.input("x", f32, {1 << 15, 1 << 15});
  large.output("y", sum(x / sum(x, {1}, {.keep_dims = true}), {0}));
  CHECK(mode(large, Device::cuda()) == ExecutionMode::streams);
  CHECK(mode(branches(4), Device::reference()) == ExecutionMode::streams);
  CHECK(to_string(ExecutionMode::automatic) == "automatic");
  CHECK(compile(branches(), Device::reference()).prepare().workspace(by_graph).mode() ==
        ExecutionMode::graph);
}

TEST_CASE("a measured workspace in graph mode goes over to streams", "[cuda][graph]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    WholeRun run(compile(branches(), Device::cuda()), {}, by_graph);
    run.run().throw_if_failed();
    run.workspace.measure();
    CHECK(run.workspace.mode() == ExecutionMode::streams);
    const int launches = fakes.count("cuGraphLaunch");
    run.run().throw_if_failed();
    CHECK(fakes.count("cuGraphLaunch") == launches);
    CHECK(fakes.count("cuLaunchKernel") == run.prepared.launches());
    REQUIRE(run.workspace.measured());
    CHECK(run.workspace.measured()->steps.size() == run.prepared.predicted().steps.size());
  }
  fakes.require_clean();
}

}  // namespace
}  // namespace fuse::test
#endif
