// The order in which steps are dispatched is a variable of an exploration (Astra, 3.3).
// SPDX-License-Identifier: Apache-2.0
#include "runtime/explore/dispatch_order.hpp"

#include <fuse/explore.hpp>
#include <fuse/fuse.hpp>
#include <string>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "explore/explorer_support.hpp"
#include "plan/run_decision.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/emulated/virtual_clock.hpp"
#include "runtime/explore/space.hpp"
#include "runtime/explore/variant.hpp"
#include "support/catch.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using runtime::ClockedWork;
using runtime::DispatchOrder;

namespace {

const CompileOptions on_two_streams{.merge_gemms = false, .streams = 2, .cache = false};

Tensor product(Graph& g, const Tensor& x, const std::string& name, std::int64_t k) {
  return matmul(x, g.input("w" + name, f32, {k, 24}));
}

/// Products that follow each other, and others beside them, which the cost model holds to take longer.
Graph chain_and_products(int chain, int beside) {
  Graph g("products");
  Tensor row = g.input("x", f32, {16, 24});
  Tensor sum = g.input("y", f32, {16, 24});
  for (int i = 0; i < beside; ++i) {
    const std::string name = "b" + std::to_string(i);
    sum = sum * product(g, g.input("x" + name, f32, {16, 16384}), name, 16384);
  }
  for (int i = 0; i < chain; ++i) row = product(g, row, "a" + std::to_string(i), 24);
  g.output("z", sum * row);
  return g;
}

/// Two streams do no harm to each other, and a third one does.
double planted(const ClockedWork& work) {
  const double alone = !work.gemm ? 5e-6 : work.gemm->k == 24 ? 30e-6 : 10e-6;
  return work.beside < 2 ? alone : 10 * alone;
}

}  // namespace

TEST_CASE("steps are dispatched as in the plan, breadth first or depth first", "[explore]") {
  const auto plan_of = [](const Graph& graph) {
    return run_pipeline(ir_of(graph), target_profile("h200"), {.merge_gemms = false}).plan;
  };
  // Two products beside a chain of two; then one kernel of the rest.
  const schedule::Plan plan = plan_of(chain_and_products(2, 2));
  REQUIRE(plan.steps.size() == 5);
  CHECK(order_of(plan, DispatchOrder::by_cost).empty());
  CHECK(order_of(plan, DispatchOrder::plan) == std::vector<std::uint32_t>{0, 1, 2, 3, 4});
  CHECK(order_of(plan, DispatchOrder::breadth_first) == std::vector<std::uint32_t>{0, 1, 2, 3, 4});
  CHECK(order_of(plan, DispatchOrder::depth_first) == std::vector<std::uint32_t>{2, 0, 1, 3, 4});
  CHECK(runtime::dispatch_orders(plan) ==
        std::vector{DispatchOrder::by_cost, DispatchOrder::plan, DispatchOrder::depth_first});
  const schedule::Plan chains = plan_of(chain_and_products(3, 0));
  CHECK(runtime::dispatch_orders(chains) == std::vector{DispatchOrder::by_cost});  // they have one order
  for (const int chain : {2, 3, 5}) {
    const schedule::Plan each = plan_of(chain_and_products(chain, 3));
    for (const DispatchOrder order : runtime::dispatch_orders(each))
      CHECK(!misfit(schedule::RunDecision{.order = order_of(each, order)}, each));
  }
}

TEST_CASE("the order that was planted as the fastest is found", "[explore][emulated][streams]") {
  const Graph graph = chain_and_products(2, 2);
  const Device device = clocked_device();
  runtime::plant_costs(*backend_of(device), planted);
  Explorer explorer(graph, device, {}, {.max_cuts = 1, .max_epochs = 0}, on_two_streams);
  ExplorerBuffers buffers(explorer);
  run_to_end(explorer, buffers);
  CHECK(explorer.progress().stopped.empty());
  CHECK(explorer.progress().explored == explorer.progress().announced);
  const std::string text = explorer.tuning().text();
  INFO(text);
  CHECK(text.find("\nrun {order = 2 0 1 3 4}") != std::string::npos);
  CompileOptions tuned = on_two_streams;
  tuned.decisions = text;
  CHECK(seconds_of(graph, on_two_streams, planted) == Approx(75e-6));
  CHECK(seconds_of(graph, tuned, planted) == Approx(65e-6));
  // An explorer of a file that says so does not take it back.
  const runtime::Space space = runtime::space_of(ir_of(graph), target_profile("h200"), tuned, {});
  CHECK(space.cuts.front().orders == std::vector{DispatchOrder::by_cost});
}

TEST_CASE("the order is a variable of plans on streams, and has at most so many options", "[explore]") {
  const Graph graph = chain_and_products(2, 2);
  const auto orders = [&](const ExploreOptions& options, const CompileOptions& how, const char* profile) {
    return runtime::space_of(ir_of(graph), target_profile(profile), how, options).cuts.front().orders.size();
  };
  CHECK(orders({}, on_two_streams, "h200") == 3);
  CHECK(orders({.max_options = 2}, on_two_streams, "h200") == 2);
  CHECK(orders({}, {.merge_gemms = false, .streams = 1}, "h200") == 1);
  CHECK(orders({}, on_two_streams, "x86-64-v3") == 1);
}
