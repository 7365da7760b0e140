// SPDX-License-Identifier: Apache-2.0
#include "analysis/index_map.hpp"

#include "analysis/element.hpp"
#include "ir/ir_support.hpp"

namespace fuse::analysis_test {
namespace {

using namespace ir;  // NOLINT: a table of ops
using ir_test::Maker;

std::string map_of(std::size_t operand, Op op, const std::vector<Type>& types, Attr attr,
                   std::optional<Type> declared = {}) {
  Maker m;
  std::vector<NodeId> operands;
  for (const Type& type : types) operands.push_back(m.input("x" + std::to_string(operands.size()), type));
  const NodeId node = m.add(op, operands, std::move(attr), std::move(declared));
  const auto map = analysis::index_map(m.graph, node, operand);
  return map ? to_string(*map) : "none";
}

TEST_CASE("Index maps print as docs/dependency.md shows them", "[analysis][index_map]") {
  const Type four{f32, {4}}, scalar{f32, {}};
  const Dim B = Dim::symbol("B", {.min = 1, .max = 64});
  CHECK(map_of(0, Op::reduce_sum, {{f32, {4, 8}}}, DimsAttr{{1}}) == "(i0) -> (i0, k0) for k0 in [0, 8)");
  CHECK(map_of(0, Op::transpose, {{f32, {4, 8}}}, DimsAttr{{1, 0}}) == "(i0, i1) -> (i1, i0)");
  CHECK(map_of(0, Op::reshape, {{f32, {B, 12}}}, NoAttr{}, Type{f32, {B, 3, 4}}) ==
        "(i0, i1, i2) -> (i0, 4 * i1 + i2)");
  CHECK(map_of(1, Op::concat, {four, four}, AxisAttr{0}) == "(i0) -> (i0 - 4) where i0 in [4, 8)");
  CHECK(map_of(1, Op::pad, {four, scalar}, PadAttr{{1}, {1}}) == "(i0) -> () where not i0 in [1, 5)");
  CHECK(map_of(0, Op::cumulative_sum, {four}, ScanAttr{0}) == "(i0) -> (k0) for k0 in [0, i0 + 1)");
  CHECK(map_of(0, Op::gather, {{f32, {9, 4}}, {i64, {5}}}, AxisAttr{0}) ==
        "(i0, i1) -> (k0, i1) for k0 chosen in [0, 9)");
  CHECK(map_of(1, Op::matmul, {{f32, {32, 64}}, {f32, {64, 16}}}, MatmulAttr{}) ==
        "(i0, i1) -> (k0, i1) for k0 in [0, 64)");
}

TEST_CASE("What an op adds and the next removes leaves the map", "[analysis][index_map]") {
  Maker m;
  const NodeId x = m.input("x", {f32, {4, 8}}), y = m.input("y", {f32, {2, 8}}),
               zero = m.input("z", {f32, {}});
  const auto through = [&](NodeId outer, NodeId inner, std::size_t operand) {
    return to_string(analysis::compose(analysis::element_relation(m.graph, outer, 0),
                                       analysis::element_relation(m.graph, inner, operand)));
  };
  const NodeId pad = m.add(Op::pad, {x, zero}, PadAttr{{1, 0}, {2, 0}});
  const NodeId inside = m.add(Op::slice, {pad}, SliceAttr{{1, 0}, {5, 8}, {1, 1}});
  CHECK(through(inside, pad, 0) ==
        "bijective (0 -> 0), bijective (1 -> 1); one_to_one; (i0, i1) -> (i0, i1)");
  CHECK(through(inside, pad, 1) == "none");
  const NodeId both = m.add(Op::concat, {x, y}, AxisAttr{0});
  const NodeId last = m.add(Op::slice, {both}, SliceAttr{{4, 0}, {6, 8}, {1, 1}});
  CHECK(through(last, both, 0) == "none");
  CHECK(through(last, both, 1) == "bijective (0 -> 0), bijective (1 -> 1); one_to_one; (i0, i1) -> (i0, i1)");
}

TEST_CASE("Maps of values that do not meet are not composed", "[analysis][index_map]") {
  CHECK_THROWS_AS(analysis::compose(analysis::identity_map({4}), analysis::identity_map({5})), Error);
}

}  // namespace
}  // namespace fuse::analysis_test
