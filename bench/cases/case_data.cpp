// SPDX-License-Identifier: Apache-2.0
#include "cases/case_data.hpp"

#include <algorithm>
#include <cstring>

#include "base/access.hpp"
#include "runtime/device/backend.hpp"
#include "tensors/random_fill.hpp"

namespace fuse::bench {
namespace {

constexpr std::int64_t pattern_elements = 1 << 20;

/// Weights are small, so that layer after layer stays finite in f16; the scale of a norm is about 1. Labels
/// are classes of rows of 1,000 or more.
void fill(runtime::HostTensor& tensor, const Slot& slot) {
  if (slot.name.ends_with("gamma") || slot.name == "rstd") {
    runtime::random_fill(tensor, 1, slot.name, 0.5, 1.5);
  } else if (slot.name == "probabilities" || slot.name == "second_moment") {
    runtime::random_fill(tensor, 1, slot.name, 0, 1);
  } else if (slot.name == "labels") {
    runtime::random_fill(tensor, 1, slot.name, 0, 1000);
  } else if (slot.kind == Slot::Kind::parameter) {
    runtime::random_fill(tensor, 1, slot.name, -0.05, 0.05);
  } else {
    runtime::random_fill(tensor, 1, slot.name, -2, 2);
  }
}

}  // namespace

Extents shape_of(const Slot& slot) {
  Extents shape;
  for (const Dim& dim : slot.dims) shape.push_back(dim.constant());
  return shape;
}

runtime::HostTensor data_of(const Slot& slot) {
  runtime::HostTensor tensor = runtime::HostTensor::make(slot.dtype, shape_of(slot));
  const std::int64_t count = std::min(pattern_elements, tensor.element_count());
  runtime::HostTensor pattern = runtime::HostTensor::make(slot.dtype, {count});
  fill(pattern, slot);
  for (std::size_t at = 0; at < tensor.data.size(); at += pattern.data.size()) {
    const std::size_t bytes = std::min(pattern.data.size(), tensor.data.size() - at);
    std::memcpy(tensor.data.data() + at, pattern.data.data(), bytes);
  }
  return tensor;
}

BufferSets::BufferSets(const Executable& executable, const Prepared& prepared, std::int64_t sets) {
  const Device& device = executable.device();
  const std::vector<Slot>& slots = executable.slots();
  Stream stream = device.stream();
  workspace_ = prepared.workspace();
  for (std::int64_t i = 0; i < sets; ++i) {
    Set& set = sets_.emplace_back();
    set.packed = device.allocate(prepared.packed_bytes());
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      Buffer& buffer = set.buffers.emplace_back(device.allocate(prepared.bytes(slot)));
      set.views.push_back(buffer.view());
      if (slots[slot].kind == Slot::Kind::output) continue;
      if (i == 0) {
        buffer.upload(data_of(slots[slot]).data);
      } else {
        const void* const first = sets_[0].buffers[slot].address();
        backend_of(device)->copy(queue_of(stream), buffer.address(), first, buffer.size()).throw_if_failed();
      }
    }
    prepared.pack(stream, set.views, set.packed.view()).throw_if_failed();
  }
  stream.synchronize().throw_if_failed();
}

Status BufferSets::run(const Prepared& prepared, Stream& stream, std::int64_t set) noexcept {
  Set& buffers = sets_[static_cast<std::size_t>(set)];
  return prepared.run(stream, buffers.views, workspace_, buffers.packed.view());
}

runtime::HostTensor BufferSets::output(const Executable& executable, const Prepared& prepared) const {
  const std::size_t slot = executable.output_slot("y");
  runtime::HostTensor tensor =
      runtime::HostTensor::make(executable.slots()[slot].dtype, prepared.shape(slot));
  sets_[0].buffers[slot].download(tensor.data);
  return tensor;
}

}  // namespace fuse::bench
