// SPDX-License-Identifier: Apache-2.0
#include "analysis/index_map.hpp"

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

}  // namespace
}  // namespace fuse::analysis_test
