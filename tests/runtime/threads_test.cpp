// One Prepared, several threads. The sanitizer run with TSan watches these.
// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "runtime/runtime_support.hpp"

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

TEST_CASE("threads: two run one Prepared at once", "[runtime][device]") {
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

TEST_CASE("threads: two prepare one Executable at once", "[runtime][device]") {
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
