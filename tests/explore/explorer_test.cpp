// The explorer on an emulated device with a virtual clock: what was planted as the fastest is found, in the
// announced runs, and every run on the way is right. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <fuse/explore.hpp>
#include <fuse/fuse.hpp>
#include <map>
#include <set>
#include <thread>

#include "runtime/device/backend.hpp"
#include "runtime/emulated/virtual_clock.hpp"
#include "runtime/explore/snapshot.hpp"
#include "runtime/explore/space.hpp"
#include "runtime/explore/variant.hpp"
#include "schedule/decisions/decisions.hpp"
#include "support/catch.hpp"
#include "tensors/host_tensor.hpp"
#include "tensors/random_fill.hpp"

using namespace fuse;  // NOLINT
using runtime::ClockedWork;
using runtime::HostTensor;

namespace {

Device clocked_device(double noise = 0, std::uint64_t seed = 1) {
  return Device::emulated(
      {.optimization = 0, .virtual_clock = true, .clock_noise = noise, .clock_seed = seed});
}

/// Buffers of an explorer's slots, with random inputs.
struct Buffers {
  explicit Buffers(const Explorer& explorer) : slots(explorer.slots()), own(slots.size()) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (!slots[i].donor) own[i] = explorer.usual().device().allocate(explorer.prepared().bytes(i));
      if (slots[i].kind == Slot::Kind::output) continue;
      HostTensor tensor = HostTensor::make(slots[i].dtype, explorer.prepared().shape(i));
      runtime::random_fill(tensor, 5, slots[i].name, -2, 2);
      own[i].upload(tensor.data);
    }
    for (std::size_t i = 0; i < slots.size(); ++i) views.push_back(own[slots[i].donor.value_or(i)].view());
  }
  std::vector<std::byte> output(std::string_view name) const {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].kind != Slot::Kind::output || slots[i].name != name) continue;
      const Buffer& buffer = own[slots[i].donor.value_or(i)];
      std::vector<std::byte> bytes(static_cast<std::size_t>(buffer.size()));
      buffer.download(bytes);
      return bytes;
    }
    return {};
  }
  std::vector<Slot> slots;
  std::vector<Buffer> own;
  std::vector<BufferView> views;
};

/// Runs until it is done, and calls `after` behind each run.
void run_to_end(Explorer& explorer, Buffers& buffers, const std::function<void()>& after = {}) {
  Stream stream = explorer.usual().device().stream();
  for (int run = 0; !explorer.done(); ++run) {
    REQUIRE(run < 5000);
    explorer.run(stream, buffers.views).throw_if_failed();
    stream.synchronize().throw_if_failed();
    if (after) after();
    explorer.wait_for_compiler();
  }
}

Graph softmax_graph(std::int64_t rows, std::int64_t columns) {
  Graph g("softmax");
  const Tensor x = g.input("x", f32, {rows, columns});
  g.output("y", softmax(x, -1));
  return g;
}

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
  runtime::plant_costs(*device.backend(), [&](const ClockedWork& work) {
    found = shape_of(work);
    return 1.0;
  });
  runtime::Variant variant(graph, device, {.decisions = schedule::print(decisions), .cache = false}, {});
  const Explorer explorer(graph, device);
  const Buffers buffers(explorer);
  Stream stream = device.stream();
  variant.run(stream, buffers.views, 1).throw_if_failed();
  return found;
}

}  // namespace

