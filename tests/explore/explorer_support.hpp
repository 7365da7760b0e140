// What tests of explorers share: a device whose times are planted, and the buffers of a graph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <fuse/explore.hpp>
#include <fuse/fuse.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "base/access.hpp"
#include "runtime/emulated/virtual_clock.hpp"
#include "runtime/explore/variant.hpp"
#include "support/catch.hpp"
#include "tensors/host_tensor.hpp"
#include "tensors/random_fill.hpp"

namespace fuse::test {

inline Device clocked_device(double noise = 0, std::uint64_t seed = 1) {
  return Device::emulated(
      {.optimization = 0, .virtual_clock = true, .clock_noise = noise, .clock_seed = seed});
}

/// Buffers of an explorer's slots, with random inputs.
struct ExplorerBuffers {
  explicit ExplorerBuffers(const Explorer& explorer)
      : ExplorerBuffers(explorer, explorer.default_executable().device()) {}
  ExplorerBuffers(const Explorer& explorer, const Device& device)
      : slots(explorer.slots()), own(slots.size()) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (!slots[i].donor) own[i] = device.allocate(explorer.prepared().bytes(i));
      if (slots[i].kind == Slot::Kind::output) continue;
      runtime::HostTensor tensor = runtime::HostTensor::make(slots[i].dtype, explorer.prepared().shape(i));
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
inline void run_to_end(Explorer& explorer, ExplorerBuffers& buffers,
                       const std::function<void()>& after = {}) {
  Stream stream = explorer.default_executable().device().stream();
  for (int run = 0; !explorer.done(); ++run) {
    REQUIRE(run < 5000);
    explorer.run(stream, buffers.views).throw_if_failed();
    stream.synchronize().throw_if_failed();
    if (after) after();
    explorer.wait_for_compiler();
  }
}

/// The seconds of one measured run.
inline double measured_seconds(runtime::Variant& variant, std::span<const BufferView> buffers) {
  variant.make_measurable();
  Stream stream = variant.executable().device().stream();
  variant.run_measured(stream, buffers, 1).throw_if_failed();
  stream.synchronize().throw_if_failed();
  return variant.measured().value().at("");
}

/// The seconds of a run by these costs, on a device of its own: no queue of another run is at work beside it.
inline double seconds_of(const Graph& graph, const CompileOptions& how,
                         const std::function<double(const runtime::ClockedWork&)>& costs) {
  const Device device = clocked_device();
  runtime::plant_costs(*backend_of(device), costs);
  runtime::Variant variant(compile(graph, device, how), {});
  const Explorer explorer(graph, device, {}, {}, how);
  const ExplorerBuffers buffers(explorer);
  return measured_seconds(variant, buffers.views);
}

inline Graph softmax_graph(std::int64_t rows, std::int64_t columns) {
  Graph g("softmax");
  const Tensor x = g.input("x", f32, {rows, columns});
  g.output("y", softmax(x, -1));
  return g;
}

}  // namespace fuse::test
