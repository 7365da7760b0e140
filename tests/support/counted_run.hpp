// One run with random inputs, and what the emulated device counted in it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <fuse/fuse.hpp>
#include <map>
#include <string>
#include <vector>

#include "base/access.hpp"
#include "runtime/device/backend.hpp"
#include "tensors/random_fill.hpp"

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
  backend_of(device)->reset_counts();
  session.run();
  return backend_of(device)->counts();
}

/// The bytes of each output of such a run.
inline std::map<std::string, std::vector<std::byte>> output_bytes(const Graph& graph, const Device& device,
                                                                  const CompileOptions& options) {
  const Executable executable = compile(graph, device, options);
  Session session(executable);
  counted_run(executable, session);
  std::map<std::string, std::vector<std::byte>> result;
  for (const Slot& slot : executable.slots()) {
    if (slot.kind == Slot::Kind::output) result[slot.name] = session.get(slot.name);
  }
  return result;
}

}  // namespace fuse::test
