// SPDX-License-Identifier: Apache-2.0
#include "runtime/prepare/fixed_layout.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "plan/step_dependencies.hpp"

namespace fuse::runtime {
namespace {

using schedule::GemmStep;
using schedule::KernelStep;
using schedule::Plan;
using schedule::PlanValue;
using schedule::Step;
using schedule::ValueId;

constexpr std::size_t most_steps = 2048;
using StepNumber = std::uint32_t;

/// Which steps end before which others start, whatever the dims and streams are.
class CertainOrder {
 public:
  explicit CertainOrder(const Plan& plan) {
    const std::vector<std::vector<StepNumber>> after = schedule::certain_dependencies(plan);
    for (const std::vector<StepNumber>& steps : after) {
      std::vector<bool> before(after.size());
      for (const StepNumber step : steps) {
        before[step] = true;
        for (StepNumber i = 0; i < step; ++i) before[i] = before[i] || before_[step][i];
      }
      before_.push_back(std::move(before));
    }
  }
  bool operator()(StepNumber a, StepNumber b) const { return before_[b][a]; }
  StepNumber count() const { return static_cast<StepNumber>(before_.size()); }

 private:
  std::vector<std::vector<bool>> before_;
};

/// Steps that use a memory, and those that write it.
struct Uses {
  std::vector<StepNumber> users{}, makers{};
};

std::vector<Uses> uses_of(const Plan& plan, const std::vector<ValueId>& roots) {
  std::vector<Uses> uses(plan.values.size());
  for (StepNumber i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    std::set<ValueId> used, made;
    for (const ValueId id : step.reads) used.insert(roots[id]);
    for (const ValueId id : step.writes) made.insert(roots[id]);
    if (const auto* const kernel = std::get_if<KernelStep>(&step.work))
      for (const KernelStep& launch : kernel->fallback)
        for (const ValueId id : launch.buffers) used.insert(roots[id]);
    used.insert(made.begin(), made.end());
    for (const ValueId id : used) uses[id].users.push_back(i);
    for (const ValueId id : made) uses[id].makers.push_back(i);
  }
  // What fallback launches alone use, they make.
  for (Uses& each : uses)
    if (each.makers.empty()) each.makers = each.users;
  return uses;
}

LiveRange range_of(const Uses& uses, std::int64_t bytes, const CertainOrder& before) {
  LiveRange range;
  range.bytes = bytes;
  const auto is_apart = [&](StepNumber step) {
    return std::all_of(uses.users.begin(), uses.users.end(),
                       [&](StepNumber user) { return before(user, step); }) ||
           std::all_of(uses.makers.begin(), uses.makers.end(),
                       [&](StepNumber maker) { return before(step, maker); });
  };
  for (StepNumber step = 0; step < before.count(); ++step) {
    if (is_apart(step)) continue;
    const bool goes_on = !range.live.empty() && range.live.back().last + 1 == step;
    goes_on ? void(range.live.back().last = step) : range.live.push_back({step, step});
  }
  range.defined = range.start = uses.makers.front();
  range.also_defined.assign(uses.makers.begin() + 1, uses.makers.end());
  return range;
}

}  // namespace

std::vector<std::int64_t> FixedLayout::offsets_for(const Plan& plan, std::span<const ReadyStep> steps,
                                                   std::span<const Scratch> scratch_of_steps,
                                                   const ValueLocations& locations) const {
  std::vector<std::int64_t> result(locations.memory_bytes().size());
  for (ValueId id = 0; id < plan.values.size(); ++id)
    if (const std::optional<std::size_t> memory = locations.memory_of(id); memory && !locations.is_part(id))
      result[*memory] = offsets[id];
  for (const Scratch& each : scratch_of_steps)
    result.push_back(scratch[std::get<GemmStep>(plan.steps[steps[each.task].number].work).c]);
  return result;
}

std::optional<FixedLayout> fixed_layout(const Plan& plan, std::int64_t gemm_scratch) {
  if (plan.most_bytes.empty() || plan.steps.size() > most_steps) return std::nullopt;
  const std::vector<ValueId> roots = schedule::roots(plan);
  const std::vector<Uses> uses = uses_of(plan, roots);
  const CertainOrder before(plan);
  FixedLayout layout{.offsets = std::vector<std::int64_t>(plan.values.size()),
                     .scratch = std::vector<std::int64_t>(plan.values.size())};
  std::vector<LiveRange> ranges;
  std::vector<std::int64_t*> places;
  for (ValueId id = 0; id < plan.values.size(); ++id) {
    const bool is_memory = plan.values[id].kind == PlanValue::Kind::temporary && roots[id] == id;
    if (!is_memory || uses[id].users.empty()) continue;
    if (plan.most_bytes[id] == Plan::no_bound) return std::nullopt;
    ranges.push_back(range_of(uses[id], plan.most_bytes[id], before));
    places.push_back(&layout.offsets[id]);
  }
  for (StepNumber i = 0; i < plan.steps.size(); ++i) {
    const auto* const gemm = std::get_if<GemmStep>(&plan.steps[i].work);
    if (!gemm || gemm_scratch == 0) continue;
    ranges.push_back(range_of({.users = {i}, .makers = {i}}, gemm_scratch, before));
    places.push_back(&layout.scratch[gemm->c]);
  }
  MemoryPlan memory;
  try {
    memory = plan_memory(ranges);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_extent) throw;
    return std::nullopt;  // together they pass 63 bits
  }
  for (std::size_t i = 0; i < places.size(); ++i) *places[i] = memory.offsets[i];
  layout.total = memory.total;
  return layout;
}

}  // namespace fuse::runtime
