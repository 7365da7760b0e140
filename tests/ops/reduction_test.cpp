// Every reduction, in every type, over rows, columns, all, and mixed dims; each usual nest.
// SPDX-License-Identifier: Apache-2.0
#include "support/op_sweep.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

struct ReductionCase {
  Shape shape;
  std::vector<std::int64_t> dims;
};

/// A warp a row, a block a row, columns, blocks across the rows, full (two launches), mixed, empty results,
/// nothing to reduce.
const std::vector<ReductionCase> reduction_cases = {
    {{5, 7}, {1}},  {{3, 1025}, {1}},    {{37, 65}, {0}},        {{2, 3, 40}, {0}}, {{13}, {0}},
    {{40000}, {0}}, {{4, 5, 6}, {0, 2}}, {{4, 5, 6}, {0, 1, 2}}, {{1200, 64}, {0}}, {{2, 20000}, {1}},
    {{0, 4}, {1}},  {{1, 1}, {0}},       {{3, 33, 2}, {1}}};

std::vector<ir::OpInfo> reductions(bool with_position) {
  std::vector<ir::OpInfo> rows;
  for (int op = 0; op < ir::op_count; ++op) {
    const ir::OpInfo& row = info(static_cast<ir::Op>(op));
    if (row.relation != ir::Relation::reduce) continue;
    if ((row.identity == ir::Identity::none) == with_position) rows.push_back(row);
  }
  return rows;
}

std::int64_t reduced_count(const ReductionCase& item) {
  std::int64_t count = 1;
  for (const std::int64_t dim : item.dims) count *= item.shape[static_cast<std::size_t>(dim)];
  return count;
}

}  // namespace

TEST_CASE("ops: every reduction, type and form", "[device]") {
  for (const ReductionCase& item : reduction_cases) {
    OpSweep sweep("reduction");
    const std::int64_t n = reduced_count(item);
    for (const ir::OpInfo& row : reductions(false)) {
      for (const DType dtype : all_dtypes()) {
        if (!takes(row.operands, dtype)) continue;
        const bool rounds = row.identity == ir::Identity::zero || row.identity == ir::Identity::one;
        Tensor x = sweep.input(dtype, item.shape, !rounds);
        // Products of many factors stay finite and informative near 1.
        if (row.identity == ir::Identity::one && is_floating(dtype)) x = x / 1024 + 1;
        const Tensor value = sweep.apply(row.op, {x}, ir::DimsAttr{item.dims});
        const std::string what = describe(row.op, dtype, item.shape);
        if (!rounds || !is_floating(dtype)) {
          sweep.expect_exact(what, value);
        } else {
          // |x| < 4, so the sum of magnitudes is below 4 n; a product of n factors errs by n roundings.
          const double unit = dtype == f32 ? 0x1p-24 : 0x1p-53;
          const bool sum = row.identity == ir::Identity::zero;
          const double count = static_cast<double>(n) + 3;
          sweep.expect(what, value, [=](std::size_t, double exact) {
            return sum ? 4 * count * count * unit : 2 * count * unit * std::fabs(exact) + unit;
          });
        }
      }
    }
    sweep.run_on_test_devices();
  }
}

TEST_CASE("ops: argmax and argmin take the first of equals and prefer NaN", "[device]") {
  for (const ReductionCase& item : reduction_cases) {
    if (item.dims.size() != 1) continue;
    OpSweep sweep("argmax");
    for (const ir::OpInfo& row : reductions(true)) {
      for (const DType dtype : all_dtypes()) {
        if (!takes(row.operands, dtype)) continue;
        for (const bool specials : {false, true}) {
          // Few distinct values, so that most rows have equals.
          Tensor x = sweep.input(dtype, item.shape, specials);
          if (is_floating(dtype) && !specials) x = floor(x);
          sweep.expect_exact(describe(row.op, dtype, item.shape),
                             sweep.apply(row.op, {x}, ir::DimsAttr{item.dims}));
        }
      }
    }
    sweep.run_on_test_devices();
  }
}

TEST_CASE("ops: reductions with symbolic extents", "[device]") {
  for (const std::int64_t rows : {1, 30}) {
    for (const std::int64_t columns : {1, 700}) {
      OpSweep sweep("symbolic");
      const Dim R = sweep.graph().dim("R", {.min = 1, .max = 100000, .hint = 64});
      const Dim C = sweep.graph().dim("C", {.min = 0, .max = 100000, .hint = 3000});
      const Tensor x = sweep.input(i64, {rows, columns}, {R, C});
      sweep.expect_exact("rows", sum(x, {1}));
      sweep.expect_exact("columns", sum(x, {0}));
      sweep.expect_exact("all", sum(x));
      sweep.expect_exact("max of all", max(x));
      sweep.run_on_test_devices({{"R", rows}, {"C", columns}});
    }
  }
}

TEST_CASE("ops: reducing nothing gives the identity", "[device]") {
  OpSweep sweep("identity");
  for (const ir::OpInfo& row : reductions(false)) {
    for (const DType dtype : all_dtypes()) {
      if (!takes(row.operands, dtype)) continue;
      sweep.expect_exact(describe(row.op, dtype, {4, 0}),
                         sweep.apply(row.op, {sweep.input(dtype, {4, 0})}, ir::DimsAttr{{1}}));
    }
  }
  sweep.run_on_test_devices();
}
