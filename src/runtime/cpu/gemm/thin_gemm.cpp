// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/gemm/thin_gemm.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace fuse::runtime::cpu {
namespace {

constexpr int gemv_row_major = 101, gemv_as_it_lies = 111, gemv_transposed = 112;

/// y += matrix * x, or its transpose's; `apart`: elements between those of a vector.
using Gemv = void (*)(int order, int transpose, int rows, int columns, double alpha, const double* matrix,
                      int row, const double* x, int x_apart, double beta, double* y, int y_apart);

/// A matrix as it lies in memory.
struct Stored {
  std::int64_t rows = 0, columns = 0, row = 0;
};
Stored stored_a(const GemmDesc& d) {
  return {d.transpose_a ? d.k : d.m, d.transpose_a ? d.m : d.k, row_of_a(d)};
}
Stored stored_b(const GemmDesc& d) {
  return {d.transpose_b ? d.n : d.k, d.transpose_b ? d.k : d.n, row_of_b(d)};
}

class ThinGemm final : public HostGemm {
 public:
  ThinGemm(const GemmDesc& desc, Gemv gemv) : desc_(desc), gemv_(gemv) {}
  void run(const void* a, const void* b, void* c, const void*) const noexcept override {
    const auto* const left = static_cast<const double*>(a);
    const auto* const right = static_cast<const double*>(b);
    auto* const result = static_cast<double*>(c);
    const std::int64_t row_a = row_of_a(desc_), row_b = row_of_b(desc_), row_c = row_of_c(desc_);
    if (desc_.m <= most_gemv_rows) {
      // A row of c is b's transpose by a row of a.
      for (std::int64_t i = 0; i < desc_.m; ++i)
        multiply(right, stored_b(desc_), !desc_.transpose_b, left + i * (desc_.transpose_a ? 1 : row_a),
                 desc_.transpose_a ? row_a : 1, result + i * row_c, desc_.n, 1);
      return;
    }
    for (std::int64_t j = 0; j < desc_.n; ++j)
      multiply(left, stored_a(desc_), desc_.transpose_a, right + j * (desc_.transpose_b ? row_b : 1),
               desc_.transpose_b ? 1 : row_b, result + j, desc_.m, row_c);
  }

 private:
  // y is cleared here: libraries differ in whether a factor of 0 keeps a NaN that lay there.
  void multiply(const double* matrix, const Stored& as, bool transpose, const double* x, std::int64_t x_apart,
                double* y, std::int64_t count, std::int64_t y_apart) const noexcept {
    for (std::int64_t i = 0; i < count; ++i) y[i * y_apart] = 0;
    gemv_(gemv_row_major, transpose ? gemv_transposed : gemv_as_it_lies, static_cast<int>(as.rows),
          static_cast<int>(as.columns), 1, matrix, static_cast<int>(as.row), x, static_cast<int>(x_apart), 1,
          y, static_cast<int>(y_apart));
  }

  const GemmDesc desc_;
  const Gemv gemv_;
};

}  // namespace

std::unique_ptr<HostGemm> make_thin_gemm(const GemmDesc& d) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  const bool thin = d.m <= most_gemv_rows || d.n <= most_gemv_rows;
  const bool fits = std::max({d.m, d.n, d.k, row_of_a(d), row_of_b(d), row_of_c(d)}) <= most;
  const bool plain = d.batch == 1 && d.epilogue == schedule::EpilogueKind::none && d.algorithm == 0;
  if (!thin || !fits || !plain || !openblas_used() || std::min({d.m, d.n, d.k}) <= 0) return nullptr;
  if (d.operand != DType::f64) return nullptr;
  const auto gemv = openblas_library().find<Gemv>("cblas_dgemv");
  if (!gemv) return nullptr;
  return std::make_unique<ThinGemm>(d, gemv);
}

}  // namespace fuse::runtime::cpu
