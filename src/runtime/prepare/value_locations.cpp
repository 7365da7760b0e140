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
    : binding_(binding), packed_bytes_(packed) {
  std::vector<Place> own_places;
  std::span<const Place> places;
  if (facts) {
    roots_ = facts->roots;
    places = facts->places;
  } else {
    roots_ = own_roots_ = schedule::roots(plan);
    places = own_places = places_of(plan);
  }
  locations_.reserve(plan.values.size());
  memory_bytes_.reserve(plan.values.size());
  std::vector<std::int64_t> shape;
  const auto computed = [&](const PlanValue& value) {
    shape.clear();
    for (const Dim& dim : value.dims) shape.push_back(binding.value(dim));
    return bytes_of(value.dtype, shape);
  };
  for (ValueId id = 0; id < plan.values.size(); ++id) {
    const ValueId first = facts ? facts->values[id] : id;
    const std::int64_t bytes = first == id ? computed(plan.values[id]) : locations_[first].bytes;
    if (id < slots.size() && bytes != slots[id]) {
      fail(fmt::format("'{}' has {} bytes in the plan, {} for the caller", plan.values[id].name, bytes,
                       slots[id]));
    }
    ValueLocation& location = locations_.emplace_back(ValueLocation{.bytes = bytes});
    switch (places[id]) {
      case Place::slot:
        location.slot = static_cast<std::int32_t>(id);
        continue;
      case Place::packed:
        location = add_packed(bytes);
        continue;
      case Place::memory:
        memory_bytes_.push_back(bytes);
        continue;
      case Place::donor:
        location.slot = locations_[*plan.values[id].donor].slot;
        break;
      case Place::inside:
        locate_inside(plan.values[id], location);
        break;
    }
    memory_bytes_.push_back(0);  // it has none of its own
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

}  // namespace fuse::runtime
