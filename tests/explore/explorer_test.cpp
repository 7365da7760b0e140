// The explorer on an emulated device with a virtual clock: what was planted as the fastest is found, in the
// announced runs, and every run on the way is right. SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstring>
#include <fuse/explore.hpp>
#include <fuse/fuse.hpp>
#include <map>
#include <set>
#include <thread>

#include "base/access.hpp"
#include "explore/explorer_support.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/emulated/virtual_clock.hpp"
#include "runtime/explore/snapshot.hpp"
#include "runtime/explore/space.hpp"
#include "runtime/explore/variant.hpp"
#include "schedule/decisions/decisions.hpp"
#include "support/catch.hpp"
#include "support/sanitized.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using runtime::ClockedWork;

namespace {

Graph two_gemms() {
  Graph g("gemms");
  const Tensor x = g.input("x", f32, {16, 32}), a = g.parameter("a", f32, {32, 8}),
               b = g.parameter("b", f32, {32, 8});
  g.output("y", tanh(matmul(x, a)) + exp(matmul(x, b) * 0.1));
  return g;
}

/// What launches are told apart by.
using Shape = std::pair<std::int64_t, int>;  // blocks, and threads in each
Shape shape_of(const ClockedWork& work) { return {work.residency.blocks, work.residency.threads}; }

/// The launch of a graph of one kernel that is compiled by these decisions.
Shape launch_of(const Graph& graph, const Device& device, const schedule::Decisions& decisions) {
  Shape found;
  runtime::plant_costs(*backend_of(device), [&](const ClockedWork& work) {
    found = shape_of(work);
    return 1.0;
  });
  runtime::Variant variant(compile(graph, device, {.decisions = schedule::print(decisions), .cache = false}),
                           {});
  const Explorer explorer(graph, device);
  const ExplorerBuffers buffers(explorer);
  Stream stream = device.stream();
  variant.run(stream, buffers.views, 1).throw_if_failed();
  return found;
}

}  // namespace

TEST_CASE("the loops that were planted as the fastest are found in the announced runs",
          "[explore][emulated]") {
  const Graph graph = softmax_graph(24, 2048);
  const Device device = clocked_device();
  const ExploreOptions options{.bits = Bits::any, .max_options = 6, .max_cuts = 1};
  const runtime::Space space = runtime::space_of(ir_of(graph), backend_of(device)->target(), {}, options);
  const runtime::ExploredKernel& kernel = space.cuts.at(0).kernels.at(0);
  REQUIRE(kernel.options.size() == 6);
  std::vector<Shape> shapes;
  for (int option = 0; option < 6; ++option)
    shapes.push_back(launch_of(graph, device, space.decisions({{runtime::kernel_name(kernel.key), option}})));
  for (const std::size_t fastest : {0, 3, 5}) {
    if (sanitized() && fastest != 3) continue;
    INFO("option " << fastest);
    REQUIRE((fastest == 0 || shapes[fastest] != shapes[0]));  // else the default is as fast
    runtime::plant_costs(*backend_of(device), [&](const ClockedWork& work) {
      return shape_of(work) == shapes[fastest] ? 5e-6 : 10e-6;
    });
    Explorer explorer(graph, device, {}, options);
    ExplorerBuffers buffers(explorer);
    run_to_end(explorer, buffers);
    const ExploreProgress progress = explorer.progress();
    CHECK(progress.explored == progress.announced);
    CHECK(progress.announced == 6 + 2);  // the options, then default and best end to end
    CHECK(progress.dropped.empty());
    CHECK(progress.stopped.empty());
    CHECK(progress.tuned_seconds == Approx(5e-6));
    CHECK(launch_of(graph, device, schedule::parse_decisions(explorer.tuning().text())) == shapes[fastest]);
  }
}

TEST_CASE("a machine that becomes slower, and stays so, is still compared with", "[explore][emulated]") {
  Graph graph("two");
  const Tensor x = graph.input("x", f32, {24, 2048});
  graph.output("y", softmax(matmul(softmax(x), graph.input("w", f32, {2048, 256}))));
  const Device device = clocked_device(0.01);
  // Launches of few threads are fast; the product always runs as by default.
  std::atomic<double> slower{1};
  runtime::plant_costs(*backend_of(device), [&](const ClockedWork& work) {
    return slower * (work.gemm ? 20e-6 : work.residency.threads < 512 ? 5e-6 : 10e-6);
  });
  Explorer explorer(graph, device, {}, {.bits = Bits::any, .max_options = 4, .max_cuts = 1});
  ExplorerBuffers buffers(explorer);
  run_to_end(explorer, buffers, [&] {
    const ExploreProgress now = explorer.progress();
    if (now.announced > 0 && now.explored > now.announced / 2) slower = 2;
  });
  const ExploreProgress progress = explorer.progress();
  CHECK(progress.default_seconds > 60e-6);
  CHECK(progress.tuned_seconds > 0);
  CHECK(progress.tuned_seconds < 0.95 * progress.default_seconds);
}

