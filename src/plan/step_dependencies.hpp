// StepDependencies: which steps must have ended before another starts, since it reads what they wrote or
// overwrites what they used. An output that takes an input's memory is that memory.
//
// Before:  step 0 writes v3   step 1 reads v3 writes v4   step 2 reads v3 writes v5   step 3 reads v4, v5
// After:   1 after 0   2 after 0   3 after 1, 2
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "plan/plan.hpp"

namespace fuse::schedule {

class StepDependencies {
 public:
  /// Whether two values in one memory have a byte in common.
  using Meet = std::function<bool(ValueId, ValueId)>;

  /// The plan outlives this.
  StepDependencies(const Plan& plan, Meet meet);

  /// For the next step, counted from 0, the steps that it depends on, in ascending order.
  std::vector<std::uint32_t> add(const Step& step);

 private:
  /// A value inside another that a step wrote.
  struct Part {
    ValueId id = 0;
    std::uint32_t writer = 0;
  };
  /// The users of a value's memory since its last write.
  struct Users {
    std::optional<std::uint32_t> writer{};
    std::vector<std::uint32_t> readers{};
    std::vector<Part> parts{};
  };

  bool is_part(ValueId id) const { return plan_.values[id].inside.has_value(); }
  /// Which steps use the memory that the value lies in.
  Users& users_of(ValueId id);

  const Plan& plan_;
  const Meet meet_;
  std::vector<ValueId> roots_;
  std::vector<Users> users_;  // for each value that is a root
  std::uint32_t count_ = 0;
};

/// For each step of a run, the steps that it depends on whatever the dims are. Where parts of one memory
/// overlap only for some dims, prepare knows.
std::vector<std::vector<std::uint32_t>> certain_dependencies(const Plan& plan);

}  // namespace fuse::schedule
