// One run with random inputs, and what the emulated device counted in it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/fuse.hpp>
#include <vector>

#include "runtime/backend.hpp"
#include "runtime/random_fill.hpp"

namespace fuse::test {

inline std::vector<runtime::KernelCounts> counted_run(const Executable& executable, Session& session) {
  const std::vector<Slot>& slots = executable.slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].kind == Slot::Kind::output) continue;
    runtime::HostTensor tensor = runtime::HostTensor::make(slots[i].dtype, session.prepared().shape(i));
    if (is_floating(slots[i].dtype)) runtime::random_fill(tensor, 1, slots[i].name, 0.25, 2);
    session.set(slots[i].name, tensor.data);
  }
  session.pack();
  const Device device = executable.device();
  device.backend()->reset_counts();
  session.run();
  return device.backend()->counts();
}

}  // namespace fuse::test
