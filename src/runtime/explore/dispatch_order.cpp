// SPDX-License-Identifier: Apache-2.0
#include "runtime/explore/dispatch_order.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "plan/step_dependencies.hpp"

namespace fuse::runtime {
namespace {

using Steps = std::vector<std::uint32_t>;
using Dependencies = std::vector<Steps>;

/// For each step, how many steps are on the longest path that ends before it.
Steps steps_before(const Dependencies& after) {
  Steps result(after.size());
  for (std::size_t step = 0; step < after.size(); ++step) {
    for (const std::uint32_t before : after[step]) result[step] = std::max(result[step], result[before] + 1);
  }
  return result;
}

/// For each step, how many steps are on the longest path that begins behind it.
Steps steps_behind(const Dependencies& after) {
  Steps result(after.size());
  for (std::size_t step = after.size(); step-- > 0;) {
    for (const std::uint32_t before : after[step])
      result[before] = std::max(result[before], result[step] + 1);
  }
  return result;
}

Steps depth_first(const Dependencies& after) {
  const Steps behind = steps_behind(after);
  Dependencies then(after.size());
  Steps missing(after.size());
  const auto sooner = [&](std::uint32_t a, std::uint32_t b) {
    return behind[a] != behind[b] ? behind[a] > behind[b] : a < b;
  };
  std::set<std::uint32_t, decltype(sooner)> ready(sooner);
  for (std::uint32_t step = 0; step < after.size(); ++step) {
    missing[step] = static_cast<std::uint32_t>(after[step].size());
    for (const std::uint32_t before : after[step]) then[before].push_back(step);
    if (missing[step] == 0) ready.insert(step);
  }
  Steps result;
  while (!ready.empty()) {
    result.push_back(*ready.begin());
    ready.erase(ready.begin());
    for (const std::uint32_t next : then[result.back()]) {
      if (--missing[next] == 0) ready.insert(next);
    }
  }
  return result;
}

}  // namespace

std::string_view to_string(DispatchOrder order) {
  constexpr std::string_view names[] = {"as by cost", "as in the plan", "breadth first", "depth first"};
  return names[static_cast<std::size_t>(order)];
}

std::vector<std::uint32_t> order_of(const schedule::Plan& plan, DispatchOrder order) {
  if (order == DispatchOrder::by_cost) return {};
  const Dependencies after = schedule::certain_dependencies(plan);
  if (order == DispatchOrder::depth_first) return depth_first(after);
  Steps steps(plan.steps.size());
  std::iota(steps.begin(), steps.end(), 0U);
  if (order == DispatchOrder::breadth_first)
    std::ranges::stable_sort(steps, {}, [before = steps_before(after)](auto step) { return before[step]; });
  return steps;
}

std::vector<DispatchOrder> dispatch_orders(const schedule::Plan& plan) {
  std::vector<DispatchOrder> result = {DispatchOrder::by_cost};
  std::set<Steps> known;
  for (const DispatchOrder order :
       {DispatchOrder::plan, DispatchOrder::breadth_first, DispatchOrder::depth_first}) {
    if (known.insert(order_of(plan, order)).second) result.push_back(order);
  }
  if (known.size() == 1) result.resize(1);
  return result;
}

}  // namespace fuse::runtime