TEST_CASE("the default stays where nothing is faster, and its decisions are the tuning",
          "[explore][emulated]") {
  const Graph graph = softmax_graph(8, 128);
  const Device device = clocked_device();
  runtime::plant_costs(*backend_of(device), [](const ClockedWork&) { return 1e-6; });
  Explorer explorer(graph, device, {}, {.max_options = 4});
  const Tuning before = explorer.tuning();
  ExplorerBuffers buffers(explorer);
  run_to_end(explorer, buffers);
  CHECK(explorer.progress().tuned_seconds == explorer.progress().default_seconds);
  CompileOptions tuned;
  tuned.decisions = explorer.tuning().text();
  CHECK(compile(graph, device, tuned).source() == compile(graph, device).source());
  tuned.decisions = before.text();
  CHECK(compile(graph, device, tuned).source() == compile(graph, device).source());
}

TEST_CASE("GEMMs are cut as it was planted to be faster: merged, or apart", "[explore][emulated]") {
  const Graph graph = two_gemms();
  for (const bool apart : {false, true}) {
    INFO("apart " << apart);
    const Device device = clocked_device();
    // The merged product has 16 columns.
    runtime::plant_costs(*backend_of(device), [apart](const ClockedWork& work) {
      if (!work.gemm) return 1e-6;
      const bool merged = work.gemm->n == 16 || work.gemm->batch == 2;
      return merged == apart ? 50e-6 : 10e-6;
    });
    Explorer explorer(graph, device, {}, {.bits = Bits::any, .max_options = 2});
    ExplorerBuffers buffers(explorer);
    run_to_end(explorer, buffers);
    CHECK(explorer.progress().explored == explorer.progress().announced);
    CompileOptions tuned;
    tuned.decisions = explorer.tuning().text();
    CHECK(compile(graph, device, tuned).prepare().gemms() == (apart ? 2 : 1));
  }
}

TEST_CASE("the algorithm of a GEMM that was planted as the fastest is found", "[explore][emulated]") {
  Graph graph("gemm");
  graph.output("y", matmul(graph.input("x", f32, {16, 32}), graph.parameter("w", f32, {32, 8})));
  const Device device = clocked_device();
  runtime::plant_costs(*backend_of(device), [](const ClockedWork& work) {
    return work.gemm && work.gemm->algorithm == 1 ? 1e-6 : 2e-6;
  });
  Explorer explorer(graph, device, {}, {.bits = Bits::any});
  ExplorerBuffers buffers(explorer);
  run_to_end(explorer, buffers);
  CHECK(explorer.progress().explored == explorer.progress().announced);
  if (backend_of(device)->gemm_algorithms() == 1) return;  // without OpenBLAS there are the plain loops alone
  CHECK(explorer.progress().announced == 2 + 2);
  CHECK(explorer.tuning().text().find("{algorithm = 1}") != std::string::npos);
}

TEST_CASE("with Bits::keep every run has the bits of the first", "[explore][emulated]") {
  Graph graph("norm");
  const Tensor x = graph.input("x", f32, {64, 384});
  graph.output("y", layer_norm(x, graph.parameter("g", f32, {384}), graph.parameter("b", f32, {384}), 1e-5));
  const Device device = clocked_device();
  // Times that make any option win somewhere: a hash of the launch.
  runtime::plant_costs(*backend_of(device), [](const ClockedWork& work) {
    return 1e-6 * static_cast<double>(1 + (work.residency.blocks * 7 + work.residency.threads * 13) % 11);
  });
  Explorer explorer(graph, device, {}, {.max_options = 6});
  ExplorerBuffers buffers(explorer);
  std::vector<std::byte> first;
  run_to_end(explorer, buffers, [&] {
    if (first.empty()) first = buffers.output("y");
    CHECK(buffers.output("y") == first);
  });
  CHECK(explorer.progress().announced > 4);
  CHECK(explorer.progress().dropped.empty());
}

TEST_CASE("donated buffers hold what they hold without exploration", "[explore][emulated]") {
  Graph graph("momentum");
  const Tensor m = graph.input("m", f32, {32, 64}), d = graph.input("d", f32, {32, 64});
  graph.output("next", m * 0.5 + d, m);
  graph.output("norm", sum(m * d, {1}));
  const Device device = clocked_device();
  runtime::plant_costs(*backend_of(device), [](const ClockedWork& work) {
    return 1e-6 * static_cast<double>(1 + work.residency.threads % 7);
  });
  Explorer explorer(graph, device, {}, {.bits = Bits::any, .max_options = 5});
  ExplorerBuffers buffers(explorer), twin(explorer);
  const Prepared usual = compile(graph, device).prepare();
  Workspace workspace = usual.workspace();
  Stream stream = device.stream();
  int runs = 0;
  run_to_end(explorer, buffers, [&] {
    ++runs;
    usual.run(stream, twin.views, workspace).throw_if_failed();
    CHECK(buffers.output("next") == twin.output("next"));
  });
  CHECK(runs == explorer.progress().runs);
}

