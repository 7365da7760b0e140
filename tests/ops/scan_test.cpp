// cumulative_sum over rows and columns, in both directions, with and without the element itself.
// SPDX-License-Identifier: Apache-2.0
#include "support/op_sweep.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

struct ScanCase {
  Shape shape;
  std::int64_t axis;
};
/// Rows shorter and longer than a warp, columns, a middle axis, one long row, nothing.
const std::vector<ScanCase> scan_cases = {
    {{5, 7}, 1}, {{3, 32}, 1}, {{3, 33}, 1}, {{2, 1000}, 1},   {{65, 40}, 0}, {{4, 5, 6}, 1}, {{13}, 0},
    {{3000}, 0}, {{0, 4}, 1},  {{4, 0}, 1},  {{3, 300, 1}, 1}, {{1, 1}, 0},   {{300, 2}, 0}};

}  // namespace

TEST_CASE("ops: cumulative_sum, in every type and direction", "[ops][device]") {
  for (const ScanCase& item : scan_cases) {
    OpSweep sweep("scan");
    const auto n = static_cast<double>(item.shape[static_cast<std::size_t>(item.axis)]);
    for (const DType dtype : {f64, f32, f16, bf16, i64, i32, i8, u8}) {
      const Tensor x = sweep.input(dtype, item.shape);
      for (const bool exclusive : {false, true}) {
        for (const bool reverse : {false, true}) {
          const Tensor y = cumulative_sum(x, item.axis, {.exclusive = exclusive, .reverse = reverse});
          const std::string what = describe(ir::Op::cumulative_sum, dtype, item.shape);
          if (!is_floating(dtype)) {
            sweep.expect_exact(what, y);
            continue;
          }
          // |x| < 4: each of up to n - 1 additions rounds a sum below 4 n once; half types once more at the
          // end.
          const DType wide = is_half(dtype) ? f32 : dtype;
          const double error =
              runtime::gamma(static_cast<std::int64_t>(n), wide) * 4 * n * (dtype == f64 ? 2 : 1);
          sweep.expect(what, y, [=](std::size_t, double exact) {
            return dtype == wide ? error : error + runtime::rounding_bound(exact, error, dtype);
          });
        }
      }
    }
    sweep.run_on_test_devices();
  }
}

TEST_CASE("ops: cumulative_sum reads what is computed on the way, and is read", "[ops][device]") {
  OpSweep sweep("scan_fused");
  const Tensor x = sweep.input(i64, {6, 70});
  sweep.expect_exact("of a chain", cumulative_sum(x * x - 3, 1));
  sweep.expect_exact("of a pad", cumulative_sum(pad(x, 5, {0, 1}, {0, 2}), 1, {.exclusive = true}));
  sweep.expect_exact("of a constant", cumulative_sum(x * 0 + 2, 1, {.exclusive = true}));
  sweep.expect_exact("of an iota", cumulative_sum(sweep.graph().iota(i64, {6, 70}, 1), 1,
                                                  {.exclusive = true, .reverse = true}));
  sweep.expect_exact("of a scan", cumulative_sum(cumulative_sum(x, 1), 0));
  sweep.expect_exact("its maximum", max(cumulative_sum(x, 1), {0}));
  sweep.expect_exact("transposed", cumulative_sum(transpose(x, {1, 0}), 0) + 1);
  sweep.run_on_test_devices();
}

TEST_CASE("ops: cumulative_sum of symbolic extents", "[ops][device]") {
  for (const std::int64_t rows : {0, 1, 30}) {
    for (const std::int64_t columns : {0, 1, 31, 100}) {
      OpSweep sweep("symbolic_scan");
      const Dim R = sweep.graph().dim("R", {.min = 0, .max = 100000, .hint = 64});
      const Dim C = sweep.graph().dim("C", {.min = 0, .max = 100000, .hint = 3000});
      const Tensor x = sweep.input(i32, {rows, columns}, {R, C});
      sweep.expect_exact("rows", cumulative_sum(x, 1));
      sweep.expect_exact("columns", cumulative_sum(x, 0, {.exclusive = true}));
      sweep.run_on_test_devices({{"R", rows}, {"C", columns}});
    }
  }
}