TEST_CASE("the loops that were planted as the fastest are found in the announced runs",
          "[explore][emulated]") {
  const Graph graph = softmax_graph(24, 2048);
  const Device device = clocked_device();
  const ExploreOptions options{.bits = Bits::any, .most_options = 6, .most_contexts = 1};
  const runtime::Space space = runtime::space_of(graph.ir(), device.backend()->target(), {}, options, 1);
  const runtime::ExploredKernel& kernel = space.contexts.at(0).kernels.at(0);
  REQUIRE(kernel.options.size() == 6);
  std::vector<Shape> shapes;
  for (int option = 0; option < 6; ++option)
    shapes.push_back(launch_of(graph, device, space.decisions({{runtime::kernel_name(kernel.key), option}})));
  for (const std::size_t fastest : {0, 3, 5}) {
    INFO("option " << fastest);
    REQUIRE((fastest == 0 || shapes[fastest] != shapes[0]));  // else the default is as fast
    runtime::plant_costs(*device.backend(), [&](const ClockedWork& work) {
      return shape_of(work) == shapes[fastest] ? 5e-6 : 10e-6;
    });
    Explorer explorer(graph, device, {}, options);
    Buffers buffers(explorer);
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

TEST_CASE("the default stays where nothing is faster, and its decisions are the tuning",
          "[explore][emulated]") {
  const Graph graph = softmax_graph(8, 128);
  const Device device = clocked_device();
  runtime::plant_costs(*device.backend(), [](const ClockedWork&) { return 1e-6; });
  Explorer explorer(graph, device, {}, {.most_options = 4});
  const Tuning before = explorer.tuning();
  Buffers buffers(explorer);
  run_to_end(explorer, buffers);
  CHECK(explorer.progress().tuned_seconds == explorer.progress().usual_seconds);
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
    runtime::plant_costs(*device.backend(), [apart](const ClockedWork& work) {
      if (!work.gemm) return 1e-6;
      const bool merged = work.gemm->n == 16 || work.gemm->batch == 2;
      return merged == apart ? 50e-6 : 10e-6;
    });
    Explorer explorer(graph, device, {}, {.bits = Bits::any, .most_options = 2});
    Buffers buffers(explorer);
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
  runtime::plant_costs(*device.backend(), [](const ClockedWork& work) {
    return work.gemm && work.gemm->algorithm == 1 ? 1e-6 : 2e-6;
  });
  Explorer explorer(graph, device, {}, {.bits = Bits::any});
  Buffers buffers(explorer);
  run_to_end(explorer, buffers);
  CHECK(explorer.progress().announced == 2 + 2);
  CHECK(explorer.tuning().text().find("{algorithm = 1}") != std::string::npos);
}

TEST_CASE("with Bits::keep every run has the bits of the first", "[explore][emulated]") {
  Graph graph("norm");
  const Tensor x = graph.input("x", f32, {64, 384});
  graph.output("y", layer_norm(x, graph.parameter("g", f32, {384}), graph.parameter("b", f32, {384}), 1e-5));
  const Device device = clocked_device();
  // Times that make any option win somewhere: a hash of the launch.
  runtime::plant_costs(*device.backend(), [](const ClockedWork& work) {
    return 1e-6 * static_cast<double>(1 + (work.residency.blocks * 7 + work.residency.threads * 13) % 11);
  });
  Explorer explorer(graph, device, {}, {.most_options = 6});
  Buffers buffers(explorer);
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
  runtime::plant_costs(*device.backend(), [](const ClockedWork& work) {
    return 1e-6 * static_cast<double>(1 + work.residency.threads % 7);
  });
  Explorer explorer(graph, device, {}, {.bits = Bits::any, .most_options = 5});
  Buffers buffers(explorer), twin(explorer);
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
  const Buffers buffers(explorer);
  Stream stream = device.stream();
  runtime::Variant usual(graph, device, {}, {}), same(graph, device, {}, {}),
      other(graph_of(3), device, {}, {}), close(graph_of(2 + 0x1p-22), device, {}, {});
  const DimValues dims;
  runtime::Snapshot snapshot(usual, graph.ir(), dims, stream, buffers.views);
  for (const Bits bits : {Bits::keep, Bits::any}) {
    CHECK(snapshot.check(same, bits).empty());
    CHECK_THAT(snapshot.check(other, bits), Catch::Contains("output 'y'"));
  }
  CHECK_THAT(snapshot.check(close, Bits::keep), Catch::Contains("output 'y' has other bits than by default"));
  CHECK(snapshot.check(close, Bits::any).empty());  // it is off by a unit in the last place
}

TEST_CASE("threads share an explorer, each with a stream and buffers of its own", "[explore][emulated]") {
  const Graph graph = softmax_graph(8, 128);
  const Device device = clocked_device();
  Explorer explorer(graph, device, {}, {.most_options = 4});
  const Buffers expected(explorer);
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
      const Buffers buffers(explorer);
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
  CHECK_THAT(refused(clocked_device(), {.most_options = 0}), Catch::Contains("most_options is at least 1"));
  CHECK_THAT(refused(clocked_device(), {.least_gain = -1}), Catch::Contains("least_gain"));
  CHECK_THROWS_WITH(Device::emulated({.clock_noise = 1}), Catch::Contains("noise"));
}

TEST_CASE("a budget of runs that is too small for one option ends the exploration", "[explore][emulated]") {
  const Device device = clocked_device();
  Explorer explorer(softmax_graph(8, 32), device, {}, {.bits = Bits::any, .most_runs = 2});
  Buffers buffers(explorer);
  run_to_end(explorer, buffers);
  CHECK(explorer.progress().explored == 0);
  CHECK_THAT(explorer.progress().stopped, Catch::Contains("one option more of each decision takes"));
}

TEST_CASE("fewer options are tried where the budget has no room for more", "[explore][emulated]") {
  const Device device = clocked_device();
  Explorer explorer(softmax_graph(4, 512), device, {},
                    {.bits = Bits::any, .most_contexts = 1, .most_runs = 5});
  Buffers buffers(explorer);
  run_to_end(explorer, buffers);
  CHECK(explorer.progress().announced <= 5);
  CHECK(explorer.progress().announced > 2);
  CHECK(explorer.progress().stopped.empty());
}

TEST_CASE("a run that the caller gave wrong buffers fails as ever, and exploration goes on",
          "[explore][emulated]") {
  const Device device = clocked_device();
  Explorer explorer(softmax_graph(8, 32), device, {}, {.most_options = 3});
  Buffers buffers(explorer);
  Stream stream = device.stream();
  const std::vector<BufferView> none(buffers.views.size());
  CHECK_FALSE(explorer.run(stream, none));
  run_to_end(explorer, buffers);
  CHECK(explorer.progress().stopped.empty());
}
