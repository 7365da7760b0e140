// Matmul in every type, with transposes, batches and odd, unit and empty extents.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "support/op_sweep.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

struct Extents {
  Shape batch;
  std::int64_t m, n, k;
};

Shape matrix(Shape batch, std::int64_t rows, std::int64_t columns, bool transposed) {
  batch.push_back(transposed ? columns : rows);
  batch.push_back(transposed ? rows : columns);
  return batch;
}

}  // namespace

TEST_CASE("ops: matmul in every type, transpose and batch", "[device]") {
  OpSweep sweep("matmul");
  for (const Extents& e : std::vector<Extents>{{{}, 1, 1, 1},
                                               {{}, 7, 5, 13},
                                               {{2, 3}, 4, 9, 8},
                                               {{}, 33, 65, 31},
                                               {{}, 3, 4, 0},
                                               {{2}, 0, 4, 3},
                                               {{0}, 2, 2, 2}}) {
    for (const DType dtype : {f32, f64, f16, bf16}) {
      for (const int transposes : {0, 1, 2, 3}) {
        const bool ta = transposes & 1, tb = transposes & 2;
        const Tensor a = sweep.input(dtype, matrix(e.batch, e.m, e.k, ta));
        const Tensor b = sweep.input(dtype, matrix(e.batch, e.k, e.n, tb));
        // |a|, |b| < 4: k products below 16, accumulated in f32 or f64, then one rounding to the type.
        const double unit = dtype == f64 ? 0x1p-53 : 0x1p-24;
        const double k = static_cast<double>(e.k);
        for (const DType result :
             is_half(dtype) ? std::vector<DType>{dtype, f32} : std::vector<DType>{dtype}) {
          sweep.expect("matmul " + a.type_string() + " " + b.type_string(),
                       matmul(a, b, {.transpose_a = ta, .transpose_b = tb, .result = result}),
                       [=](std::size_t, double exact) {
                         return 16 * k * (k + 2) * unit + runtime::ulp_of(exact, result);
                       });
        }
      }
    }
  }
  sweep.run_on_test_devices();
}

TEST_CASE("ops: matmul operands that are computed, viewed or shared", "[device]") {
  OpSweep sweep("operands");
  const Dim B = sweep.graph().dim("B", {.min = 1, .max = 100, .hint = 3});
  const Tensor x = sweep.input(f32, {6, 4, 8}, {B, 4, 8}), w = sweep.input(f32, {8, 5});
  const auto bound = [](std::size_t, double) { return 256 * 16 * 10 * 0x1p-24; };
  sweep.expect("linear", linear(x, w), bound);
  sweep.expect("computed", matmul(reshape(x + 1, {4 * B, 8}), w * 2), bound);
  sweep.expect("transposed", matmul(transpose(w, {1, 0}), transpose(reshape(x, {4 * B, 8}), {1, 0})), bound);
  const Tensor y = linear(x, w);
  sweep.expect("used twice", y + sum(y, {2}, {.keep_dims = true}),
               [](std::size_t, double) { return 256 * 16 * 60 * 0x1p-24; });
  sweep.run_on_test_devices({{"B", 6}});
}
