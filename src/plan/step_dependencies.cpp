// SPDX-License-Identifier: Apache-2.0
#include "plan/step_dependencies.hpp"

#include <algorithm>
#include <utility>

namespace fuse::schedule {

StepDependencies::StepDependencies(const Plan& plan, Meet meet)
    : plan_(plan), meet_(std::move(meet)), roots_(roots(plan)), users_(plan.values.size()) {}

StepDependencies::Users& StepDependencies::users_of(ValueId id) {
  const ValueId root = roots_[id];
  return users_[plan_.values[root].donor.value_or(root)];
}

std::vector<std::uint32_t> StepDependencies::add(const Step& step) {
  const std::uint32_t number = count_++;
  std::vector<std::uint32_t> after;
  for (const ValueId id : step.reads) {
    const Users& users = users_of(id);
    if (users.writer) after.push_back(*users.writer);
    for (const Part& part : users.parts) {
      if (meet_(part.id, id)) after.push_back(part.writer);
    }
  }
  for (const ValueId id : step.writes) {
    if (is_part(id)) continue;  // no earlier step used it
    const Users& users = users_of(id);
    if (users.writer) after.push_back(*users.writer);
    after.insert(after.end(), users.readers.begin(), users.readers.end());
  }
  for (const ValueId id : step.reads) users_of(id).readers.push_back(number);
  for (const ValueId id : step.writes) {
    if (is_part(id)) {
      users_of(id).parts.push_back({id, number});
    } else {
      users_of(id) = {number, {}, {}};
    }
  }
  std::sort(after.begin(), after.end());
  after.erase(std::unique(after.begin(), after.end()), after.end());
  std::erase(after, number);
  return after;
}

std::vector<std::vector<std::uint32_t>> certain_dependencies(const Plan& plan) {
  const auto lies_in = [&](ValueId id, ValueId whole) {
    for (; id != whole; id = plan.values[id].inside->whole) {
      if (!plan.values[id].inside) return false;
    }
    return true;
  };
  StepDependencies dependencies(plan, [&](ValueId a, ValueId b) { return lies_in(a, b) || lies_in(b, a); });
  std::vector<std::vector<std::uint32_t>> result;
  for (const Step& step : plan.steps) result.push_back(dependencies.add(step));
  return result;
}

}  // namespace fuse::schedule
