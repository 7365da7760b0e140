// What goes wrong around an explorer, or changes under it: inputs that hide what other options do, weights
// that change, memory that ends. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fuse/memory.hpp>
#include <mutex>

#include "base/access.hpp"
#include "explore/explorer_support.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/emulated/virtual_clock.hpp"
#include "support/sanitized.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using runtime::ClockedWork;

namespace {

/// Any launch may be the fastest.
double hashed_cost(const ClockedWork& work) {
  return 1e-6 * static_cast<double>(1 + (work.residency.blocks * 7 + work.residency.threads * 13) % 11);
}

/// Memory of a device, of which there are so many blocks and no more. Thread safe.
class FewBlocks final : public MemoryResource {
 public:
  FewBlocks(Device from, int blocks) : pool_(std::move(from)), left_(blocks) {}
  void* allocate(std::int64_t bytes) override {
    const std::lock_guard lock(mutex_);
    if (left_ == 0) return nullptr;
    --left_;
    return pool_.allocate(bytes);
  }
  void deallocate(void* address, std::int64_t bytes) noexcept override {
    pool_.deallocate(address, bytes);
    const std::lock_guard lock(mutex_);
    ++left_;
  }
  int left() {
    const std::lock_guard lock(mutex_);
    return left_;
  }

 private:
  MemoryPool pool_;
  std::mutex mutex_;
  int left_;
};

/// A graph whose merged weights are packed.
Graph packed_graph() {
  Graph g("packed");
  const Tensor x = g.input("x", f32, {8, 32});
  const Tensor a = matmul(x, g.parameter("a", f32, {32, 16})), b = matmul(x, g.parameter("b", f32, {32, 16}));
  g.output("y", softmax(tanh(a) * exp(b * 0.1)));
  return g;
}

}  // namespace

TEST_CASE("inputs of zeros do not let another order of additions pass", "[explore][emulated]") {
  // By default lanes of a warp have several rows, and lie apart.
  Graph graph("middle");
  graph.output("y", sum(graph.input("x", f32, {4, 256, 40}), {1}));
  const Device device = clocked_device();
  runtime::plant_costs(*backend_of(device), hashed_cost);
  Explorer explorer(graph, device, {}, {.max_options = 12});
  ExplorerBuffers buffers(explorer), twin(explorer);
  const Prepared prepared = compile(graph, device).prepare();
  Workspace workspace = prepared.workspace();
  const std::size_t bytes = static_cast<std::size_t>(buffers.own[0].size());
  buffers.own[0].upload(std::vector<std::byte>(bytes));
  int runs = 0;
  run_to_end(explorer, buffers, [&] {
    if (++runs < 3) return;
    std::vector<std::byte> random(bytes);
    twin.own[0].download(random);
    buffers.own[0].upload(random);
    if (runs == 3) return;
    Stream stream = device.stream();
    prepared.run(stream, twin.views, workspace).throw_if_failed();
    CHECK(buffers.output("y") == twin.output("y"));
  });
}

TEST_CASE("runs read the weights that are there, whatever the compiler's thread checks beside them",
          "[explore][emulated][threads]") {
  const Graph graph = packed_graph();
  const Device device = clocked_device();
  runtime::plant_costs(*backend_of(device), hashed_cost);
  Explorer explorer(graph, device, {}, {.bits = Bits::any, .max_options = 4});
  REQUIRE(explorer.prepared().packed_bytes() > 0);
  ExplorerBuffers buffers(explorer), twin(explorer);
  const Prepared prepared = compile(graph, device).prepare();
  Workspace workspace = prepared.workspace();
  const Buffer packed = device.allocate(prepared.packed_bytes());
  Stream stream = device.stream();
  for (int run = 0; run < 60; ++run) {
    if (run % 3 == 1) {
      runtime::HostTensor weight = runtime::HostTensor::make(f32, {32, 16});
      runtime::random_fill(weight, static_cast<std::uint64_t>(run), "a", -1, 1);
      for (ExplorerBuffers* each : {&buffers, &twin}) each->own[1].upload(weight.data);
      explorer.parameters_changed();
    }
    explorer.run(stream, buffers.views).throw_if_failed();
    prepared.pack(stream, twin.views, packed.view()).throw_if_failed();
    prepared.run(stream, twin.views, workspace, packed.view()).throw_if_failed();
    stream.synchronize().throw_if_failed();
    const std::vector<std::byte> got = buffers.output("y"), right = twin.output("y");
    double most = 0;
    for (std::size_t i = 0; i < right.size(); i += sizeof(float)) {
      float a = 0, b = 0;
      std::memcpy(&a, &got[i], sizeof a);
      std::memcpy(&b, &right[i], sizeof b);
      most = std::max(most, static_cast<double>(std::abs(a - b)));
    }
    CHECK(most < 1e-6);  // values of a softmax, of other orders of addition
  }
  CHECK(explorer.progress().dropped.empty());
}

TEST_CASE("memory that is enough for the default is enough, and what was kept is given back",
          "[explore][emulated]") {
  const Graph graph = packed_graph();
  for (const int blocks : {2, 3, 5, 7, 10, 20}) {
    if (sanitized() && blocks != 3 && blocks != 20) continue;
    INFO(blocks << " blocks");
    const Device plain = clocked_device();
    runtime::plant_costs(*backend_of(plain), hashed_cost);
    const auto few = std::make_shared<FewBlocks>(plain, blocks);
    Explorer explorer(graph, plain.with_memory(few), {},
                      {.bits = Bits::any, .max_options = 2, .max_cuts = 1});
    ExplorerBuffers buffers(explorer, plain);
    Stream stream = plain.stream();
    for (int run = 0; run < 20; ++run) {
      CHECK(explorer.run(stream, buffers.views));
      CHECK(stream.synchronize());
      explorer.wait_for_compiler();
    }
    CHECK(explorer.done());
    // Packed memory and two workspaces, of the default and of the winner.
    CHECK(few->left() >= blocks - 6);
  }
}

TEST_CASE("what was measured is what the file says, where blocks wait for each other",
          "[explore][emulated]") {
  Graph g("products_and_sum");
  for (int i = 0; i < 16; ++i) {
    const std::string name = std::to_string(i);
    const std::int64_t k = 16 * (i % 4 + 1);
    g.output("y" + name, matmul(g.input("x" + name, f32, {16, k}), g.parameter("w" + name, f32, {k, 24})));
  }
  g.output("s", sum(g.input("z", f32, {1, 65536}), {1}));
  const Device device = clocked_device();
  Explorer explorer(g, device, {}, {.max_options = 4, .max_cuts = 1, .max_epochs = 1});
  ExplorerBuffers buffers(explorer);
  run_to_end(explorer, buffers);
  // The default's blocks hold the slots of others, whose fallback launches would be measured.
  const std::vector<std::string> dropped = explorer.progress().dropped;
  REQUIRE_FALSE(dropped.empty());
  for (const std::string& each : dropped) CHECK(each.ends_with("it cannot be measured beside it"));
  const Device other = clocked_device();
  runtime::Variant variant(compile(g, other, {.decisions = explorer.tuning().text()}), {});
  const ExplorerBuffers its_buffers(explorer, other);
  CHECK(measured_seconds(variant, its_buffers.views) == Approx(explorer.progress().tuned_seconds));
}
