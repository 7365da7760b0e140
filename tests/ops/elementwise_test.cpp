// Every element-wise row of the op table, in every type it takes, over the spread of shapes.
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "support/op_sweep.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

std::vector<ir::OpInfo> elementwise_rows() {
  std::vector<ir::OpInfo> rows;
  for (int op = 0; op < ir::op_count; ++op) {
    const ir::OpInfo& row = info(static_cast<ir::Op>(op));
    if (row.elementwise) rows.push_back(row);
  }
  return rows;
}

}  // namespace

TEST_CASE("ops: every element-wise row, type and shape", "[device]") {
  for (const Shape& shape : spread_of_shapes()) {
    OpSweep sweep("elementwise");
    for (const ir::OpInfo& row : elementwise_rows()) {
      for (const DType dtype : all_dtypes()) {
        if (!takes(row.operands, dtype)) continue;
        std::vector<Tensor> operands;
        for (int i = 0; i < row.arity; ++i) operands.push_back(sweep.input(dtype, shape, true));
        sweep.expect_ulp(describe(row.op, dtype, shape), sweep.apply(row.op, operands), row.op);
      }
    }
    REQUIRE(sweep.size() > 150);
    sweep.run_on_test_devices();
  }
}

TEST_CASE("ops: erf and tanh of floats of every magnitude", "[device]") {
  OpSweep sweep("special");
  // Every 2003rd float; tests/proofs has all.
  HostTensor x = HostTensor::make(f32, {0x7f800000 / 2003 * 2});
  for (std::int64_t i = 0; i < x.element_count(); i += 2) {
    const double value = std::bit_cast<float>(static_cast<std::uint32_t>(i / 2 * 2003));
    x.set(i, value);
    x.set(i + 1, -value);
  }
  const Tensor all = sweep.input(x);
  for (const ir::Op op : {ir::Op::erf, ir::Op::tanh}) {
    sweep.expect_ulp(std::string(to_string(op)), sweep.apply(op, {all}), op);
    // What is exact: zeros keep their sign.
    sweep.expect_exact("the sign of a zero", 1.0 / sweep.apply(op, {sweep.input(f32, {2}, true)}));
  }
  sweep.run_on_test_devices();
}

TEST_CASE("ops: special values meet each other in binary ops", "[device]") {
  OpSweep sweep("specials");
  for (const ir::OpInfo& row : elementwise_rows()) {
    for (const DType dtype : all_dtypes()) {
      if (row.arity != 2 || !takes(row.operands, dtype)) continue;
      const Tensor a = sweep.input(dtype, {16, 1}, true), b = sweep.input(dtype, {16}, true);
      const Tensor left = broadcast_to(a, {16, 16}), right = broadcast_to(b, {16, 16});
      sweep.expect_ulp(describe(row.op, dtype, {16, 16}), sweep.apply(row.op, {left, right}), row.op);
    }
  }
  sweep.run_on_test_devices();
}

TEST_CASE("ops: select and convert between every pair of types", "[device]") {
  for (const Shape& shape : spread_of_shapes()) {
    OpSweep sweep("convert");
    for (const DType from : all_dtypes()) {
      const Tensor x = sweep.input(from, shape, true);
      const Tensor chosen =
          sweep.apply(ir::Op::select, {sweep.input(boolean, shape), x, sweep.input(from, shape)});
      sweep.expect_exact(describe(ir::Op::select, from, shape), chosen);
      for (const DType to : all_dtypes()) {
        sweep.expect_exact(describe(ir::Op::convert, from, shape) + " to " + std::string(to_string(to)),
                           convert(x, to));
      }
    }
    sweep.run_on_test_devices();
  }
}

TEST_CASE("ops: sources: constant, iota, dim_size", "[device]") {
  OpSweep sweep("sources");
  const Tensor x = sweep.input(f32, {3, 5});
  for (const DType dtype : {i32, i64, f32, f64}) {
    for (const std::int64_t axis : {0, 1}) {
      sweep.expect_exact("iota", sweep.graph().iota(dtype, {3, 5}, axis));
    }
    sweep.expect_exact("constant", sweep.graph().constant(dtype, -3, {3, 5}));
  }
  for (const DType dtype : {f16, bf16, f32, f64}) {
    sweep.expect_exact("constant", sweep.graph().constant(dtype, 0.1, {2}));
    sweep.expect_exact("constant",
                       sweep.graph().constant(dtype, std::numeric_limits<double>::infinity(), {2}));
  }
  sweep.expect_exact("constant", sweep.graph().constant(boolean, true, {2}));
  sweep.expect_exact("dim_size", sweep.graph().dim_size(x.dim(1)));
  sweep.run_on_test_devices();
}
