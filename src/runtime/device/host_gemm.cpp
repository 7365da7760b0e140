// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/host_gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

#include "os/shared_library.hpp"

namespace fuse::runtime {
namespace {

template <class T>
auto element(const void* base, std::int64_t index) {
  return static_cast<const T*>(base) + index;
}

void write_zeros(const GemmDesc& d, void* c) {
  const std::size_t size = size_of(d.result);
  for (std::int64_t i = 0; i < d.batch; ++i) {
    for (std::int64_t row = 0; row < d.m; ++row) {
      std::memset(static_cast<char*>(c) + static_cast<std::size_t>(i * d.stride_c + row * row_of_c(d)) * size,
                  0, static_cast<std::size_t>(d.n) * size);
    }
  }
}

// ---- plain loops

constexpr std::int64_t block_m = 32, block_n = 64, block_k = 64, lanes = 8;

/// One block of columns of one block of rows, accumulated over all of k before the one rounding. Fixed-size
/// blocks on the stack: a run allocates nothing. k ascends for every element whatever the block sizes.
template <class Acc>
struct Blocks {
  Acc sum[block_m][block_n];
  Acc a[block_m][block_k];
  Acc b[block_k][block_n];
};

template <class Acc>
void multiply_block(Blocks<Acc>& s, std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  for (std::int64_t i = 0; i < rows; ++i) {
    Acc* sum = s.sum[i];
    std::int64_t k = 0;
    for (; k + 4 <= depth; k += 4) {
      const Acc x0 = s.a[i][k], x1 = s.a[i][k + 1], x2 = s.a[i][k + 2], x3 = s.a[i][k + 3];
      for (std::int64_t j = 0; j < columns; j += lanes) {
        for (std::int64_t l = j; l < j + lanes; ++l) {
          sum[l] =
              (((sum[l] + x0 * s.b[k][l]) + x1 * s.b[k + 1][l]) + x2 * s.b[k + 2][l]) + x3 * s.b[k + 3][l];
        }
      }
    }
    for (; k < depth; ++k) {
      for (std::int64_t j = 0; j < columns; ++j) sum[j] += s.a[i][k] * s.b[k][j];
    }
  }
}

template <class In, class Out>
void plain_matrix(const GemmDesc& d, const In* a, const In* b, Out* c) {
  using Acc = decltype(widen(In{}));
  Blocks<Acc> s;
  // (row, column) of a is at row * a_row + column * a_column.
  const std::int64_t a_row = d.transpose_a ? 1 : row_of_a(d), a_column = d.transpose_a ? row_of_a(d) : 1;
  const std::int64_t b_row = d.transpose_b ? 1 : row_of_b(d), b_column = d.transpose_b ? row_of_b(d) : 1;
  for (std::int64_t j0 = 0; j0 < d.n; j0 += block_n) {
    const std::int64_t columns = std::min(block_n, d.n - j0);
    const std::int64_t padded = (columns + lanes - 1) / lanes * lanes;  // sums past `columns` are dropped
    for (std::int64_t i0 = 0; i0 < d.m; i0 += block_m) {
      const std::int64_t rows = std::min(block_m, d.m - i0);
      for (std::int64_t i = 0; i < rows; ++i) std::fill_n(s.sum[i], padded, Acc{});
      for (std::int64_t k0 = 0; k0 < d.k; k0 += block_k) {
        const std::int64_t depth = std::min(block_k, d.k - k0);
        for (std::int64_t i = 0; i < rows; ++i) {
          const In* from = a + (i0 + i) * a_row + k0 * a_column;
          for (std::int64_t k = 0; k < depth; ++k) s.a[i][k] = widen(from[k * a_column]);
        }
        for (std::int64_t k = 0; k < depth; ++k) {
          const In* from = b + (k0 + k) * b_row + j0 * b_column;
          for (std::int64_t j = 0; j < columns; ++j) s.b[k][j] = widen(from[j * b_column]);
          std::fill(s.b[k] + columns, s.b[k] + padded, Acc{});
        }
        multiply_block(s, rows, padded, depth);
      }
      for (std::int64_t i = 0; i < rows; ++i) {
        Out* to = c + (i0 + i) * row_of_c(d) + j0;
        for (std::int64_t j = 0; j < columns; ++j) to[j] = narrow(s.sum[i][j], static_cast<Out*>(nullptr));
      }
    }
  }
}

template <class In, class Out>
class PlainGemm final : public HostGemm {
 public:
  explicit PlainGemm(const GemmDesc& desc) : desc_(desc) {}
  void run(const void* a, const void* b, void* c, const void*) const noexcept override {
    for (std::int64_t i = 0; i < desc_.batch; ++i) {
      plain_matrix(desc_, element<In>(a, i * desc_.stride_a), element<In>(b, i * desc_.stride_b),
                   static_cast<Out*>(c) + i * desc_.stride_c);
    }
  }

