// Graphs whose kernels are, together, everything that code generation emits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "support/op_sweep.hpp"

namespace fuse::test {

/// Every element-wise row in every type it takes; select and convert between every pair of types; sources.
inline Graph elementwise_graph() {
  OpSweep sweep("elementwise");
  const Shape shape = {31, 33};
  int count = 0;
  const auto out = [&](const Tensor& value) { sweep.graph().output("y" + std::to_string(count++), value); };
  for (int op = 0; op < ir::op_count; ++op) {
    const ir::OpInfo& row = info(static_cast<ir::Op>(op));
    if (!row.elementwise) continue;
    for (const DType dtype : all_dtypes()) {
      if (!takes(row.operands, dtype)) continue;
      std::vector<Tensor> operands;
      for (int i = 0; i < row.arity; ++i) operands.push_back(sweep.input(dtype, shape));
      out(sweep.apply(row.op, operands));
    }
  }
  for (const DType from : all_dtypes()) {
    const Tensor x = sweep.input(from, shape);
    out(select(sweep.input(boolean, shape), x, sweep.input(from, shape)));
    for (const DType to : all_dtypes()) out(convert(x, to));
    out(sweep.graph().constant(from, 1, {5}));
    if (from != boolean && !is_half(from)) out(sweep.graph().iota(from, {3, 5}, 1));
  }
  for (const DType dtype : {f16, bf16, f32, f64}) {
    for (const double value :
         {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
          std::numeric_limits<double>::quiet_NaN(), 0.1}) {
      out(sweep.graph().constant(dtype, value, {5}));
    }
  }
  out(sweep.graph().constant(i32, std::numeric_limits<std::int32_t>::min(), {5}));
  out(sweep.graph().constant(i64, std::numeric_limits<std::int64_t>::min(), {5}));
  return sweep.built();
}

/// Every reduction, with and without position, in every type and by each usual nest; `large`: with 64-bit
/// indices.
inline Graph reduction_graph(bool large) {
  OpSweep sweep(large ? "large_reductions" : "reductions");
  struct Form {
    std::vector<Dim> dims;
    std::int64_t axis;
  };
  std::vector<Form> forms = {{{37, 65}, 1}, {{5, 2000}, 1}, {{40, 64}, 0}, {{200000}, 0}};
  if (large) {
    const DimRange many{.min = 1, .max = std::int64_t{1} << 40, .hint = 4096};
    const Dim R = sweep.graph().dim("R", many);
    const Dim C = sweep.graph().dim("C", {.min = 0, .max = 1 << 20, .hint = 2000});
    forms = {{{R, 65}, 1}, {{R, C}, 1}, {{C, R}, 0}, {{R * 256}, 0}};
  }
  int count = 0;
  for (const Form& form : forms) {
    for (int op = 0; op < ir::op_count; ++op) {
      const ir::OpInfo& row = info(static_cast<ir::Op>(op));
      if (row.relation != ir::Relation::reduce) continue;
      for (const DType dtype : all_dtypes()) {
        if (!takes(row.operands, dtype)) continue;
        const Tensor x = sweep.graph().input("x" + std::to_string(count), dtype, form.dims);
        sweep.graph().output("y" + std::to_string(count++),
                             sweep.apply(row.op, {x}, ir::DimsAttr{{form.axis}}));
      }
    }
  }
  return sweep.built();
}

/// Movement of a rank 3 tensor in every type.
inline Graph movement_graph(bool symbolic) {
  OpSweep sweep(symbolic ? "symbolic_movement" : "movement");
  Dim B = 7, T = 11;
  if (symbolic) {
    B = sweep.graph().dim("B", {.min = 1, .max = std::int64_t{1} << 40, .hint = 64});
    T = sweep.graph().dim("T", {.min = 1, .max = 1 << 12, .hint = 128});
  }
  int count = 0;
  const auto out = [&](const Tensor& value) { sweep.graph().output("y" + std::to_string(count++), value); };
  for (const DType dtype : all_dtypes()) {
    const Tensor x = sweep.graph().input("x" + std::to_string(count), dtype, {B, T, 8});
    out(transpose(x, {2, 0, 1}));
    out(reshape(transpose(x, {0, 2, 1}), {B, 8 * T}));
    out(broadcast_in_dim(x, {2, B, T, 3, 8}, {1, 2, 4}));
    out(concat({x, x, transpose(transpose(x, {2, 1, 0}), {2, 1, 0})}, 1));
    out(slice(slice(concat({x, x}, 0), 0, B, 2 * B), 2, 1, 8, 2));
    for (const DType index : {i32, i64}) {
      out(gather(x, sweep.graph().input("at" + std::to_string(count), index, {B, 4}), 1));
    }
  }
  return sweep.built();
}

/// What moves elements by data or past the operand, scans and random numbers.
inline Graph dynamic_graph(bool symbolic) {
  OpSweep sweep(symbolic ? "symbolic_dynamic" : "dynamic");
  Dim B = 7, T = 45;
  if (symbolic) {
    B = sweep.graph().dim("B", {.min = 4, .max = std::int64_t{1} << 40, .hint = 64});
    T = sweep.graph().dim("T", {.min = 8, .max = 1 << 12, .hint = 128});
  }
  int count = 0;
  const auto out = [&](const Tensor& value) { sweep.graph().output("y" + std::to_string(count++), value); };
  const Tensor at = sweep.graph().input("at", i32, {}), seed = sweep.graph().input("seed", i64, {});
  for (const DType dtype : all_dtypes()) {
    const Tensor x = sweep.graph().input("x" + std::to_string(count), dtype, {B, T});
    out(reverse(x, {0, 1}));
    out(pad(x, 1, {2, B}, {1, 0}));
    out(dynamic_slice(x, {at, at}, {4, 8}));
    out(dynamic_update_slice(x, dynamic_slice(x, {at, 0}, {4, T}), {0, at}));
    if (dtype == boolean) continue;
    for (const bool exclusive : {false, true}) {
      out(cumulative_sum(x, 1, {.exclusive = exclusive}));
      out(cumulative_sum(x, 0, {.exclusive = exclusive, .reverse = true}));
    }
  }
  for (const DType dtype : {f32, f64}) out(random_uniform(dtype, {B, T}, seed, seed));
  return sweep.built();
}

/// The compound functions in one type.
inline Graph function_graph(DType dtype, bool symbolic) {
  Graph g("functions");
  Dim B = 64;
  if (symbolic) B = g.dim("B", {.min = 1, .max = 1 << 24, .hint = 512});
  int count = 0;
  const auto out = [&](const Tensor& value) { g.output("y" + std::to_string(count++), value); };
  const Tensor x = g.input("x", dtype, {B, 1000}), labels = g.input("labels", i32, {B});
  const Tensor gamma = g.parameter("gamma", dtype, {1000}), beta = g.parameter("beta", dtype, {1000});
  const Tensor weight = g.parameter("weight", dtype, {1000, 64}), bias = g.parameter("bias", dtype, {64});
  const Tensor q = g.input("q", dtype, {B, 4, 128, 64}), k = g.input("k", dtype, {B, 4, 128, 64});
  const Tensor v = g.input("v", dtype, {B, 4, 128, 64});
  out(softmax(x));
  out(softmax(x, 0));
  out(log_softmax(x));
  out(layer_norm(x, gamma, beta));
  out(rms_norm(x, gamma));
  out(gelu(x));
  out(silu(x));
  out(attention(q, k, v));
  out(attention(q, k, v, {.causal = true}));
  out(cross_entropy(x, labels));
  out(mean(cross_entropy(x, labels)));
  out(embedding(g.parameter("table", dtype, {5000, 64}), labels));
  out(linear(x, weight));
  out(gelu(linear(x, weight, bias)));
  return g;
}

}  // namespace fuse::test
