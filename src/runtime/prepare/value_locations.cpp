// SPDX-License-Identifier: Apache-2.0
#include "runtime/prepare/value_locations.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tensors/host_tensor.hpp"

namespace fuse::runtime {
namespace {

using schedule::PlanValue;

/// The next offset of the packed memory.
std::int64_t after(const ValueLocation& location) {
  std::int64_t end = 0;
  if (__builtin_add_overflow(location.offset, location.bytes, &end) ||
      __builtin_add_overflow(end, workspace_alignment - 1, &end)) {
    throw Error(
        {.code = ErrorCode::invalid_extent, .message = "the packed values overflow 63 bits of bytes"});
  }
  return end & -workspace_alignment;
}

[[noreturn]] void fail(std::string message) {
  throw Error({.kind = ErrorKind::internal, .code = ErrorCode::internal, .message = std::move(message)});
}

}  // namespace

std::int64_t bytes_of(DType dtype, const std::vector<std::int64_t>& shape) {
  const auto count = checked_element_count(shape, dtype);
  if (!count) {
    throw Error({.code = ErrorCode::invalid_extent,
                 .message = fmt::format("the bytes of {} overflow 63 bits", type_text(dtype, shape))});
  }
  return *count * static_cast<std::int64_t>(size_of(dtype));
}

ValueLocations::ValueLocations(const schedule::Plan& plan, const Binding& binding,
                               std::span<const std::int64_t> slots, std::int64_t packed,
                               const PlanFacts* facts)
    : binding_(binding), roots_(facts ? facts->roots : own_roots_), packed_bytes_(packed) {
  if (!facts) roots_ = own_roots_ = schedule::roots(plan);
  locations_.reserve(plan.values.size());
  memory_bytes_.reserve(plan.values.size());
  std::vector<std::int64_t> shape;
  for (const PlanValue& value : plan.values) {
    ValueLocation location;
    const std::size_t id = locations_.size();
    if (const std::size_t first = facts ? facts->values[id] : id; first != id) {
      location.bytes = locations_[first].bytes;
    } else {
      shape.clear();
      for (const Dim& dim : value.dims) shape.push_back(binding.value(dim));
      location.bytes = bytes_of(value.dtype, shape);
    }
    if (id < slots.size() && location.bytes != slots[id]) {
      fail(fmt::format("'{}' has {} bytes in the plan, {} for the caller", value.name, location.bytes,
                       slots[id]));
    }
    if (value.inside) {
      locate_inside(value, location);
      memory_bytes_.push_back(0);  // it has none of its own
    } else if (value.donor && value.kind == PlanValue::Kind::temporary) {
      location.slot = locations_[*value.donor].slot;
      memory_bytes_.push_back(0);
    } else if (value.kind == PlanValue::Kind::temporary) {
      memory_bytes_.push_back(location.bytes);
    } else if (value.kind == PlanValue::Kind::packed) {
      location = add_packed(location.bytes);
    } else {
      location.slot = static_cast<std::int32_t>(locations_.size());
    }
    locations_.push_back(location);
  }
  first_temporary_ = locations_.size() - memory_bytes_.size();
}

/// The location of a value in the memory of another, which prepare is the first to know in numbers.
void ValueLocations::locate_inside(const PlanValue& value, ValueLocation& location) const {
  const ValueLocation& whole = locations_[value.inside->whole];
  const std::int64_t offset = binding_.value(value.inside->offset_bytes);
  if (value.inside->is_rest) {
    location.slot = whole.slot;
    location.bytes = std::max<std::int64_t>(0, whole.bytes - offset);
    location.offset = whole.offset + (location.bytes > 0 ? offset : 0);
    return;
  }
  if (offset < 0 || offset > whole.bytes - location.bytes) {
    fail(fmt::format("'{}' has {} bytes at {} of {}", value.name, location.bytes, offset, whole.bytes));
  }
  location.slot = whole.slot;
  if (location.bytes == 0) return;
  location.offset = whole.offset + offset;
  if (offset % schedule::view_alignment == 0) return;
  fail(fmt::format("'{}' lies at {}, which is no multiple of {}", value.name, offset,
                   schedule::view_alignment));
}

bool ValueLocations::meet(ValueId a, ValueId b) const {
  const ValueLocation &x = locations_[a], &y = locations_[b];
  return x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
}

ValueLocation ValueLocations::add_packed(std::int64_t bytes) {
  const ValueLocation location{.slot = ValueLocation::packed, .offset = packed_bytes_, .bytes = bytes};
  packed_bytes_ = after(location);
  return location;
}

void ValueLocations::settle(ValueLocation& location, const MemoryPlan& memory) const {
  if (location.slot != ValueLocation::workspace || location.offset >= 0) return;
  const auto id = static_cast<std::size_t>(~location.offset);
  location.offset = memory.offsets[roots_[id] - first_temporary_] + locations_[id].offset;
}

}  // namespace fuse::runtime