 private:
  GemmDesc desc_;
};

// ---- OpenBLAS

constexpr int row_major = 101, no_transpose = 111, transpose = 112;

struct OpenBlas {
  SharedLibrary library;
  void (*sgemm)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*,
                int) = nullptr;
  void (*dgemm)(int, int, int, int, int, int, double, const double*, int, const double*, int, double, double*,
                int) = nullptr;
  std::string config, core;
  bool usable = false;
};

// ThreadSanitizer sees what OpenBLAS's threads write and not how they synchronise: false races.
#if defined(__SANITIZE_THREAD__)
constexpr bool built_for_tsan = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool built_for_tsan = true;
#else
constexpr bool built_for_tsan = false;
#endif
#else
constexpr bool built_for_tsan = false;
#endif

// Opened once per process: it starts threads of its own.
const OpenBlas& openblas() {
  static const OpenBlas table = [] {
    OpenBlas blas;
    blas.library = SharedLibrary::open({.what = "OpenBLAS",
                                        .variable = Variable::libopenblas,
                                        .sonames = {"libopenblas.so.0"},
                                        .hint = "install libopenblas0",
                                        .needed = {"cblas_sgemm", "cblas_dgemm"}});
    blas.sgemm = blas.library.find<decltype(blas.sgemm)>("cblas_sgemm");
    blas.dgemm = blas.library.find<decltype(blas.dgemm)>("cblas_dgemm");
    if (const auto config = blas.library.find<const char* (*)()>("openblas_get_config")) {
      blas.config = config();
    }
    if (const auto core = blas.library.find<const char* (*)()>("openblas_get_corename")) blas.core = core();
    // With 64-bit integers its functions have other prototypes under the same names.
    blas.usable = !built_for_tsan && blas.library && blas.config.find("USE64BITINT") == std::string::npos;
    return blas;
  }();
  return table;
}

bool fits_blas(const GemmDesc& d) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  return d.m <= most && d.n <= most && d.k <= most && row_of_a(d) <= most && row_of_b(d) <= most &&
         row_of_c(d) <= most;
}

void blas_matrix(const GemmDesc& d, const float* a, const float* b, float* c) {
  const int m = static_cast<int>(d.m), n = static_cast<int>(d.n), k = static_cast<int>(d.k);
  openblas().sgemm(row_major, d.transpose_a ? transpose : no_transpose,
                   d.transpose_b ? transpose : no_transpose, m, n, k, 1, a, static_cast<int>(row_of_a(d)), b,
                   static_cast<int>(row_of_b(d)), 0, c, static_cast<int>(row_of_c(d)));
}
void blas_matrix(const GemmDesc& d, const double* a, const double* b, double* c) {
  const int m = static_cast<int>(d.m), n = static_cast<int>(d.n), k = static_cast<int>(d.k);
  openblas().dgemm(row_major, d.transpose_a ? transpose : no_transpose,
                   d.transpose_b ? transpose : no_transpose, m, n, k, 1, a, static_cast<int>(row_of_a(d)), b,
                   static_cast<int>(row_of_b(d)), 0, c, static_cast<int>(row_of_c(d)));
}

template <class T>
class BlasGemm final : public HostGemm {
 public:
  explicit BlasGemm(const GemmDesc& desc) : desc_(desc) {}
  void run(const void* a, const void* b, void* c, const void*) const noexcept override {
    for (std::int64_t i = 0; i < desc_.batch; ++i) {
      blas_matrix(desc_, element<T>(a, i * desc_.stride_a), element<T>(b, i * desc_.stride_b),
                  static_cast<T*>(c) + i * desc_.stride_c);
    }
  }

 private:
  GemmDesc desc_;
};

