// Slices of concats become slices of the operands that they read. SPDX-License-Identifier: Apache-2.0
#include "passes/narrow_slices.hpp"

#include <algorithm>

#include "base/access.hpp"
#include "passes/dead_code.hpp"
#include "passes/pass_support.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// Three values of 2, 3 and 4 rows, one below the other.
Tensor stack(Graph& g) {
  std::vector<Tensor> parts;
  for (const std::int64_t rows : {2, 3, 4})
    parts.push_back(exp(g.input("x" + std::to_string(rows), f32, {rows, 5})));
  return concat(parts, 0);
}

/// The operands of concats that are left, after checking that the graph means the same.
std::size_t operands_left(const Graph& g) {
  const ir::Graph after = ir::dead_code(ir::narrow_slices(ir_of(g)));
  ir::verify(after);
  INFO(print(after));
  const bool same = outputs_of(after, 3) == outputs_of(ir_of(g), 3);
  CHECK(same);
  CHECK(print(ir::dead_code(ir::narrow_slices(after))) == print(after));
  std::size_t operands = 0;
  for (const ir::Node& node : after.nodes) operands += node.op == ir::Op::concat ? node.operands.size() : 0;
  return operands;
}

std::size_t operands_left(std::int64_t start, std::int64_t limit, std::int64_t stride = 1) {
  Graph g("rows");
  g.output("y", slice(stack(g), 0, start, limit, stride));
  INFO(start << " to " << limit << " by " << stride);
  return operands_left(g);
}

}  // namespace

TEST_CASE("what a slice without a stride reads is proven of its limit as it is written", "[passes]") {
  const Graph g = Graph::parse(R"(graph @g(%a: f32[7], %b: f32[B]) -> (y: f32[4]) where B in [8, 4096] {
    %1 = concat %a, %b {axis = 0} : f32[B + 7]
    %2 = slice %1 {starts = [B - 4 * (B / 4)], limits = [B % 4 + 4], strides = [1]} : f32[4]
    return y = %2 })");
  const ir::Graph after = ir::dead_code(ir::narrow_slices(ir_of(g)));
  ir::verify(after);
  CHECK(std::none_of(after.nodes.begin(), after.nodes.end(),
                     [](const ir::Node& node) { return node.op == ir::Op::concat; }));
}

TEST_CASE("a slice of one operand of a concat reads that operand", "[passes]") {
  for (const auto& [start, limit] : {std::pair{0, 2}, {0, 1}, {2, 5}, {3, 4}, {5, 9}, {8, 9}})
    CHECK(operands_left(start, limit) == 0);
  CHECK(operands_left(5, 9, 2) == 0);
  CHECK(operands_left(0, 4, 4) == 0);  // one row
  CHECK(operands_left(3, 6, 3) == 0);
}

TEST_CASE("a slice of several operands of a concat is one of a concat of these", "[passes]") {
  CHECK(operands_left(1, 5) == 2);
  CHECK(operands_left(1, 3) == 2);
  CHECK(operands_left(4, 6) == 2);
  CHECK(operands_left(0, 9) == 3);
  CHECK(operands_left(1, 6) == 3);
  CHECK(operands_left(1, 5, 3) == 2);
}

TEST_CASE("a slice of no elements, and one along another dim, stay right", "[passes]") {
  CHECK(operands_left(2, 2) <= 3);
  Graph g("columns");
  g.output("y", slice(stack(g), 1, 1, 3));
  CHECK(operands_left(g) == 3);
}

TEST_CASE("a part of a part of a stack reads what it needs", "[passes]") {
  Graph g("nested");
  const Tensor all = stack(g), both = concat({all, exp(all)}, 0);
  g.output("y", slice(both, 0, 11, 14));
  CHECK(operands_left(g) == 3);  // of exp(all), whose operand is no concat
  Graph h("inner");
  h.output("y", slice(concat({stack(h), h.input("z", f32, {1, 5})}, 0), 0, 2, 4));
  CHECK(operands_left(h) == 0);
}

TEST_CASE("a slice is narrowed where its ends are proven to lie in an operand", "[passes]") {
  Graph g("symbols");
  const Dim n = g.dim("N", {.min = 1, .max = 50, .hint = 8});
  const Tensor a = exp(g.input("a", f32, {n, 3})), b = exp(g.input("b", f32, {n, 3}));
  g.output("first", slice(concat({a, b}, 0), 0, 0, n));
  g.output("second", slice(concat({a, b}, 0), 0, n, 2 * n));
  const ir::Graph after = ir::dead_code(ir::narrow_slices(ir_of(g)));
  ir::verify(after);
  for (const ir::Node& node : after.nodes) CHECK(node.op != ir::Op::concat);
}
