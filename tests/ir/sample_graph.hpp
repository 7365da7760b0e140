// Graphs that cover the text form.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir_support.hpp"

namespace fuse::ir_test {

/// Every op of the table: rows of a kind are added by their traits, the others by hand.
inline ir::Graph every_op() {
  Maker m;
  m.graph.name = "every_op";
  const Dim B = m.dim("B", {.min = 2, .max = 1 << 20, .hint = 4096}), T = m.dim("T");
  const NodeId x = m.input("x", {f32, {B, 4, 8}});
  const NodeId mask = m.input("mask", {DType::boolean, {B, 4, 8}});
  const NodeId table = m.input("table", {bf16, {8, 4}}, Op::parameter);
  const NodeId rows = m.input("rows", {i32, {T}});
  const NodeId bytes = m.input("bytes", {u8, {B, 4, 8}});
  const NodeId at = m.input("at", {i64, {}});
  const ScopeId scope = m.scope("elementwise", 0, m.location("sample.cpp", 12));
  const LocationId line = m.location("sample.cpp", 13);
  for (int index = 0; index < op_count; ++index) {
    const OpInfo& row = info(static_cast<Op>(index));
    if (row.elementwise) {
      const NodeId operand = row.operands == OperandClass::logical   ? mask
                             : row.operands == OperandClass::integer ? bytes
                                                                     : x;
      m.add(row.op, std::vector<NodeId>(static_cast<std::size_t>(row.arity), operand), NoAttr{}, {}, scope,
            line);
    } else if (row.relation == Relation::reduce) {
      m.add(row.op, {row.operands == OperandClass::logical ? mask : x}, DimsAttr{{index % 3}}, {}, scope, 0);
    }
  }
  m.add(Op::reduce_sum, {x}, DimsAttr{{0, 2}});
  const NodeId half = m.add(Op::constant, {}, ConstantAttr{0.5, 0}, Type{bf16, {}});
  const NodeId wide = m.add(Op::broadcast_in_dim, {half}, DimsAttr{}, Type{bf16, {B, 4, 8}});
  const NodeId narrow = m.add(Op::convert, {x}, NoAttr{}, Type{bf16, {B, 4, 8}});
  const NodeId chosen = m.add(Op::select, {mask, wide, narrow});
  m.add(Op::iota, {}, AxisAttr{1}, Type{i64, {B, T}});
  m.add(Op::dim_size, {}, DimAttr{B * T + (T + 1) / 4 - T % 3 - 2});
  const NodeId half_row = m.add(Op::reshape, {half}, NoAttr{}, Type{bf16, {1, 1}});
  const NodeId flat = m.add(Op::reshape, {chosen}, NoAttr{}, Type{bf16, {4 * B, 8}});
  m.add(Op::expand, {half_row}, NoAttr{}, Type{bf16, {4 * B, 8}});
  m.add(Op::transpose, {chosen}, DimsAttr{{2, 0, 1}});
  const NodeId product = m.add(Op::matmul, {flat, table}, MatmulAttr{});
  m.add(Op::matmul, {table, flat}, MatmulAttr{true, true}, Type{f32, {4, 4 * B}});
  m.add(Op::matmul, {product, table}, MatmulAttr{false, true});
  m.add(Op::matmul, {product, flat}, MatmulAttr{true, false});
  m.add(Op::slice, {flat}, SliceAttr{{1, 0}, {2 * B, 8}, {1, 3}});
  m.add(Op::reverse, {flat}, DimsAttr{{0, 1}});
  m.add(Op::pad, {flat, half}, PadAttr{{B, 0}, {2 * T, 1}});
  const NodeId part = m.add(Op::dynamic_slice, {x, at, at, at}, SizesAttr{{2, 1, 8}});
  m.add(Op::dynamic_update_slice, {x, part, at, at, at});
  m.add(Op::cumulative_sum, {x}, ScanAttr{1});
  m.add(Op::cumulative_sum, {bytes}, ScanAttr{0, true, true});
  m.add(Op::contraction, {x, x}, ContractionAttr{{0}, {0}, {1, 2}, {1, 2}}, Type{f32, {B}});
  m.add(Op::random_uniform, {at, at}, RandomAttr{7}, Type{f64, {B, T}});
  m.add(
      Op::custom_call, {x, bytes},
      CustomAttr{
          "mine", "FUSE_KERNEL(64) mine(global<const float> x) {\n  \"}\n", 64, 128, B / 2, {B, T}, nullptr},
      Type{i8, {T}});
  m.add(Op::concat, {flat, flat}, AxisAttr{0});
  m.output("taken", m.add(Op::gather, {table, rows}, AxisAttr{0}));
  m.output("product", product);
  return std::move(m.graph);
}

}  // namespace fuse::ir_test