/// 16-bit operands, widened to f32 for OpenBLAS; the loops where there is no memory for that.
template <class In, class Out>
class WidenedBlasGemm final : public HostGemm {
 public:
  explicit WidenedBlasGemm(const GemmDesc& desc) : desc_(desc), plain_(desc) {
    dense_.row_a = dense_.row_b = dense_.row_c = 0;
  }
  void run(const void* a, const void* b, void* c, const void*) const noexcept override {
    std::vector<float> wide_a, wide_b, wide_c;
    try {
      wide_a.resize(static_cast<std::size_t>(desc_.m * desc_.k));
      wide_b.resize(static_cast<std::size_t>(desc_.k * desc_.n));
      wide_c.resize(static_cast<std::size_t>(desc_.m * desc_.n));
    } catch (const std::exception&) {
      plain_.run(a, b, c, nullptr);
      return;
    }
    for (std::int64_t i = 0; i < desc_.batch; ++i) {
      // A matrix that the batch shares is widened once.
      if (i == 0 || desc_.stride_a != 0)
        widen_all(element<In>(a, i * desc_.stride_a), row_of_a(desc_), row_of_a(dense_), wide_a);
      if (i == 0 || desc_.stride_b != 0)
        widen_all(element<In>(b, i * desc_.stride_b), row_of_b(desc_), row_of_b(dense_), wide_b);
      blas_matrix(dense_, wide_a.data(), wide_b.data(), wide_c.data());
      const float* from = wide_c.data();
      for (std::int64_t row = 0; row < desc_.m; ++row, from += desc_.n) {
        Out* to = static_cast<Out*>(c) + i * desc_.stride_c + row * row_of_c(desc_);
        for (std::int64_t j = 0; j < desc_.n; ++j) to[j] = narrow(from[j], static_cast<Out*>(nullptr));
      }
    }
  }

 private:
  /// `row`: elements between rows; each has `columns`.
  static void widen_all(const In* from, std::int64_t row, std::int64_t columns, std::vector<float>& to) {
    for (std::size_t j = 0; j < to.size(); from += row) {
      for (std::int64_t column = 0; column < columns; ++column) to[j++] = widen(from[column]);
    }
  }
  GemmDesc desc_, dense_ = desc_;  ///< the latter with rows back to back
  PlainGemm<In, Out> plain_;
};

/// A GEMM whose result is empty, or zero because k is.
class ZeroGemm final : public HostGemm {
 public:
  explicit ZeroGemm(const GemmDesc& desc) : desc_(desc) {}
  void run(const void*, const void*, void* c, const void*) const noexcept override {
    if (desc_.m && desc_.n) write_zeros(desc_, c);
  }

 private:
  GemmDesc desc_;
};

/// Another GEMM, then one more operation on each element: the bits of two steps.
template <class T>
class EpilogueGemm final : public HostGemm {
 public:
  EpilogueGemm(const GemmDesc& desc, std::unique_ptr<HostGemm> gemm) : desc_(desc), gemm_(std::move(gemm)) {}
  void run(const void* a, const void* b, void* c, const void* extra) const noexcept override {
    gemm_->run(a, b, c);
    const auto scale = static_cast<T>(desc_.scale);
    for (std::int64_t i = 0; i < desc_.batch; ++i) {
      T* const to = static_cast<T*>(c) + i * desc_.stride_c;
      const T* const from = static_cast<const T*>(extra);
      for (std::int64_t j = 0; j < desc_.m * desc_.n; ++j) {
        if (desc_.epilogue == schedule::EpilogueKind::bias) to[j] += from[j % desc_.n];
        if (desc_.epilogue == schedule::EpilogueKind::add) to[j] += from[i * desc_.stride_c + j];
        if (desc_.epilogue == schedule::EpilogueKind::scale) to[j] *= scale;
      }
    }
  }

 private:
  const GemmDesc desc_;
  const std::unique_ptr<HostGemm> gemm_;
};

[[noreturn]] void malformed(const GemmDesc& d, const char* why) {
  throw Error({.kind = ErrorKind::internal,
               .code = ErrorCode::invalid_extent,
               .message = fmt::format("{}: m {}, n {}, k {}, batch {}, strides {}, {}, {}", why, d.m, d.n,
                                      d.k, d.batch, d.stride_a, d.stride_b, d.stride_c),
               .op = "matmul"});
}

/// True where the bytes of `batch` matrices at `stride` overflow 63 bits.
bool overflows(std::int64_t rows, std::int64_t columns, std::int64_t stride, std::int64_t batch, DType type) {
  std::int64_t elements = 0, between = 0, bytes = 0;
  return __builtin_mul_overflow(rows, columns, &elements) ||
         __builtin_mul_overflow(std::max<std::int64_t>(batch - 1, 0), stride, &between) ||
         __builtin_add_overflow(elements, between, &elements) ||
         __builtin_mul_overflow(elements, static_cast<std::int64_t>(size_of(type)), &bytes);
}

