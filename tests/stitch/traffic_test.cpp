// What stitched kernels move, counted by the emulated device. SPDX-License-Identifier: Apache-2.0
#include "runtime/traffic.hpp"

#include "runtime/backend.hpp"
#include "runtime/random_fill.hpp"
#include "support/catch.hpp"
#include "support/stitch_graphs.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// Of values of 1 MB and more, in one run.
runtime::Traffic traffic_of(const Graph& graph) {
  const Device device = Device::emulated({.checked = true, .optimization = 0});
  const Executable executable = compile(graph, device);
  Session session(executable);
  const std::vector<Slot>& slots = executable.slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].kind == Slot::Kind::output) continue;
    runtime::HostTensor tensor = runtime::HostTensor::make(slots[i].dtype, session.prepared().shape(i));
    if (is_floating(slots[i].dtype)) runtime::random_fill(tensor, 1, slots[i].name, 0.25, 2);
    session.set(slots[i].name, tensor.data);
  }
  device.backend()->reset_counts();
  session.run();
  return traffic_of(executable.stages(), graph.ir(), {}, device.backend()->counts()).large_values;
}

}  // namespace

TEST_CASE("a row that fits in registers is loaded once", "[stitch][emulated]") {
  for (const StitchGraph& each : stitch_graphs()) {
    const runtime::Traffic traffic = traffic_of(each.build(f32, 288, 1024));
    INFO(each.name << ": " << traffic.requested() << " bytes, " << traffic.sectors() << " in sectors; floor "
                   << traffic.floor);
    CHECK(traffic.floor > 0);
    // A group of group_norm has 288 * 64 elements; rows and columns of layer_norm_backward are two kernels.
    const bool fits = each.one_kernel && std::string(each.name) != "group_norm";
    CHECK(static_cast<double>(traffic.requested()) <=
          (fits ? 1.05 : 2.0) * static_cast<double>(traffic.floor));
    CHECK(static_cast<double>(traffic.sectors()) <= (fits ? 1.10 : 2.0) * static_cast<double>(traffic.floor));
  }
}
