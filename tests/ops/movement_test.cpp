// Ops that move elements, in every type, over the spread of shapes, static and symbolic.
// SPDX-License-Identifier: Apache-2.0
#include "support/op_sweep.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// Each movement of a rank 3 tensor whose extents are `dims`.
void add_movements(OpSweep& sweep, DType dtype, const Shape& shape, const std::vector<Dim>& dims) {
  const Tensor x = sweep.input(dtype, shape, dims);
  const auto expect = [&](const char* what, const Tensor& value) {
    sweep.expect_exact(std::string(what) + ' ' + x.type_string(), value);
  };
  expect("transpose", transpose(x, {2, 0, 1}));
  expect("transpose twice", transpose(transpose(x, {1, 2, 0}), {1, 0, 2}));
  expect("reshape", reshape(x, {dims[0] * dims[1], dims[2]}));
  expect("reshape of a transpose", reshape(transpose(x, {0, 2, 1}), {dims[0], dims[1] * dims[2]}));
  expect("broadcast", broadcast_in_dim(x, {2, dims[0], dims[1], 3, dims[2]}, {1, 2, 4}));
  expect("concat", concat({x, x, transpose(transpose(x, {2, 1, 0}), {2, 1, 0})}, 1));
  expect("gather", gather(x, sweep.input(i32, {4, 2}), 1));
  expect("gather rows", gather(x, sweep.input(i64, {5}), 0));
}

}  // namespace

TEST_CASE("ops: movement in every type and shape", "[device]") {
  for (const Shape& shape : std::vector<Shape>{{1, 1, 1}, {2, 3, 5}, {7, 11, 13}, {33, 1, 8}}) {
    OpSweep sweep("movement");
    for (const DType dtype : all_dtypes()) {
      add_movements(sweep, dtype, shape, dims_of(shape));
      const Tensor x = sweep.input(dtype, shape);
      sweep.expect_exact("slice", slice(x, 2, 0, shape[2] / 2 + 1));
      sweep.expect_exact("slice with a step", slice(slice(x, 0, shape[0] / 2, shape[0]), 1, 0, shape[1], 2));
      sweep.expect_exact("slice of a concat", slice(concat({x, x}, 2), 2, 1, 2 * shape[2]));
      sweep.expect_exact("concat of slices", concat({slice(x, 1, 0, 1), x}, 1));
    }
    sweep.run_on_test_devices();
  }
}

TEST_CASE("ops: movement of nothing", "[device]") {
  OpSweep sweep("empty");
  for (const DType dtype : all_dtypes()) {
    const Tensor none = sweep.input(dtype, {0, 4}), some = sweep.input(dtype, {3, 4});
    sweep.expect_exact("transpose", transpose(none, {1, 0}));
    sweep.expect_exact("concat", concat({none, some, none}, 0));
    sweep.expect_exact("slice", slice(some, 0, 2, 2));
    sweep.expect_exact("reshape", reshape(none, {2, 0}));
    sweep.expect_exact("gather", gather(some, sweep.input(i32, {0}), 0));
  }
  sweep.run_on_test_devices();
}

TEST_CASE("ops: movement with symbolic extents", "[device]") {
  for (const std::int64_t batch : {1, 3, 17}) {
    OpSweep sweep("symbolic");
    const Dim B = sweep.graph().dim("B", {.min = 1, .max = 1000});
    const Dim T = sweep.graph().dim("T", {.min = 1, .max = 100, .hint = 5});
    for (const DType dtype : {f32, bf16, i64}) {
      add_movements(sweep, dtype, {batch, 5, 4}, {B, T, 4});
      const Tensor x = sweep.input(dtype, {batch, 5, 4}, {B, T, 4});
      sweep.expect_exact("slice of a symbolic concat", slice(concat({x, x}, 0), 0, B, 2 * B));
    }
    sweep.run_on_test_devices({{"B", batch}, {"T", 5}});
  }
}

TEST_CASE("ops: an index out of range is clamped", "[device]") {
  OpSweep sweep("clamp");
  HostTensor indices = HostTensor::make(i64, {5});
  const std::int64_t values[] = {-1, 0, 2, 3, std::numeric_limits<std::int64_t>::max()};
  for (std::int64_t i = 0; i < 5; ++i) indices.set_int(i, values[i]);
  sweep.expect_exact("gather", gather(sweep.input(f32, {3, 2}), sweep.input(indices), 0));
  sweep.run_on_test_devices();
}