/// Rows of a matrix stand apart, and matrices between the rows of one or after it. Calls are not looked at.
bool results_overlap(const GemmDesc& d) {
  if (d.row_c == 0) return d.batch > 1 && d.stride_c < d.m * d.n;
  if (d.m > 1 && d.row_c < d.n) return true;
  if (d.batch <= 1 || d.m == 0) return false;
  const std::int64_t matrix = (d.m - 1) * d.row_c + d.n, rows = (d.batch - 1) * d.stride_c + d.n;
  return d.stride_c < matrix && (d.stride_c < d.n || (d.m > 1 && rows > d.row_c));
}

}  // namespace

void check_gemm_desc(const GemmDesc& d) {
  const bool half_to_f32 = is_half(d.operand) && d.result == DType::f32;
  if (d.operand == DType::boolean || (d.result != d.operand && !half_to_f32)) {
    throw Error({.code = ErrorCode::unsupported,
                 .message = fmt::format("there is no matmul of {} with a result of {}", to_string(d.operand),
                                        to_string(d.result)),
                 .op = "matmul",
                 .hint = "the result has the operands' type, or f32 for f16 and bf16"});
  }
  if (d.batch < 0 || d.m < 0 || d.n < 0 || d.k < 0) malformed(d, "a negative extent");
  if (d.stride_a < 0 || d.stride_b < 0 || d.stride_c < 0) malformed(d, "a negative stride");
  if (overflows(d.transpose_a ? d.k : d.m, row_of_a(d), d.stride_a, d.batch, d.operand) ||
      overflows(d.transpose_b ? d.n : d.k, row_of_b(d), d.stride_b, d.batch, d.operand) ||
      overflows(d.m, row_of_c(d), d.stride_c, d.batch, d.result)) {
    malformed(d, "matrices of 2^63 bytes or more");
  }
  if (row_of_a(d) < (d.transpose_a ? d.m : d.k) || row_of_b(d) < (d.transpose_b ? d.k : d.n))
    malformed(d, "rows of an operand overlap");
  if (results_overlap(d)) malformed(d, "results of the batch overlap");
  if ((d.row_c || d.calls != 1) && (d.epilogue != schedule::EpilogueKind::none || d.k == 0)) {
    malformed(d, "scattered results of no products, or with an epilogue");
  }
  if (d.epilogue == schedule::EpilogueKind::none) return;
  if (!is_floating(d.operand) || d.result != (d.operand == DType::f64 ? DType::f64 : DType::f32)) {
    malformed(d, "an epilogue that the rounding of the result would come before");
  }
  if (d.k == 0) malformed(d, "an epilogue of no products");
}

void check_gemm_algorithm(const GemmDesc& d, std::size_t proposed) {
  if (d.algorithm < proposed) return;
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("there is no algorithm {} for {}: the library proposes {}", d.algorithm,
                                      gemm_text(d), proposed),
               .op = "matmul",
               .hint = proposed == 1 ? "algorithm 0" : fmt::format("algorithms 0 to {}", proposed - 1)});
}

std::string gemm_text(const GemmDesc& d) {
  const bool plain = d.epilogue == schedule::EpilogueKind::none;
  return fmt::format("{} x {} matrices of {} to {} by k = {}{}{}, batch {}{}{}", d.m, d.n,
                     to_string(d.operand), to_string(d.result), d.k, d.transpose_a ? ", a transposed" : "",
                     d.transpose_b ? ", b transposed" : "", d.batch, plain ? "" : ", epilogue ",
                     plain ? "" : to_string(d.epilogue));
}

