// Conditions that hold for every thread are dropped; those that some thread fails stay.
// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/elide_conditions.hpp"

#include "kernel/kernel_support.hpp"
#include "schedule/nest/usual_nests.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

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
  const schedule::Choices choices{.splits = schedule::nest_of_lanes(128)};
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
  const schedule::Choices choices{.splits = schedule::nest_of_elements(256)};
  CHECK(print(elided(g, choices)) == print(lowered(g, choices)));
}

TEST_CASE("elide_conditions drops what a condition around it has said", "[kernel]") {
  const Graph columns = sum_graph({64, 40}, {0});
  const schedule::Choices choices{.splits = schedule::nest_of_columns(128)};
  const kernel::Kernel once = elided(columns, choices);
  CHECK(conditions(once) == conditions(lowered(columns, choices)));  // the writer's stands alone
  CHECK(print(kernel::elide_conditions(once)) == print(once));
}

TEST_CASE("elide_conditions keeps a condition on a name bound to one of the same range", "[kernel]") {
  // The ranges of `row` and `c` say what the condition is there to prove: lane reaches 31.
  kernel::Kernel k;
  k.name = "chained";
  k.block_threads = 32;
  k.grid = 1;
  k.index_type = i32;
  k.buffers = {{"y", f32, kernel::Space::global, 20, true}};
  k.vars = {{"a", f32}};
  const Dim lane = Dim::index("lane", 32), row = Dim::index("row", 20), c = Dim::index("c", 20);
  kernel::If inside{{{c, 20}}, {}};
  inside.body.push_back({kernel::Store{0, c, 0}, {}});
  kernel::For lanes{.name = "lane", .begin = 0, .end = 32, .parallel = kernel::Parallel::lane, .body = {}};
  lanes.body.push_back({kernel::Bind{"row", lane}, {}});
  lanes.body.push_back({kernel::Bind{"c", row}, {}});
  lanes.body.push_back({kernel::Let{0, kernel::Constant{}}, {}});
  lanes.body.push_back({std::move(inside), {}});
  kernel::For blocks{.name = "block", .begin = 0, .end = 1, .parallel = kernel::Parallel::grid, .body = {}};
  blocks.body.push_back({std::move(lanes), {}});
  k.body.push_back({std::move(blocks), {}});
  CHECK(print(kernel::elide_conditions(k)) == print(k));
}

TEST_CASE("elide_conditions asks what holds where a condition stands", "[kernel]") {
  using namespace fuse::kernel;  // NOLINT
  const Dim lane = Dim::index("lane", 32), n = Dim::symbol("n", {1, 100});
  const auto when = [](const Dim& index, const Dim& bound, std::vector<Stmt> body) {
    return Stmt{If{{{index, bound}}, std::move(body)}};
  };
  const Stmt store{Store{0, lane, 0}};
  const auto left = [&](std::vector<Stmt> body) {
    Kernel k;
    k.name = "asked";
    k.buffers = {{"y", f32, Space::global, 100, true}};
    k.vars = {{"a", f32}};
    k.body = {
        {For{.name = "lane", .begin = 0, .end = 32, .parallel = Parallel::lane, .body = std::move(body)}}};
    return conditions(elide_conditions(std::move(k)));
  };
  CHECK(left({when(lane, n, {store})}) == 1);
  CHECK(left({when(lane, 32, {store})}) == 0);
  CHECK(left({when(lane, 31, {store})}) == 1);
  CHECK(left({when(lane, n, {when(lane, n, {store})})}) == 1);  // said by the one around it
  CHECK(left({when(lane, n, {when(lane, n + 1, {store})})}) == 2);
  CHECK(left({when(lane, n, {store}), when(lane, n, {store})}) == 2);  // not said by the one before it
  CHECK(left({when(lane, n, {when(lane, 32, {store})})}) == 1);
  CHECK(left({when(lane, 32, {when(lane, n, {store})})}) == 1);
}
