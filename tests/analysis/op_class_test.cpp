// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "analysis/element.hpp"
#include "ir/ir_support.hpp"
#include "ir/sample_graph.hpp"

namespace fuse::ir_test {
namespace {

using analysis::OpClass;

OpClass class_of(Op op, const std::vector<Type>& types, Attr attr = NoAttr{},
                 std::optional<Type> declared = {}) {
  Maker m;
  std::vector<NodeId> operands;
  for (const Type& type : types) operands.push_back(m.input("x" + std::to_string(operands.size()), type));
  return analysis::op_class(m.graph, m.add(op, operands, std::move(attr), std::move(declared)));
}

TEST_CASE("Element-wise rows and reductions have the classes of definitions 1 and 3",
          "[analysis][op_class]") {
  const ir::Graph graph = every_op();
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const OpInfo& row = info(graph[id].op);
    INFO(row.name);
    if (row.has(Trait::source)) CHECK(analysis::op_class(graph, id) == OpClass::source);
    if (row.elementwise) CHECK(analysis::op_class(graph, id) == OpClass::element_wise);
    if (row.relation == Relation::reduce) CHECK(analysis::op_class(graph, id) == OpClass::reduction);
  }
}

TEST_CASE("The element relation decides the class of a movement", "[analysis][op_class]") {
  const Type x{f32, {4, 8}}, one{f32, {1, 8}}, i{i64, {}}, scalar{f32, {}};
  CHECK(class_of(Op::broadcast_in_dim, {one}, DimsAttr{{0, 1}}, x) == OpClass::broadcast);
  CHECK(class_of(Op::broadcast_in_dim, {x}, DimsAttr{{0, 1}}, x) == OpClass::element_wise);
  CHECK(class_of(Op::broadcast_in_dim, {x}, DimsAttr{{0, 2}}, Type{f32, {4, 1, 8}}) == OpClass::element_wise);
  CHECK(class_of(Op::reduce_sum, {one}, DimsAttr{{0}}) == OpClass::element_wise);
  CHECK(class_of(Op::transpose, {x}, DimsAttr{{1, 0}}) == OpClass::transpose);
  CHECK(class_of(Op::transpose, {x}, DimsAttr{{0, 1}}) == OpClass::element_wise);
  CHECK(class_of(Op::transpose, {one}, DimsAttr{{1, 0}}) == OpClass::element_wise);
  CHECK(class_of(Op::transpose, {Type{f32, {4, 4}}}, DimsAttr{{1, 0}}) == OpClass::transpose);
  CHECK(class_of(Op::reshape, {x}, NoAttr{}, Type{f32, {32}}) == OpClass::view);
  CHECK(class_of(Op::reshape, {x}, NoAttr{}, Type{f32, {8, 4}}) == OpClass::view);
  CHECK(class_of(Op::reshape, {x}, NoAttr{}, x) == OpClass::element_wise);
  CHECK(class_of(Op::reshape, {x}, NoAttr{}, Type{f32, {4, 1, 8}}) == OpClass::element_wise);
  CHECK(class_of(Op::slice, {x}, SliceAttr{{0, 0}, {4, 8}, {1, 1}}) == OpClass::element_wise);
  CHECK(class_of(Op::slice, {x}, SliceAttr{{0, 0}, {4, 4}, {1, 1}}) == OpClass::opaque);
  CHECK(class_of(Op::slice, {x}, SliceAttr{{0, 3}, {4, 4}, {1, 1}}) == OpClass::opaque);
  CHECK(class_of(Op::reverse, {x}, DimsAttr{{1}}) == OpClass::opaque);
  CHECK(class_of(Op::reverse, {one}, DimsAttr{{0}}) == OpClass::element_wise);
  CHECK(class_of(Op::cumulative_sum, {x}, ScanAttr{1}) == OpClass::opaque);
  CHECK(class_of(Op::pad, {x, scalar}, PadAttr{{0, 0}, {0, 1}}) == OpClass::opaque);
  CHECK(class_of(Op::pad, {x, scalar}, PadAttr{{0, 0}, {0, 0}}) == OpClass::element_wise);
  CHECK(class_of(Op::concat, {x, x}, AxisAttr{0}) == OpClass::opaque);
  CHECK(class_of(Op::concat, {x}, AxisAttr{0}) == OpClass::element_wise);
  CHECK(class_of(Op::gather, {x, i}, AxisAttr{0}) == OpClass::opaque);
  CHECK(class_of(Op::dynamic_slice, {x, i, i}, SizesAttr{{2, 8}}) == OpClass::opaque);
  CHECK(class_of(Op::dynamic_update_slice, {x, one, i, i}) == OpClass::opaque);
  CHECK(class_of(Op::random_uniform, {i, i}, RandomAttr{}, x) == OpClass::opaque);
  CHECK(class_of(Op::random_uniform, {i, i}, RandomAttr{}, scalar) == OpClass::opaque);
}

TEST_CASE("A contraction is one whatever its extents", "[analysis][op_class]") {
  const Type one{f32, {1, 1}}, x{f32, {4, 8}};
  CHECK(class_of(Op::matmul, {one, one}, MatmulAttr{}) == OpClass::contraction);
  CHECK(class_of(Op::matmul, {x, x}, MatmulAttr{false, true}) == OpClass::contraction);
  CHECK(class_of(Op::contraction, {x, x}, ContractionAttr{{}, {}, {0, 1}, {0, 1}}) == OpClass::contraction);
}

TEST_CASE("A symbolic extent is no 1, and equal only by its form", "[analysis][op_class]") {
  Maker m;
  const Dim B = m.dim("B", {.min = 1, .max = 64});
  const NodeId x = m.input("x", {f32, {B, 8}}), row = m.input("row", {f32, {1, 8}});
  const auto is = [&](NodeId id) { return analysis::op_class(m.graph, id); };
  CHECK(is(m.add(Op::reduce_max, {x}, DimsAttr{{0}})) == OpClass::reduction);
  CHECK(is(m.add(Op::broadcast_in_dim, {row}, DimsAttr{{0, 1}}, Type{f32, {B, 8}})) == OpClass::broadcast);
  CHECK(is(m.add(Op::reshape, {x}, NoAttr{}, Type{f32, {B, 1, 8}})) == OpClass::element_wise);
  CHECK(is(m.add(Op::reshape, {x}, NoAttr{}, Type{f32, {8 * B}})) == OpClass::view);
  CHECK(is(m.add(Op::slice, {x}, SliceAttr{{0, 0}, {B, 8}, {1, 1}})) == OpClass::element_wise);
}

}  // namespace
}  // namespace fuse::ir_test
