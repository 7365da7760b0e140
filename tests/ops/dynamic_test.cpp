// Ops that move elements to positions known at run time or outside of the operand: pad, reverse, and dynamic
// slices.
// SPDX-License-Identifier: Apache-2.0
#include "support/op_sweep.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

Tensor scalar(OpSweep& sweep, DType dtype, std::int64_t value) {
  HostTensor tensor = HostTensor::make(dtype, {});
  tensor.set_int(0, value);
  return sweep.input(tensor);
}

}  // namespace

TEST_CASE("ops: reverse, in every type", "[ops][device]") {
  OpSweep sweep("reverse");
  for (const DType dtype : all_dtypes()) {
    const Tensor x = sweep.input(dtype, {3, 4, 5}, true);
    for (const std::vector<std::int64_t>& axes :
         std::vector<std::vector<std::int64_t>>{{0}, {1}, {-1}, {0, 2}, {0, 1, 2}}) {
      sweep.expect_exact("reverse", reverse(x, axes));
    }
    sweep.expect_exact("twice", reverse(reverse(x, {1}), {1}));
    sweep.expect_exact("of a transpose", reverse(transpose(x, {2, 0, 1}), {0, 2}));
    sweep.expect_exact("reduced", max(select(reverse(x == x, {0}), convert(x, f32), 1), {0}));
  }
  sweep.expect_exact("empty", reverse(sweep.input(f32, {0, 3}), {0, 1}));
  sweep.run_on_test_devices();
}

TEST_CASE("ops: pad, in every type", "[ops][device]") {
  OpSweep sweep("pad");
  for (const DType dtype : all_dtypes()) {
    const Tensor x = sweep.input(dtype, {3, 5}, true);
    sweep.expect_exact("both", pad(x, 1, {1, 2}, {0, 3}));
    sweep.expect_exact("before", pad(x, 0, {2, 0}, {0, 0}));
    sweep.expect_exact("after", pad(x, scalar(sweep, dtype, 1), {0, 0}, {0, 4}));
    sweep.expect_exact("not at all", pad(x, 1, {0, 0}, {0, 0}));
    sweep.expect_exact("of a pad", pad(pad(x, 1, {1, 1}, {1, 1}), 0, {1, 0}, {0, 1}));
    sweep.expect_exact("sliced", slice(pad(x, 1, {1, 0}, {1, 0}), 0, 1, 4));
  }
  sweep.expect_exact("of nothing", pad(sweep.input(f32, {0, 2}), 7.5, {1, 1}, {2, 0}));
  sweep.expect_exact("a scalar", pad(sweep.input(f32, {}), 7.5, {}, {}));
  sweep.run_on_test_devices();
}

TEST_CASE("ops: pad by symbolic counts", "[ops][device]") {
  for (const std::int64_t count : {0, 1, 9}) {
    OpSweep sweep("symbolic_pad");
    const Dim N = sweep.graph().dim("N", {.min = 0, .max = 1000, .hint = 64});
    const Tensor x = sweep.input(i64, {count, 3}, {N, 3});
    sweep.expect_exact("by N", pad(x, -1, {N, 1}, {2, N}));
    sweep.expect_exact("summed", sum(pad(x, -1, {N, 1}, {2, N}), {0}));
    sweep.run_on_test_devices({{"N", count}});
  }
}

TEST_CASE("ops: dynamic_slice clamps its starts", "[ops][device]") {
  for (const std::int64_t start : {-3, 0, 2, 4, 5, 100}) {
    OpSweep sweep("dynamic_slice");
    for (const DType dtype : all_dtypes()) {
      const Tensor x = sweep.input(dtype, {7, 6}, true);
      const DType index = dtype == f32 ? i64 : i32;
      const Tensor at = scalar(sweep, index, start);
      sweep.expect_exact("box", dynamic_slice(x, {at, at}, {3, 2}));
      sweep.expect_exact("one dim", dynamic_slice(x, {0, at}, {7, 2}));
      sweep.expect_exact("all", dynamic_slice(x, {at, at}, {7, 6}));
      sweep.expect_exact("a number", dynamic_slice(x, {at, 3}, {1, 2}));
    }
    sweep.run_on_test_devices();
  }
}

TEST_CASE("ops: dynamic_update_slice", "[ops][device]") {
  for (const std::int64_t start : {-3, 0, 2, 4, 100}) {
    OpSweep sweep("dynamic_update_slice");
    for (const DType dtype : all_dtypes()) {
      const Tensor x = sweep.input(dtype, {7, 6}, true), update = sweep.input(dtype, {3, 2}, true);
      const Tensor at = scalar(sweep, i64, start);
      const Tensor y = dynamic_update_slice(x, update, {at, at});
      sweep.expect_exact("box", y);
      sweep.expect_exact("read back", dynamic_slice(y, {at, at}, {3, 2}) == update);
      sweep.expect_exact("twice", dynamic_update_slice(y, update, {0, at}));
      sweep.expect_exact(
          "all", dynamic_update_slice(x, transpose(reverse(transpose(x, {1, 0}), {0}), {1, 0}), {at, at}));
      sweep.expect_exact("reshaped", dynamic_update_slice(reshape(x, {42}), reshape(update, {6}), {at}));
    }
    sweep.run_on_test_devices();
  }
}

