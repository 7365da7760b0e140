// SPDX-License-Identifier: Apache-2.0
#include "plan/run_decision.hpp"

#include <fmt/format.h>

#include "plan/step_dependencies.hpp"
#include "plan/stream_plan.hpp"

namespace fuse::schedule {
namespace {

std::string steps_text(const Plan& plan) {
  return plan.steps.empty() ? "the plan has no steps"
                            : fmt::format("the plan has the steps 0 to {}", plan.steps.size() - 1);
}

std::optional<RunMisfit> misfit_of_count(std::string_view key, std::size_t count, const Plan& plan) {
  if (count == plan.steps.size()) return std::nullopt;
  return RunMisfit{fmt::format("{} has {} numbers, and the plan {} steps", key, count, plan.steps.size()),
                   steps_text(plan) + ", each of which has its number"};
}

std::optional<RunMisfit> wrong_order(const std::vector<std::uint32_t>& order, const Plan& plan) {
  if (order.empty()) return std::nullopt;
  std::vector<bool> seen(plan.steps.size());
  for (const std::uint32_t step : order) {
    if (step >= seen.size()) return RunMisfit{fmt::format("order has step {}", step), steps_text(plan)};
    if (seen[step])
      return RunMisfit{fmt::format("order has step {} twice", step), "it is a permutation of the steps"};
    seen[step] = true;
  }
  if (auto wrong = misfit_of_count("order", order.size(), plan)) return wrong;
  const std::vector<std::vector<std::uint32_t>> after = certain_dependencies(plan);
  seen.assign(seen.size(), false);
  for (const std::uint32_t step : order) {
    for (const std::uint32_t before : after[step]) {
      if (!seen[before]) return misfit_of_order(plan, step, before);
    }
    seen[step] = true;
  }
  return std::nullopt;
}

}  // namespace

RunMisfit misfit_of_order(const Plan& plan, std::uint32_t early, std::uint32_t late) {
  return {fmt::format("order has step {} before step {}, which it depends on", early, late),
          fmt::format("step {} ('{}') comes before step {} ('{}')", late, plan.steps[late].name, early,
                      plan.steps[early].name)};
}

std::optional<RunMisfit> misfit(const RunDecision& run, const Plan& plan) {
  if (auto wrong = wrong_order(run.order, plan)) return wrong;
  if (run.streams.empty()) return std::nullopt;
  if (auto wrong = misfit_of_count("streams", run.streams.size(), plan)) return wrong;
  for (std::size_t step = 0; step < run.streams.size(); ++step) {
    if (run.streams[step] < most_streams || run.streams[step] == open_step) continue;
    return RunMisfit{fmt::format("step {} has stream {}", step, run.streams[step]),
                     fmt::format("streams are 0 to {}", most_streams - 1)};
  }
  return std::nullopt;
}

}  // namespace fuse::schedule