TEST_CASE("a candidate that makes something else is told from the default", "[explore][emulated]") {
  const auto graph_of = [](double factor) {
    Graph g("scale");
    g.output("y", g.input("x", f32, {8, 4}) * factor);
    return g;
  };
  const Graph graph = graph_of(2);
  const Device device = clocked_device();
  Explorer explorer(graph, device);
  const ExplorerBuffers buffers(explorer);
  Stream stream = device.stream();
  runtime::Variant usual(compile(graph, device), {}), same(compile(graph, device), {}),
      other(compile(graph_of(3), device), {}), close(compile(graph_of(2 + 0x1p-22), device), {});
  const DimValues dims;
  runtime::Snapshot snapshot(usual, ir_of(graph), dims, stream, buffers.views);
  for (const Bits bits : {Bits::keep, Bits::any}) {
    CHECK(snapshot.check(same, bits).empty());
    CHECK_THAT(snapshot.check(other, bits), Catch::Contains("output 'y'"));
  }
  CHECK_THAT(snapshot.check(close, Bits::keep), Catch::Contains("output 'y' has other bits than by default"));
  CHECK(snapshot.check(close, Bits::any).empty());  // it is off by a unit in the last place
}

TEST_CASE("threads share an explorer, each with a stream and buffers of its own",
          "[explore][emulated][threads]") {
  const Graph graph = softmax_graph(8, 128);
  const Device device = clocked_device();
  Explorer explorer(graph, device, {}, {.max_options = 4});
  const ExplorerBuffers expected(explorer);
  {
    Stream stream = device.stream();
    explorer.run(stream, expected.views).throw_if_failed();
    stream.synchronize().throw_if_failed();
  }
  const std::vector<std::byte> right = expected.output("y");
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&] {
      const ExplorerBuffers buffers(explorer);
      Stream stream = device.stream();
      for (int run = 0; run < 20; ++run) {
        const bool ran = explorer.run(stream, buffers.views) && stream.synchronize();
        if (!ran || buffers.output("y") != right) ++wrong;
        static_cast<void>(explorer.progress());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(explorer.progress().runs == 161);
  CHECK(explorer.progress().stopped.empty());
}

TEST_CASE("what cannot be explored is refused, with what would be right", "[explore]") {
  const Graph graph = softmax_graph(4, 4);
  const auto refused = [&](const Device& device, const ExploreOptions& options) -> std::string {
    try {
      const Explorer explorer(graph, device, {}, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK_THAT(refused(Device::reference(), {}),
             Catch::Contains("the reference device has nothing to explore"));
  CHECK_THAT(refused(clocked_device(), {.max_options = 0}), Catch::Contains("max_options is at least 1"));
  CHECK_THAT(refused(clocked_device(), {.samples = 4}), Catch::Contains("samples is 0, or from 5 to 10000"));
  CHECK_THAT(refused(clocked_device(), {.samples = 10'001}), Catch::Contains("samples = 10001"));
  CHECK_THAT(refused(clocked_device(), {.least_gain = -1}), Catch::Contains("least_gain"));
  CHECK_THROWS_WITH(Device::emulated({.clock_noise = 1}), Catch::Contains("noise"));
}

TEST_CASE("a budget of runs that is too small for one option ends the exploration", "[explore][emulated]") {
  const Device device = clocked_device();
  Explorer explorer(softmax_graph(8, 32), device, {}, {.bits = Bits::any, .max_runs = 2});
  ExplorerBuffers buffers(explorer);
  run_to_end(explorer, buffers);
  CHECK(explorer.progress().explored == 0);
  CHECK_THAT(explorer.progress().stopped, Catch::Contains("no exploration fits into so few runs"));
}

TEST_CASE("fewer options are tried where the budget has no room for more", "[explore][emulated]") {
  const Device device = clocked_device();
  Explorer explorer(softmax_graph(4, 512), device, {}, {.bits = Bits::any, .max_cuts = 1, .max_runs = 5});
  ExplorerBuffers buffers(explorer);
  run_to_end(explorer, buffers);
  CHECK(explorer.progress().announced <= 5);
  CHECK(explorer.progress().announced > 2);
  CHECK(explorer.progress().stopped.empty());
}

TEST_CASE("a run that the caller gave wrong buffers fails as ever, and exploration goes on",
          "[explore][emulated]") {
  const Device device = clocked_device();
  Explorer explorer(softmax_graph(8, 32), device, {}, {.max_options = 3});
  ExplorerBuffers buffers(explorer);
  Stream stream = device.stream();
  const std::vector<BufferView> none(buffers.views.size());
  CHECK_FALSE(explorer.run(stream, none));
  run_to_end(explorer, buffers);
  CHECK(explorer.progress().stopped.empty());
}
