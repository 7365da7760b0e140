// The caller's memory in place of the device's, and the pool that keeps freed blocks.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/access.hpp"
#include "runtime/runtime_support.hpp"
#include "support/branches.hpp"
#include "support/counting_resource.hpp"

namespace fuse::test {
namespace {

std::vector<float> run_by_hand(const Device& device) {
  Session session(runtime::make_executable(by_hand(), device), {{"B", 2}});
  session.set("x", bytes_of(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  session.set("w", bytes_of(std::vector<float>{0.5f, 0, -1, 100}));
  session.run();
  return values_of<float>(session.get("y"));
}

TEST_CASE("all memory of a session is its device's resource's", "[runtime][device][cuda-text]") {
  for (const Device& device : every_device()) {
    INFO(device.name());
    const std::vector<float> expected = run_by_hand(device);
    const auto resource = std::make_shared<CountingResource>(device);
    CHECK(run_by_hand(device.with_memory(resource)) == expected);
    CHECK(resource->allocations == 4 + 2);  // slots, workspace, packed
    CHECK(resource->live() == 0);
    CHECK(resource->strangers == 0);
  }
}

TEST_CASE("a device with a resource is the device", "[runtime][device][cuda-text]") {
  const Device device = test_device(), other = device.with_memory(std::make_shared<CountingResource>(device));
  CHECK(other.name() == device.name());
  CHECK(backend_of(other) == backend_of(device));
  CHECK(!device.memory());
  CHECK(!other.with_memory(nullptr).memory());
  // A run takes buffers and streams of either.
  WholeRun run(runtime::make_executable(by_hand(), other), {{"B", 2}});
  Stream stream = device.stream();
  CHECK(run.prepared.run(stream, run.views, run.workspace));
  CHECK(stream.synchronize());
}

TEST_CASE("a resource that fails at any call is a named error, and keeps nothing",
          "[runtime][device][cuda-text]") {
  const Device device = test_device();
  const auto resource = std::make_shared<CountingResource>(device);
  const Device ours = device.with_memory(resource);
  for (int at = 0; at < 6; ++at) {
    INFO(at);
    resource->allocations = 0;
    resource->fails_at = at;
    resource->fail = nullptr;
    const std::string none = error_of([&] { run_by_hand(ours); });
    CHECK(none.starts_with("out-of-memory: the device's memory resource has no "));
    CHECK(resource->live() == 0);

    resource->allocations = 0;
    resource->fail = []() -> void* { throw std::runtime_error("the caller's own"); };
    CHECK_THROWS_WITH(run_by_hand(ours), "the caller's own");
    CHECK(resource->live() == 0);
  }
  resource->fails_at = -1;
  CHECK(run_by_hand(ours) == run_by_hand(device));
}

TEST_CASE("an address that is not aligned is refused and given back", "[runtime]") {
  const auto resource = std::make_shared<CountingResource>(Device::reference());
  resource->shift = 64;
  const Device ours = Device::reference().with_memory(resource);
  const std::string error = error_of([&] { ours.allocate(100); });
  INFO(error);
  CHECK(error.starts_with("invalid-argument: the device's memory resource gave 0x"));
  CHECK(error.find("which is not aligned to 256 bytes") != std::string::npos);
  CHECK(resource->live() == 0);
  CHECK(resource->strangers == 0);
}

TEST_CASE("a buffer of no bytes has an address of its own", "[runtime]") {
  const Device ours =
      Device::reference().with_memory(std::make_shared<CountingResource>(Device::reference()));
  const Buffer a = ours.allocate(0), b = ours.allocate(0);
  CHECK(a.size() == 0);
  CHECK(a.address() != b.address());
}

TEST_CASE("a pool gives out again what came back", "[runtime][device][cuda-text]") {
  const Device device = test_device();
  const auto below = std::make_shared<CountingResource>(device);
  const auto pool = std::make_shared<MemoryPool>(device.with_memory(below));
  const Device pooled = device.with_memory(pool);
  const std::vector<float> expected = run_by_hand(device);
  CHECK(run_by_hand(pooled) == expected);
  const int first = below->allocations;
  const MemoryPool::Use between = pool->use();
  CHECK(between.in_use == 0);
  CHECK(between.kept > 0);
  CHECK(between.peak == between.kept);
  for (int i = 0; i < 3; ++i) CHECK(run_by_hand(pooled) == expected);
  CHECK(below->allocations == first);
  CHECK(pool->use().peak == between.peak);
  pool->trim();
  CHECK(below->live() == 0);
  CHECK(pool->use().kept == 0);
  CHECK(run_by_hand(pooled) == expected);
}

TEST_CASE("blocks in use are apart, and of a size that fits", "[runtime]") {
  const auto pool = std::make_shared<MemoryPool>(Device::reference(), 1 << 20);
  std::vector<std::pair<std::byte*, std::int64_t>> blocks;
  for (std::int64_t bytes = 1; bytes < 100'000; bytes = bytes * 3 / 2 + 1) {
    auto* const address = static_cast<std::byte*>(pool->allocate(bytes));
    CHECK(reinterpret_cast<std::uintptr_t>(address) % 256 == 0);
    std::fill_n(address, bytes, std::byte{static_cast<unsigned char>(blocks.size())});
    blocks.emplace_back(address, bytes);
  }
  std::int64_t asked = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto [address, bytes] = blocks[i];
    CHECK(std::all_of(address, address + bytes, [&](std::byte b) { return b == std::byte(i); }));
    asked += bytes;
  }
  CHECK(pool->use().in_use >= asked);
  CHECK(pool->use().in_use <= asked + asked / 8 + 256 * static_cast<std::int64_t>(blocks.size()));
  for (const auto& [address, bytes] : blocks) pool->deallocate(address, bytes);
  CHECK(pool->use().in_use == 0);
}

TEST_CASE("a pool keeps no more than it may, and gives all back before it says that memory is out",
          "[runtime]") {
  const auto below = std::make_shared<CountingResource>(Device::reference());
  MemoryPool pool(Device::reference().with_memory(below), 1024);
  void *a = pool.allocate(1000), *b = pool.allocate(512), *c = pool.allocate(256);
  pool.deallocate(a, 1000);  // all that it may keep
  pool.deallocate(b, 512);
  CHECK(pool.use().kept == 1024);
  CHECK(below->live() == 2);
  pool.deallocate(c, 256);
  CHECK(below->live() == 1);

  // Another size, where the device has no more: what is kept goes, and the second attempt succeeds.
  below->fails_at = below->allocations;
  void* const d = pool.allocate(4000);
  CHECK(d);
  CHECK(below->live() == 1);
  pool.deallocate(d, 4000);
  CHECK(below->live() == 0);
  CHECK(error_of([&] { pool.allocate(0); }).starts_with("invalid-argument: "));
}

}  // namespace
}  // namespace fuse::test
