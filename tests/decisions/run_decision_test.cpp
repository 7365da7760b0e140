// How the steps of a plan are run, as decisions say: read, checked against the plan, and written again.
// SPDX-License-Identifier: Apache-2.0
#include "plan/run_decision.hpp"

#include "decisions/decisions_support.hpp"
#include "plan/step_dependencies.hpp"
#include "support/branches.hpp"

namespace fuse::test {
namespace {

/// Of two products of inputs, steps 0 and 1, and their sum, step 2.
Graph sum_of_products() {
  Graph g("sum");
  const auto product = [&](const std::string& name, std::int64_t k) {
    return matmul(g.input("x" + name, f32, {64, k}), g.input("w" + name, f32, {k, 64}));
  };
  g.output("y", exp(product("0", 32)) * exp(product("1", 16)));
  return g;
}

TEST_CASE("a run's order and streams are read and written", "[schedule][decisions]") {
  const Graph g = sum_of_products();
  CHECK(decisions_text(compiled_with(g, "")).find("\nrun ") == std::string::npos);
  for (const char* line :
       {"run {mode = graph}\n", "run {order = 1 0 2}\n", "run {streams = 0 15 0}\n",
        "run {streams = - 1 -}\n", "run {mode = streams, order = 1 0 2, streams = 0 1 0}\n"}) {
    const Compiled compiled = compiled_with(g, no_decisions() + line);
    REQUIRE(compiled.plan.steps.size() == 3);
    const std::string text = decisions_text(compiled);
    INFO(text);
    CHECK(text.ends_with(line));
    CHECK(decisions_text(compiled_with(g, text)) == text);
  }
  const Compiled compiled =
      compiled_with(g, no_decisions() + "run {streams = 0 1 0, order=1 0\t2,mode=graph}");
  CHECK(compiled.run->mode == ExecutionMode::graph);
  CHECK(compiled.run->order == std::vector<std::uint32_t>{1, 0, 2});
  CHECK(compiled.run->streams == std::vector<std::uint32_t>{0, 1, 0});
}

TEST_CASE("a run that cannot be names its line, and what would be right", "[schedule][decisions]") {
  const Graph g = sum_of_products();
  const auto refused = [&](const std::string& run) {
    return refusal(g, no_decisions() + "run {" + run + "}\n");
  };
  const std::string where = "invalid-argument: decisions: line 3: run: ";
  CHECK(refused("order = 0 1") == where +
                                      "order has 2 numbers, and the plan 3 steps\n  hint: the plan has the "
                                      "steps 0 to 2, each of which has its number");
  CHECK(refused("order = 0 1 1") ==
        where + "order has step 1 twice\n  hint: it is a permutation of the steps");
  CHECK(refused("order = 0 3 1") == where + "order has step 3\n  hint: the plan has the steps 0 to 2");
  const std::string late = refused("order = 0 2 1");
  CHECK(late.starts_with(where +
                         "order has step 2 before step 1, which it depends on\n  hint: step 1 ('gemm."));
  CHECK(refused("streams = 0 1") == where +
                                        "streams has 2 numbers, and the plan 3 steps\n  hint: the plan has "
                                        "the steps 0 to 2, each of which has its number");
  CHECK(refused("streams = 0 16 0") == where + "step 1 has stream 16\n  hint: streams are 0 to 15");
  // Of the text alone.
  const std::string line = "parse: decisions: line 3: ";
  CHECK(refused("mode = automatic") == line + "mode is 'automatic'\n  hint: mode takes streams or graph");
  CHECK(refused("order = 0 2x 1") ==
        line + "order is '0 2x 1'\n  hint: order lists the steps of the plan: order = 0 2 1 3");
  CHECK(refused("streams = 0 -1 1").starts_with(line + "streams is '0 -1 1'\n  hint: streams lists"));
  CHECK(refused("streams = 0 99999999999 1").starts_with(line + "streams is '0 99999999999 1'"));
  CHECK(refused("streams = 0 4294967295 1").starts_with(line + "streams is '0 4294967295 1'"));
  CHECK(refused("order = 0 - 1").starts_with(line + "order is '0 - 1'"));
  CHECK(refused("order").starts_with(line + "order is ''"));
  CHECK(refused("ordr = 0 1 2") == line + "there is no key 'ordr'\n  hint: did you mean 'order'?");
  CHECK(refused("") == line + "run says nothing\n  hint: run {mode = graph}");
  CHECK(refused("mode = graph, mode = streams") ==
        line + "the key 'mode' stands there twice\n  hint: keep 'mode = graph' or 'mode = streams'");
  CHECK(refusal(g, no_decisions() + "run {mode = graph}\nrun {mode = graph}\n") ==
        "parse: decisions: line 4: there is a run already\n  hint: it stands in line 3");
}

TEST_CASE("a run that fits no plan is left out where that is asked for", "[schedule][decisions]") {
  const Compiled compiled = compiled_with(sum_of_products(), no_decisions() + "run {order = 0 1}\n", true);
  CHECK(compiled.unfit_decisions == 1);
  CHECK_FALSE(compiled.run);
}

TEST_CASE("steps depend on who wrote what they read, and on who used what they overwrite", "[schedule]") {
  using schedule::PlanValue;
  schedule::Plan plan;
  const auto value = [&](PlanValue::Kind kind) {
    plan.values.push_back({.kind = kind, .name = "v", .dims = {8}});
    return static_cast<schedule::ValueId>(plan.values.size() - 1);
  };
  const auto step = [&](std::vector<schedule::ValueId> reads, std::vector<schedule::ValueId> writes) {
    plan.steps.push_back({.reads = std::move(reads), .writes = std::move(writes)});
  };
  const auto x = value(PlanValue::Kind::input), y = value(PlanValue::Kind::output);
  plan.values[y].donor = x;
  const auto whole = value(PlanValue::Kind::temporary);
  const auto left = value(PlanValue::Kind::temporary), right = value(PlanValue::Kind::temporary);
  plan.values[left].inside = schedule::Inside{whole, 0};
  plan.values[right].inside = schedule::Inside{whole, 16};
  step({x}, {left});
  step({x}, {right});
  step({left}, {});
  step({whole}, {});
  step({}, {y});
  step({right, left, whole}, {});
  const std::vector<std::vector<std::uint32_t>> expected = {{}, {}, {0}, {0, 1}, {0, 1}, {0, 1}};
  CHECK(schedule::certain_dependencies(plan) == expected);
}

}  // namespace
}  // namespace fuse::test