TEST_CASE("ops: dynamic slices of symbolic extents", "[ops][device]") {
  for (const std::int64_t length : {4, 5, 40}) {
    OpSweep sweep("symbolic_dynamic");
    const Dim N = sweep.graph().dim("N", {.min = 4, .max = 1000, .hint = 64});
    const Tensor x = sweep.input(f32, {length, 3}, {N, 3});
    const Tensor at = scalar(sweep, i32, 7);
    const Tensor part = dynamic_slice(x, {at, 0}, {4, 2});
    sweep.expect_exact("part", part);
    sweep.expect_exact("put elsewhere", dynamic_update_slice(x, part, {at - 5, 1}));
    sweep.run_on_test_devices({{"N", length}});
  }
}

TEST_CASE("ops: what dynamic slices and pads refuse", "[ops][device]") {
  Graph g("refused");
  const Dim N = g.dim("N", {.min = 0, .max = 10});
  const Tensor x = g.input("x", f32, {4, N}), i = g.input("i", i32, {}), r = g.input("r", f32, {});
  CHECK_THROWS_WITH(dynamic_slice(x, {i, i}, {5, 0}),
                    Catch::Contains("5 elements are not known to fit into 4"));
  CHECK_THROWS_WITH(dynamic_slice(x, {i, i}, {1, 11}),
                    Catch::Contains("11 elements are not known to fit into N"));
  CHECK_NOTHROW(dynamic_slice(x, {i, i}, {1, 1}));  // 1 <= N is guarded
  CHECK_THROWS_WITH(dynamic_slice(x, {i}, {1, 0}),
                    Catch::Contains("the op has 1 start, the operand's rank is 2"));
  CHECK_THROWS_WITH(dynamic_slice(x, {r, 0}, {1, 0}), Catch::Contains("a start is f32"));
  CHECK_THROWS_WITH(dynamic_update_slice(x, r, {i, i}), Catch::Contains("ranks differ"));
  CHECK_THROWS_WITH(pad(x, i, {0, 0}, {0, 0}), Catch::Contains("operands have types f32 and i32"));
  CHECK_THROWS_WITH(pad(x, 0, {N - 11, 0}, {0, 0}), Catch::Contains("not known to be 0 or more"));
  CHECK_NOTHROW(pad(x, 0, {N - 1, 0}, {0, 0}));  // so is 0 <= N - 1
  CHECK_THROWS_WITH(pad(x, 0, {1}, {0, 0}), Catch::Contains("1 low and 2 high"));
  CHECK_THROWS_WITH(reverse(x, {2}), Catch::Contains("axis 2 is out of range"));
  CHECK_THROWS_WITH(reverse(x, {0, -2}), Catch::Contains("named twice"));
}

TEST_CASE("ops: an element read under two conditions is read where both hold", "[ops][device]") {
  // Checked devices name a read of what a pad, or another part of a concat, stands for.
  OpSweep sweep("conditions");
  const Tensor a = sweep.input(f32, {4, 3}), b = sweep.input(f32, {4, 3});
  const auto padded = [](const Tensor& x, int low, int high) { return pad(x, -1, {low, 0}, {high, 0}); };
  const Tensor both = concat({a, b}, 0);
  sweep.expect_exact("pad of concat", padded(both, 2, 2));
  sweep.expect_exact("pad of concat of slices",
                     padded(concat({slice(a, 0, 1, 3), slice(b, 0, 0, 2)}, 0), 3, 1));
  sweep.expect_exact("pad of pad of concat", padded(padded(both, 1, 0), 0, 5));
  sweep.expect_exact("concat of pads", concat({padded(a, 1, 2), padded(b, 2, 1), a}, 0));
  sweep.expect_exact("concat of concats of pads",
                     concat({concat({padded(a, 1, 0), b}, 0), padded(both, 0, 1)}, 0));
  sweep.expect_exact("slice of pad of concat", slice(padded(both, 2, 2), 0, 1, 11, 2));
  sweep.expect_exact("pad of reverse of concat", padded(reverse(both, {0}), 2, 1));
  sweep.expect_exact("pad of concat of other axes", pad(concat({a, b}, 1), -1, {1, 2}, {1, 2}));
  sweep.expect_exact("concat of a pad of a concat",
                     concat({padded(concat({a, padded(b, 1, 1)}, 0), 1, 1), both}, 0));
  sweep.run_on_test_devices();
}
