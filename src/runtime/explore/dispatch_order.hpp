// DispatchOrder: the orders in which an explorer dispatches the steps of a plan (Astra, 3.3).
//
// Before:  steps 0 -> 1 -> 2, 3 -> 4       (0, 1 and 2 depend on each other, and so do 3 and 4)
// After:   plan 0 1 2 3 4   breadth_first 0 3 1 4 2   depth_first 0 1 3 2 4
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plan/plan.hpp"

namespace fuse::runtime {

enum class DispatchOrder : std::uint8_t {
  by_cost,        ///< the cost model decides when the dims are known
  plan,           ///< as the steps stand in the plan
  breadth_first,  ///< by the steps that have to run before, the fewest first
  depth_first,    ///< of the steps that can start, the one with the most steps behind it
};
std::string_view to_string(DispatchOrder);

/// RunDecision::order; empty where the cost model decides.
std::vector<std::uint32_t> order_of(const schedule::Plan&, DispatchOrder);

/// The options of a plan, each of other steps; the first is by_cost, and alone where steps have one order.
std::vector<DispatchOrder> dispatch_orders(const schedule::Plan&);

}  // namespace fuse::runtime
