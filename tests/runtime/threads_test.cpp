// One Prepared, several threads. The sanitizer run with TSan watches these.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>

#include "runtime/runtime_support.hpp"
#include "support/paths.hpp"
#include "support/sanitized.hpp"
#include "tensors/compare.hpp"
#include "tensors/random_fill.hpp"

namespace fuse::test {
namespace {

/// Runs `prepared` `times` over with buffers, workspace and stream of its own; false if anything is wrong.
bool run_alone(const Device& device, const Prepared& prepared, int number, int times) {
  std::vector<Buffer> buffers;
  std::vector<BufferView> views;
  for (std::size_t i = 0; i < 4; ++i) {
    buffers.push_back(device.allocate(prepared.bytes(i)));
    views.push_back(buffers.back().view());
  }
  Workspace workspace = prepared.workspace();
  Stream stream = device.stream();
  std::vector<float> x(static_cast<std::size_t>(prepared.bytes(0)) / 4), w = {1, 2, 3, 4};
  bool right = true;
  for (int i = 0; i < times; ++i) {
    for (std::size_t at = 0; at < x.size(); ++at)
      x[at] = static_cast<float>(static_cast<int>(at) * number + i);
    buffers[0].upload(bytes_of(x));
    buffers[1].upload(bytes_of(w));
    right = right && prepared.run(stream, views, workspace) && stream.synchronize();
    std::vector<std::byte> result(static_cast<std::size_t>(prepared.bytes(3)));
    buffers[3].download(result);
    right = right && values_of<float>(result) == by_hand_result(x, w);
  }
  return right;
}

TEST_CASE("threads: two run one Prepared at once", "[runtime][device][cuda-text]") {
  for (const Device& device : every_device()) {
    INFO(device.name());
    const Prepared prepared = runtime::make_executable(by_hand(), device).prepare({{"B", 64}});
    bool right[2] = {false, false};
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 2; ++i) {
        threads.emplace_back([&, i] { right[i] = run_alone(device, prepared, i + 1, 20); });
      }
    }
    REQUIRE(right[0]);
    REQUIRE(right[1]);
  }
}

TEST_CASE("threads: two prepare one Executable at once", "[runtime][device][cuda-text]") {
  const Device device = test_device();
  const Executable executable = runtime::make_executable(by_hand(), device);
  bool right[2] = {false, false};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] {
        const Prepared prepared = executable.prepare({{"B", 10 + i}});
        right[i] = run_alone(device, prepared, i + 1, 5) && !executable.explain().empty();
      });
    }
  }
  REQUIRE(right[0]);
  REQUIRE(right[1]);
}

/// Of a graph of examples/graphs, with inputs of a seed of its own; what the reference device makes of them.
struct Expected {
  std::map<std::string, std::vector<std::byte>> inputs{};
  runtime::HostTensor result{};
};

Graph example(const std::string& name) {
  std::ifstream in(source_directory() / "examples" / "graphs" / (name + ".fuse"));
  REQUIRE(in.is_open());
  return Graph::parse(std::string{std::istreambuf_iterator<char>(in), {}});
}

Expected expected_of(const Graph& graph, const DimValues& dims, std::uint64_t seed) {
  const Executable exact = compile(graph, Device::reference());
  Session session(exact, dims);
  Expected expected;
  for (std::size_t i = 0; i < exact.slots().size(); ++i) {
    const Slot& slot = exact.slots()[i];
    runtime::HostTensor tensor = runtime::HostTensor::make(slot.dtype, session.prepared().shape(i));
    if (slot.kind == Slot::Kind::output) {
      expected.result = std::move(tensor);
      continue;
    }
    runtime::random_fill(tensor, seed, slot.name, -3, 3);
    session.set(slot.name, tensor.data);
    expected.inputs[slot.name] = std::move(tensor.data);
  }
  session.run();
  expected.result.data = session.get("y");
  return expected;
}

bool is_close(const runtime::HostTensor& exact, std::vector<std::byte> result) {
  runtime::HostTensor made = exact;
  made.data = std::move(result);
  // A unit in the last place of bf16; of f32 a few.
  return runtime::compare(made, exact, 1e-6, exact.dtype == bf16 ? 0x1p-7 : 0x1p-18).ok();
}

// Not for TSan, which counts fibers as threads.
TEST_CASE("threads: 16 run softmax and layernorm 50 times each", "[threads][device]") {
  constexpr int runs = 50;
  const int threads = fewer(16, 4);
  const Device device = test_device();
  for (const char* name : {"softmax", "layernorm"}) {
    INFO(name);
    const DimValues dims = {{"B", 2}};
    const Graph graph = example(name);
    std::vector<Expected> expected;
    for (int t = 0; t < threads; ++t)
      expected.push_back(expected_of(graph, dims, static_cast<std::uint64_t>(t + 1)));
    const Executable executable = compile(graph, device);
    std::atomic<int> wrong = 0;
    {
      std::vector<std::jthread> group;
      for (int t = 0; t < threads; ++t) {
        group.emplace_back([&, t] {
          Session session(executable, dims);
          for (int i = 0; i < runs; ++i) {
            const Expected& mine = expected[static_cast<std::size_t>((t + i) % threads)];
            for (const auto& [input, data] : mine.inputs) session.set(input, data);
            session.run();
            wrong += !is_close(mine.result, session.get("y"));
          }
        });
      }
    }
    CHECK(wrong == 0);
  }
}

// A data race on purpose: the sanitizer run requires that TSan reports it, so that its silence elsewhere
// means something.
TEST_CASE("threads: a planted race", "[.planted-race]") {
  int shared = 0;
  const auto add = [&shared] {
    for (int i = 0; i < 1000; ++i) shared = shared + 1;
  };
  std::thread first(add), second(add);
  first.join();
  second.join();
  REQUIRE(shared > 0);
}

}  // namespace
}  // namespace fuse::test
