// Conditions that hold for every thread are dropped; those that some thread fails stay.
// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/elide_conditions.hpp"

#include "kernel/kernel_support.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::Mapping;

namespace {

kernel::Kernel elided(const Graph& graph, const schedule::Choices& choices) {
  kernel::Kernel kernel = kernel::elide_conditions(lowered(graph, choices));
  kernel::verify(kernel, target_profile("h200").shared_per_block);
  return kernel;
}

std::size_t conditions(const kernel::Kernel& kernel) {
  const std::string text = print(kernel);
  std::size_t count = 0;
  for (std::size_t at = text.find(" if "); at != std::string::npos; at = text.find(" if ", at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("elide_conditions drops what tiles that fit exactly need not ask", "[kernel]") {
  const schedule::Choices choices{Mapping::row_warp, 128, 1};
  const Graph exact = sum_graph({300, 64}, {1}), rest = sum_graph({301, 64}, {1});
  CHECK(conditions(lowered(exact, choices)) == 2);  // a row that is there, the lane that stores
  CHECK(conditions(elided(exact, choices)) == 1);
  CHECK(conditions(elided(rest, choices)) == 2);
  check_golden("kernel/elide_conditions.txt", print(lowered(exact, choices)) + print(elided(exact, choices)));
}

TEST_CASE("elide_conditions keeps conditions on extents that are symbols", "[kernel]") {
  Graph g("symbolic");
  const Dim B = g.dim("B", {.min = 4, .max = 1024, .hint = 64});
  g.output("y", exp(g.input("x", f32, {B, 64})));
  const schedule::Choices choices{Mapping::element, 256, 1};
  CHECK(print(elided(g, choices)) == print(lowered(g, choices)));
}

TEST_CASE("elide_conditions drops what a condition around it has said", "[kernel]") {
  const Graph columns = sum_graph({64, 40}, {0});
  const schedule::Choices choices{Mapping::column_tile, 128, 1};
  const kernel::Kernel once = elided(columns, choices);
  CHECK(conditions(once) == conditions(lowered(columns, choices)));  // the writer's stands alone
  CHECK(print(kernel::elide_conditions(once)) == print(once));
}
