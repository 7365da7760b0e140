// SPDX-License-Identifier: Apache-2.0
#include "plan/fallback_launches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace fuse::schedule {
namespace {

/// The values that the fallback launch uses, in the order of `values`.
std::vector<ValueId> used_by(const KernelStep& part, const std::vector<ValueId>& values) {
  std::vector<ValueId> used;
  for (const ValueId id : values) {
    if (std::count(part.buffers.begin(), part.buffers.end(), id)) used.push_back(id);
  }
  return used;
}

}  // namespace

bool has_fallback(const Step& step) {
  const auto* kernel = std::get_if<KernelStep>(&step.work);
  return step.cooperative && kernel && !kernel->fallback.empty();
}

Plan with_fallbacks(const Plan& plan, const std::function<bool(const Step&)>& cut) {
  Plan result = plan;
  result.steps.clear();
  const std::vector<ValueId> memory = roots(plan);
  std::vector<bool> left(plan.values.size());  // used by a kernel that was replaced
  for (const Step& step : plan.steps) {
    if (!has_fallback(step) || !cut(step)) {
      result.steps.push_back(step);
      continue;
    }
    const auto& whole = std::get<KernelStep>(step.work);
    for (const ValueId id : whole.buffers) left[memory[id]] = true;
    std::vector<ValueId> before;
    for (std::size_t i = 0; i < whole.fallback.size(); ++i) {
      const KernelStep& part = whole.fallback[i];
      Step made{.work = part,
                .reads = used_by(part, step.reads),
                .writes = used_by(part, step.writes),
                .continues = i > 0,
                .nodes = step.nodes,
                .origin = step.origin,
                .name = fmt::format("{}_{}", step.name, i),
                .version = step.version};
      // A fallback launch reads what those before it wrote.
      std::copy_if(made.writes.begin(), made.writes.end(), std::back_inserter(made.reads),
                   [&](ValueId id) { return std::count(before.begin(), before.end(), id) > 0; });
      before.insert(before.end(), made.writes.begin(), made.writes.end());
      result.steps.push_back(std::move(made));
    }
  }
  std::vector<bool> used(plan.values.size());
  for (const Step& step : result.steps) {
    if (std::holds_alternative<MemsetStep>(step.work)) continue;
    for (const ValueId id : step.reads) used[memory[id]] = true;
    for (const ValueId id : step.writes) used[memory[id]] = true;
  }
  std::erase_if(result.steps, [&](const Step& step) {
    const auto* memset = std::get_if<MemsetStep>(&step.work);
    return memset && left[memset->to] && !used[memset->to] &&
           plan.values[memset->to].kind == PlanValue::Kind::temporary;
  });
  return result;
}

}  // namespace fuse::schedule
