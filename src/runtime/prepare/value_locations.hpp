// ValueLocations: where each value of a plan lies, once the dims are numbers: in a slot's buffer, in the
// packed memory, or in the workspace, whose offsets follow from who uses what when (memory_plan.hpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/execute/binding.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "runtime/prepare/memory_plan.hpp"

namespace fuse::runtime {

/// Throws invalid_extent where they overflow 63 bits.
std::int64_t bytes_of(DType dtype, const std::vector<std::int64_t>& shape);

class ValueLocations {
 public:
  using ValueId = schedule::ValueId;
  using TaskId = schedule::TaskId;

  /// `slots`: the bytes of each slot's buffer. `packed`: what of the packed memory belongs to others, before
  /// this plan's. Throws invalid_extent; internal where the plan contradicts itself.
  ValueLocations(const schedule::Plan& plan, const Binding& binding, std::span<const std::int64_t> slots,
                 std::int64_t packed = 0);

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
  ValueLocation location(ValueId id) const;

  /// A task reads or writes it, so its memory is in use then.
  void note_use(ValueId id, TaskId task, bool writes);
  /// Memory of the workspace that one task alone uses; gives its number.
  std::size_t add_scratch(std::int64_t bytes, TaskId task);
  /// More packed memory, behind what there is.
  ValueLocation add_packed(std::int64_t bytes);
  /// The plan of all temporaries and scratch, when the order of the tasks is known.
  MemoryPlan plan_workspace(const schedule::StreamPlan& streams) const;
  void settle(ValueLocation& location, const MemoryPlan& memory) const;

 private:
  /// A block of the workspace's memory.
  struct Owned {
    std::int64_t bytes = 0;
    // `makers` are the tasks that make its parts; none where the first user makes it.
    std::vector<TaskId> users{}, makers{};
  };

  void locate_inside(const schedule::PlanValue& value, ValueLocation& location) const;

  const Binding& binding_;
  std::vector<ValueId> roots_;  // for each value, its root
  // For each value, its location; in the workspace, without the root's offset.
  std::vector<ValueLocation> locations_;
  std::vector<Owned> owned_;         // the memory of the temporaries, then of scratch
  std::size_t first_temporary_ = 0;  // the value of the first
  std::int64_t packed_bytes_;
};

}  // namespace fuse::runtime