namespace {

bool is_empty(const GemmDesc& d) { return d.batch == 0 || d.m == 0 || d.n == 0 || d.k == 0; }

bool takes_blas(const GemmDesc& d) {
  return is_floating(d.operand) && !is_empty(d) && fits_blas(d) && openblas().usable;
}

std::unique_ptr<HostGemm> make(const GemmDesc& d, bool blas) {
  check_gemm_desc(d);
  if (is_empty(d)) return std::make_unique<ZeroGemm>(d);
  const bool wide_result = d.result == DType::f32;
  switch (d.operand) {
    case DType::f64:
      if (blas) return std::make_unique<BlasGemm<double>>(d);
      return std::make_unique<PlainGemm<double, double>>(d);
    case DType::f32:
      if (blas) return std::make_unique<BlasGemm<float>>(d);
      return std::make_unique<PlainGemm<float, float>>(d);
    case DType::f16:
      if (blas && wide_result) return std::make_unique<WidenedBlasGemm<half, float>>(d);
      if (blas) return std::make_unique<WidenedBlasGemm<half, half>>(d);
      if (wide_result) return std::make_unique<PlainGemm<half, float>>(d);
      return std::make_unique<PlainGemm<half, half>>(d);
    case DType::bf16:
      if (blas && wide_result) return std::make_unique<WidenedBlasGemm<bfloat16, float>>(d);
      if (blas) return std::make_unique<WidenedBlasGemm<bfloat16, bfloat16>>(d);
      if (wide_result) return std::make_unique<PlainGemm<bfloat16, float>>(d);
      return std::make_unique<PlainGemm<bfloat16, bfloat16>>(d);
    case DType::i64:
      return std::make_unique<PlainGemm<std::int64_t, std::int64_t>>(d);
    case DType::i32:
      return std::make_unique<PlainGemm<std::int32_t, std::int32_t>>(d);
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      break;  // refused by check_gemm_desc
  }
  throw Error({.kind = ErrorKind::internal, .code = ErrorCode::internal, .message = "unknown dtype value"});
}

std::unique_ptr<HostGemm> with_epilogue(const GemmDesc& d, bool blas) {
  std::unique_ptr<HostGemm> gemm = make(d, blas);
  if (d.epilogue == schedule::EpilogueKind::none) return gemm;
  if (d.result == DType::f64) return std::make_unique<EpilogueGemm<double>>(d, std::move(gemm));
  return std::make_unique<EpilogueGemm<float>>(d, std::move(gemm));
}

}  // namespace

GemmDesc with_recorded_rank(GemmDesc desc) {
  if (desc.recorded) {
    const std::string& text = *desc.recorded;
    std::uint32_t rank = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    const bool is_number = error == std::errc() && end == text.data() + text.size();
    if (is_number && rank < (takes_blas(desc) ? 2U : 1U)) desc.algorithm = rank;
  }
  desc.recorded = nullptr;
  return desc;
}

std::unique_ptr<HostGemm> make_host_gemm(const GemmDesc& desc) {
  check_gemm_desc(desc);
  const bool blas = takes_blas(desc);
  check_gemm_algorithm(desc, blas ? 2 : 1);
  return with_epilogue(desc, blas && desc.algorithm == 0);
}
std::unique_ptr<HostGemm> make_plain_gemm(const GemmDesc& desc) { return with_epilogue(desc, false); }

namespace {

// OpenBLAS's own variable, which it reads when it is opened: fuse only says that it is set.
std::string core_asked_for() {
  const char* const core = std::getenv("OPENBLAS_CORETYPE");
  return core ? core : "";
}

}  // namespace

const SharedLibrary& openblas_library() { return openblas().library; }

std::string openblas_config() { return openblas().config; }

bool openblas_used() { return openblas().usable; }

std::string openblas_name() {
  const std::string& config = openblas().config;
  if (config.empty()) return {};
  const std::size_t version = config.find(' '), end = config.find(' ', version + 1);
  std::string name = version == std::string::npos ? config : config.substr(0, end);
  if (!openblas().core.empty()) name += " for " + openblas().core;
  if (const std::string asked = core_asked_for(); !asked.empty())
    name += fmt::format(", OPENBLAS_CORETYPE={} is set", asked);
  return name;
}

std::string host_gemm_report() {
  std::string text = openblas().library.report();
  if (!openblas().config.empty()) text += "  " + openblas().config + '\n';
  if (!openblas().core.empty()) text += "  runs its kernels for " + openblas().core + '\n';
  if (const std::string asked = core_asked_for(); !asked.empty() && openblas().usable) {
    text += fmt::format(
        "  OPENBLAS_CORETYPE={} is set: without it OpenBLAS takes the kernels for this processor; those for "
        "a\n"
        "  lesser one may take 3 times as long\n",
        asked);
  }
  text += openblas().usable
              ? "  used for f64, f32, f16 and bf16; the cpu device has kernels of its own for f16, "
                "bf16,\n  thin and small products\n"
              : "  not used: plain loops instead\n";
  return text;
}

}  // namespace fuse::runtime
