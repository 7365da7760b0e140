// What may go while a run is in flight: everything that is not the caller's memory, in any order.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <algorithm>
#include <array>
#include <optional>

#include "cuda/fake_device.hpp"
#include "support/counting_resource.hpp"
#include "support/sanitized.hpp"

namespace fuse::test {
namespace {

/// Everything that a run takes, to be given back one by one.
struct Parts {
  std::optional<Device> device;
  std::optional<Executable> executable;
  std::optional<Prepared> prepared;
  std::optional<Stream> stream;
  std::optional<Workspace> workspace;

  void drop(int part) {
    if (part == 0) device.reset();
    if (part == 1) executable.reset();
    if (part == 2) prepared.reset();
    if (part == 3) stream.reset();
    if (part == 4) workspace.reset();
  }
};

void check_all_orders(ExecutionMode mode, bool own_memory) {
  const FakeEnvironment environment;
  std::array<int, 5> order{0, 1, 2, 3, 4};
  int number = 0;
  do {
    if (number++ % (sanitized() ? 5 : 1) != 0) continue;
    const Fakes fakes;
    INFO(to_string(mode) << ", dropped in the order " << order[0] << order[1] << order[2] << order[3]
                         << order[4]);
    Parts parts;
    parts.device = Device::cuda();
    // Memory of the caller's, which frees nothing, and so waits for nothing.
    std::vector<std::vector<std::byte>> memory;
    const auto give = [&](std::int64_t bytes) {
      memory.emplace_back(static_cast<std::size_t>(bytes) + 256);
      auto address = reinterpret_cast<std::uintptr_t>(memory.back().data());
      address = (address + 255) & ~std::uintptr_t{255};
      return BufferView{reinterpret_cast<void*>(address), bytes};
    };
    parts.executable = compile(branches(2), *parts.device);
    parts.prepared = parts.executable->prepare();
    parts.stream = parts.device->stream();
    const BufferView lent = give(parts.prepared->workspace_bytes());
    parts.workspace =
        own_memory ? parts.prepared->workspace({mode}) : parts.prepared->workspace(lent, {mode});
    std::vector<BufferView> views;
    for (std::size_t i = 0; i < parts.executable->slots().size(); ++i) {
      views.push_back(give(parts.prepared->bytes(i)));
    }
    fakes.hold(true);
    REQUIRE(parts.prepared->run(*parts.stream, views, *parts.workspace));
    REQUIRE(fakes.in_flight() > 0);
    for (const int part : order) parts.drop(part);
    fakes.require_clean();
    fakes.hold(false);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("what a run in flight needs lives until it is over, whatever goes first", "[cuda][lifetime]") {
  for (const ExecutionMode mode : {ExecutionMode::streams, ExecutionMode::graph}) {
    for (const bool own_memory : {false, true}) check_all_orders(mode, own_memory);
  }
}

TEST_CASE("a resource gets a workspace's memory back when its run is over", "[cuda][lifetime]") {
  const FakeEnvironment environment;
  for (const ExecutionMode mode : {ExecutionMode::streams, ExecutionMode::graph}) {
    const Fakes fakes;
    {
      const Device device = Device::cuda();
      const auto resource = std::make_shared<CountingResource>(device);
      const Executable executable = compile(branches(2), device.with_memory(resource));
      WholeRun run(executable, {}, {mode});
      REQUIRE(resource->live() == run.buffers.size() + 2);
      fakes.hold(true);
      REQUIRE(run.run());
      REQUIRE(fakes.in_flight() > 0);
      int in_flight = -1;
      resource->on_return = [&] { in_flight = fakes.in_flight(); };
      run.workspace = Workspace();
      CHECK(in_flight == 0);
      fakes.hold(false);
      resource->on_return = nullptr;
    }
    fakes.require_clean();
  }
}

TEST_CASE("another workspace takes the place of one in flight", "[cuda][lifetime]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    const Executable executable = compile(branches(2), Device::cuda());
    WholeRun run(executable, {}, {ExecutionMode::graph});
    fakes.hold(true);
    REQUIRE(run.run());
    run.workspace = run.prepared.workspace({ExecutionMode::graph});
    CHECK(fakes.misuse() == 0);
    CHECK(run.run());
    fakes.hold(false);
  }
  fakes.require_clean();
}

TEST_CASE("a stream of another context or device is refused in both modes", "[cuda][lifetime]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    const Device device = Device::cuda(), second = Device::cuda();
    const Executable executable = compile(branches(2), device);
    for (const ExecutionMode mode : {ExecutionMode::streams, ExecutionMode::graph}) {
      WholeRun run(executable, {}, {mode});
      CHECK(contains(error_info([&] { device.wrap_stream(fakes.foreign_stream()); }).message,
                     "belongs to another context"));
      Stream other = second.stream();
      const int before = fakes.call_count();
      const Status status = run.prepared.run(other, run.views, run.workspace);
      CHECK(status.code() == ErrorCode::invalid_argument);
      CHECK(contains(status.message(), "the stream is of another device than the executable's"));
      CHECK(fakes.call_count() == before);
      CHECK(run.run());
    }
  }
  fakes.require_clean();
}

}  // namespace
}  // namespace fuse::test
#endif
