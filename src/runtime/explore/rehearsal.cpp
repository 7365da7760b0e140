// SPDX-License-Identifier: Apache-2.0
#include "runtime/explore/rehearsal.hpp"

#include <fmt/format.h>

#include <vector>

#include "base/access.hpp"
#include "compile/compile.hpp"

namespace fuse::runtime {
namespace {

/// Buffers of an emulated run: inputs as they are given, outputs of their own or their donors'.
std::vector<Buffer> buffers_of(const Prepared& prepared, const std::vector<Slot>& slots, const Device& device,
                               const std::map<std::size_t, HostTensor>& inputs) {
  std::vector<Buffer> result(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i].donor) result[i] = device.allocate(prepared.bytes(i));
    if (const auto input = inputs.find(i); input != inputs.end()) result[i].upload(input->second.data);
  }
  return result;
}

}  // namespace

Rehearsal::Rehearsal(const Graph& graph, const Device& device, const DimValues& dims, double most_operations)
    : graph_(graph), dims_(dims) {
  if (device.kind() != DeviceKind::cuda || most_operations == 0) return;
  const double operations = operations_of(ir_of(graph), dims);
  if (operations > most_operations) {
    give_up(fmt::format("the graph has {:.3g} operations, and at most {:.3g} are emulated", operations,
                        most_operations));
    return;
  }
  try {
    device_ = Device::emulated_like(device, {.checked = true, .threads = 1, .optimization = 0});
  } catch (const Error& failed) {
    give_up(failed.what());
  }
}

std::string Rehearsal::fault_of(const CompileOptions& how, const Snapshot& snapshot) {
  const std::lock_guard lock(running_);
  if (!device_) return "";
  try {
    if (inputs_.empty()) inputs_ = snapshot.inputs();
    run(how);
    ++runs_;
  } catch (const Error& failed) {
    if (failed.code() == ErrorCode::kernel_fault) {
      ++runs_;
      return fmt::format("on the emulated device: {}", failed.what());
    }
    // It is the emulated device that cannot: it has no compiler, or no memory.
    give_up(failed.what());
    device_.reset();
    inputs_.clear();
  }
  return "";
}

void Rehearsal::forget() {
  const std::unique_lock lock(running_, std::try_to_lock);
  if (!lock) return;
  inputs_.clear();
  device_.reset();
}

void Rehearsal::give_up(const std::string& why) {
  const std::lock_guard lock(telling_);
  missing_why_ = why;
}

void Rehearsal::run(const CompileOptions& how) {
  const Executable executable = compile_candidate(graph_, *device_, how);
  const Prepared prepared = executable.prepare(dims_);
  const std::vector<Slot>& slots = executable.slots();
  const std::vector<Buffer> buffers = buffers_of(prepared, slots, *device_, inputs_);
  std::vector<BufferView> views;
  for (std::size_t i = 0; i < slots.size(); ++i) views.push_back(buffers[slots[i].donor.value_or(i)].view());
  Stream stream = device_->stream();
  Workspace workspace = prepared.workspace();
  const Buffer packed = device_->allocate(prepared.packed_bytes());
  if (prepared.packed_bytes() > 0) prepared.pack(stream, views, packed.view()).throw_if_failed();
  prepared.run(stream, views, workspace, packed.view()).throw_if_failed();
  stream.synchronize().throw_if_failed();
}

std::string Rehearsal::missing_why() const {
  const std::lock_guard lock(telling_);
  return missing_why_;
}

}  // namespace fuse::runtime
