// ValueLocations: where each value of a plan lies, once the dims are numbers: in a slot's buffer, in the
// packed memory, or in the workspace, whose offsets follow from who uses what when (memory_plan.hpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/execute/binding.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "runtime/prepare/memory_plan.hpp"
#include "runtime/prepare/plan_facts.hpp"

namespace fuse::runtime {

/// Throws invalid_extent where they overflow 63 bits.
std::int64_t bytes_of(DType dtype, const std::vector<std::int64_t>& shape);

class ValueLocations {
 public:
  using ValueId = schedule::ValueId;
  using TaskId = schedule::TaskId;

  /// `slots`: the bytes of each slot's buffer. `packed`: what of the packed memory belongs to others, before
  /// this plan's. `facts`: those of the plan; null: they are not known. Throws invalid_extent; internal where
  /// the plan contradicts itself.
  ValueLocations(const schedule::Plan& plan, const Binding& binding, std::span<const std::int64_t> slots,
                 std::int64_t packed = 0, const PlanFacts* facts = nullptr);
  ValueLocations(const ValueLocations&) = delete;
  ValueLocations& operator=(const ValueLocations&) = delete;

  /// The end of the packed memory: the bytes of others, and of all packed values.
  std::int64_t packed_bytes() const { return packed_bytes_; }
  std::int64_t bytes(ValueId id) const { return locations_[id].bytes; }
  /// The value whose memory it lies in.
  ValueId root(ValueId id) const { return roots_[id]; }
  std::size_t count() const { return locations_.size(); }
  /// It is a part of another value's memory.
  bool is_part(ValueId id) const { return roots_[id] != id; }
  /// Two values in the same memory.
  bool meet(ValueId a, ValueId b) const;
  /// The location of the value. In the workspace the offset is the complement ~id of its number until
  /// `settle`.
  ValueLocation location(ValueId id) const {
    ValueLocation location = locations_[id];
    if (location.slot == ValueLocation::workspace) location.offset = ~static_cast<std::int64_t>(id);
    return location;
  }

  /// Which memory of the workspace the value lies in: that of the first temporary is 0; none for others.
  std::optional<std::size_t> memory_of(ValueId id) const {
    return roots_[id] < first_temporary_ ? std::nullopt
                                         : std::optional<std::size_t>(roots_[id] - first_temporary_);
  }
  /// The bytes of each memory of the workspace.
  const std::vector<std::int64_t>& memory_bytes() const { return memory_bytes_; }
  /// More packed memory, behind what there is.
  ValueLocation add_packed(std::int64_t bytes);
  void settle(ValueLocation& location, const MemoryPlan& memory) const {
    if (location.slot != ValueLocation::workspace || location.offset >= 0) return;
    const auto id = static_cast<std::size_t>(~location.offset);
    location.offset = memory.offsets[roots_[id] - first_temporary_] + locations_[id].offset;
  }

 private:
  void locate_inside(const schedule::PlanValue& value, ValueLocation& location) const;

  const Binding& binding_;
  std::vector<ValueId> own_roots_;  // where there are no facts
  std::span<const ValueId> roots_;  // for each value, its root
  // For each value, its location; in the workspace, without the root's offset.
  std::vector<ValueLocation> locations_;
  std::vector<std::int64_t> memory_bytes_;
  std::size_t first_temporary_ = 0;  // the value of the first
  std::int64_t packed_bytes_;
};

}  // namespace fuse::runtime
