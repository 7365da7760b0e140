// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>

#include "base/formatted_status.hpp"
#include "base/quoting.hpp"
#include "runtime/cuda/cublaslt.hpp"
#include "runtime/cuda/cuda_backend.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/device/host_gemm.hpp"

namespace fuse::runtime {

namespace {

// 13.1.0 is 130100; before CUDA 12 some counted in thousands.
LibraryVersion cublaslt_version(void* handle) {
  const auto get = reinterpret_cast<decltype(&cublasLtGetVersion)>(::dlsym(handle, "cublasLtGetVersion"));
  const int version = static_cast<int>(get());
  const int unit = version >= 100000 ? 10000 : 1000;
  return {version / unit, version % unit / (unit / 100)};
}

}  // namespace

SharedLibrary open_cublaslt_library(const std::string& path) {
  return SharedLibrary::open({.what = "cuBLASLt",
                              .variable = Variable::libcublaslt,
                              .sonames = {"libcublasLt.so.13", "libcublasLt.so.12"},
                              .toolkit = true,
                              .hint = "install the CUDA toolkit's cuBLAS package (libcublas-13-0) or set "
                                      "CUDA_HOME to a toolkit of CUDA 12 or 13",
                              .needed = {"cublasLtCreate", "cublasLtMatmul", "cublasLtGetVersion"},
                              .version = cublaslt_version,
                              .oldest = 12,
                              .newest = 13},
                             path);
}

CublasLt::CublasLt(std::shared_ptr<const CudaContext> context, const std::string& path)
    : context_(std::move(context)) {
  library_ = open_cublaslt_library(path);
  library_.require();
  check_driver_covers(context_->driver(), library_);
#define FUSE_CUBLASLT_REQUIRE(name) p_##name = library_.get<decltype(p_##name)>(#name);
  FUSE_CUBLASLT_FUNCTIONS(FUSE_CUBLASLT_REQUIRE)
#undef FUSE_CUBLASLT_REQUIRE
  const Status made = context_->run_apart(
      [&](const Driver&) { return status("cublasLtCreate", p_cublasLtCreate(&handle_)); });
  if (!made && handle_) context_->release([&](const Driver&) { p_cublasLtDestroy(handle_); });
  made.throw_if_failed();
}

CublasLt::~CublasLt() {
  context_->wait_for_all();  // a product may be in flight
  context_->release([&](const Driver&) { p_cublasLtDestroy(handle_); });
}

Status CublasLt::failure(const char* call, cublasStatus_t result, std::string_view detail) const noexcept {
  const char* name = p_cublasLtGetStatusName(result);
  const char* text = p_cublasLtGetStatusString(result);
  const bool memory = result == CUBLAS_STATUS_ALLOC_FAILED;
  return fuse::status(memory ? ErrorCode::out_of_memory : ErrorCode::driver, "{}: {} ({}): {}{}{}", call,
                      name ? name : "cuBLAS error", static_cast<int>(result), text ? text : "",
                      detail.empty() ? "" : ": ", detail);
}

namespace {

template <class Handle>
using Destroy = cublasStatus_t (*)(Handle);
/// An opaque object of cuBLASLt, given back on every way out.
template <class Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<Handle>>;

cudaDataType_t data_type(DType type) {
  switch (type) {
    case DType::f64:
      return CUDA_R_64F;
    case DType::f16:
      return CUDA_R_16F;
    case DType::bf16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

/// Largest power of two, at most 16, that divides the bytes between any two matrices.
std::int64_t stride_alignment(const GemmDesc& d) {
  std::int64_t align = 16;
  const auto divide = [&](std::int64_t stride, DType type) {
    while (stride * static_cast<std::int64_t>(size_of(type)) % align) align /= 2;
  };
  if (d.batch > 1) {
    divide(d.stride_a, d.operand);
    divide(d.stride_b, d.operand);
    divide(d.stride_c, d.result);
  }
  if (d.calls > 1) {
    divide(d.call_a, d.operand);
    divide(d.call_b, d.operand);
    divide(d.call_c, d.result);
  }
  return align;
}

/// One algorithm and what it asks of the operands.
struct Choice {
  cublasLtMatmulAlgo_t algo{};
  std::int64_t alignment = 0;
  std::int64_t workspace = 0;
};

/// A number of the type that the sums have.
class Factor {
 public:
  Factor(bool wide, double value) : wide_(wide), f64_(value), f32_(static_cast<float>(value)) {}
  const void* address() const noexcept { return wide_ ? static_cast<const void*>(&f64_) : &f32_; }

 private:
  bool wide_;
  double f64_;
  float f32_;
};

class CudaGemm final : public Gemm {
 public:
  CudaGemm(std::shared_ptr<const CudaContext> context, std::shared_ptr<const CublasLt> blas,
           const GemmDesc& desc)
      : context_(std::move(context)),
        blas_(std::move(blas)),
        desc_(desc),
        alpha_(is_wide(), desc.epilogue == schedule::EpilogueKind::scale ? desc.scale : 1),
        beta_(is_wide(), adds() ? 1 : 0) {
    if (blas_) prepare();
    desc_.recorded = nullptr;
  }

  ~CudaGemm() override {
    if (cublasLtMatmulDesc_t const spare = spare_) blas_->p_cublasLtMatmulDescDestroy(spare);
  }

  std::int64_t workspace_bytes() const noexcept override {
    std::int64_t bytes = 0;
    for (const Choice& choice : choices_) bytes = std::max(bytes, choice.workspace);
    return bytes;
  }

  std::string algorithm() const override;
  std::string recorded() const override;
  Status run(Queue& queue, const void* a, const void* b, void* c, void* workspace,
             const void* extra) const noexcept override;

 private:
  void prepare();
  bool is_wide() const { return desc_.operand == DType::f64; }
  bool adds() const { return desc_.epilogue == schedule::EpilogueKind::add; }
  bool has_bias() const { return desc_.epilogue == schedule::EpilogueKind::bias; }
  template <class T>
  Status set(cublasLtMatmulDesc_t matmul, cublasLtMatmulDescAttributes_t which, T value) const noexcept {
    return blas_->status("cublasLtMatmulDescSetAttribute",
                         blas_->p_cublasLtMatmulDescSetAttribute(matmul, which, &value, sizeof value));
  }
  Status describe(Owned<cublasLtMatmulDesc_t>& matmul) const noexcept;
  Owned<cublasLtMatmulPreference_t> preference() const;
  template <class T>
  void set_preference(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t which,
                      T value) const {
    blas_->check("cublasLtMatmulPreferenceSetAttribute",
                 blas_->p_cublasLtMatmulPreferenceSetAttribute(preference, which, &value, sizeof value));
  }
  /// What the library proposes for operands of this alignment and what can be used, the best first.
  std::vector<Choice> proposed(cublasLtMatmulPreference_t preference, std::int64_t alignment) const;
  /// The recorded algorithm, where it can multiply these matrices; none: it cannot.
  std::optional<Choice> recorded_choice(std::int64_t alignment) const;
  Owned<cublasLtMatrixLayout_t> layout(DType type, std::int64_t rows, std::int64_t columns,
                                       std::int64_t leading, std::int64_t stride) const;
  Status call(const Choice&, CUstream, const void* a, const void* b, void* c, void* workspace,
              const void* extra) const noexcept;
  Status zero(CUstream stream, void* c) const noexcept;

  std::shared_ptr<const CudaContext> context_;
  std::shared_ptr<const CublasLt> blas_;  ///< null for a trivial GEMM
  GemmDesc desc_;
  Factor alpha_, beta_;
  Owned<cublasLtMatmulDesc_t> matmul_{nullptr, nullptr};  ///< used by all runs, but where there is a bias
  /// The bias is part of a descriptor, so a run takes one for itself and leaves it to the next. Only the
  /// library knows how large a descriptor is. Null while a run has it.
  mutable std::atomic<cublasLtMatmulDesc_t> spare_ = nullptr;
  Owned<cublasLtMatrixLayout_t> first_{nullptr, nullptr}, second_{nullptr, nullptr},
      result_{nullptr, nullptr};
  std::vector<Choice> choices_;  ///< by falling alignment
};

Owned<cublasLtMatrixLayout_t> CudaGemm::layout(DType type, std::int64_t rows, std::int64_t columns,
                                               std::int64_t leading, std::int64_t stride) const {
  cublasLtMatrixLayout_t made = nullptr;
  blas_->check("cublasLtMatrixLayoutCreate",
               blas_->p_cublasLtMatrixLayoutCreate(&made, data_type(type), static_cast<std::uint64_t>(rows),
                                                   static_cast<std::uint64_t>(columns), leading));
  Owned<cublasLtMatrixLayout_t> owned(made, blas_->p_cublasLtMatrixLayoutDestroy);
  if (desc_.batch > 1) {
    const auto count = static_cast<std::int32_t>(desc_.batch);
    blas_->check("cublasLtMatrixLayoutSetAttribute",
                 blas_->p_cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                           sizeof count));
    blas_->check("cublasLtMatrixLayoutSetAttribute",
                 blas_->p_cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                           &stride, sizeof stride));
  }
  return owned;
}

/// Sets the operations, and the epilogue that is a vector along our n, which is a column of cuBLAS's result.
Status CudaGemm::describe(Owned<cublasLtMatmulDesc_t>& matmul) const noexcept {
  cublasLtMatmulDesc_t made = nullptr;
  // CUBLAS_COMPUTE_32F is plain f32: TF32 has a compute type of its own.
  const cublasStatus_t created = blas_->p_cublasLtMatmulDescCreate(
      &made, is_wide() ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, is_wide() ? CUDA_R_64F : CUDA_R_32F);
  if (created != CUBLAS_STATUS_SUCCESS) return blas_->status("cublasLtMatmulDescCreate", created);
  matmul = {made, blas_->p_cublasLtMatmulDescDestroy};
  const auto operation = [](bool transpose) -> std::int32_t { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  if (Status s = set(made, CUBLASLT_MATMUL_DESC_TRANSA, operation(desc_.transpose_b)); !s) return s;
  if (Status s = set(made, CUBLASLT_MATMUL_DESC_TRANSB, operation(desc_.transpose_a)); !s) return s;
  if (!has_bias()) return Status();
  return set(made, CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<std::uint32_t>(CUBLASLT_EPILOGUE_BIAS));
}

// Row-major c = a * b is column-major c' = b' * a': our b is cuBLAS's first operand, and a memory image that
// we call transposed is one that cuBLAS has to transpose, too.
void CudaGemm::prepare() {
  if (desc_.batch > std::numeric_limits<std::int32_t>::max()) {
    throw Error({.code = ErrorCode::unsupported,
                 .message = fmt::format("cuBLASLt takes at most 2^31 - 1 matrices: {}", gemm_text(desc_)),
                 .op = "matmul"});
  }
  check_gemm_desc(desc_);
  describe(matmul_).throw_if_failed();

  const GemmDesc& d = desc_;
  // A row-major matrix is the column-major one of its transpose: what lies between its rows is the leading
  // dimension.
  const auto operand = [&](std::int64_t rows, std::int64_t columns, std::int64_t leading,
                           std::int64_t stride) { return layout(d.operand, rows, columns, leading, stride); };
  const std::int64_t row_a = row_of_a(d), row_b = row_of_b(d);
  first_ = d.transpose_b ? operand(d.k, d.n, row_b, d.stride_b) : operand(d.n, d.k, row_b, d.stride_b);
  second_ = d.transpose_a ? operand(d.m, d.k, row_a, d.stride_a) : operand(d.k, d.m, row_a, d.stride_a);
  result_ = layout(d.result, d.n, d.m, row_of_c(d), d.stride_c);

  // An algorithm for 16-byte operands, and one for operands that are aligned as their elements only. The
  // first list has to have the one that is asked for: what fuse gives memory to is aligned so.
  const std::int64_t most = stride_alignment(d);
  const auto least = static_cast<std::int64_t>(std::max(size_of(d.operand), size_of(d.result)));
  if (std::optional<Choice> known = recorded_choice(most)) {
    choices_.push_back(*known);
    // For operands that are aligned to less, which a caller may have.
    if (known->alignment > least)
      if (const std::vector<Choice> list = proposed(preference().get(), least); !list.empty())
        choices_.push_back(list.front());
    if (has_bias()) spare_ = matmul_.release();
    return;
  }
  std::vector<std::vector<Choice>> lists;
  lists.reserve(2);
  const Owned<cublasLtMatmulPreference_t> preferred = preference();
  if (most > least) lists.push_back(proposed(preferred.get(), most));
  lists.push_back(proposed(preferred.get(), least));
  std::erase_if(lists, [](const std::vector<Choice>& list) { return list.empty(); });
  if (lists.empty()) {
    throw Error({.code = ErrorCode::unsupported,
                 .message = fmt::format("cuBLASLt has no algorithm for {}", gemm_text(d)),
                 .op = "matmul",
                 .hint = "use another dtype, or smaller extents"});
  }
  check_gemm_algorithm(d, lists.front().size());
  choices_.reserve(lists.size());
  for (const std::vector<Choice>& list : lists) {
    if (d.algorithm < list.size()) choices_.push_back(list[d.algorithm]);
  }
  if (has_bias()) spare_ = matmul_.release();  // nothing throws any more
}

Owned<cublasLtMatmulPreference_t> CudaGemm::preference() const {
  cublasLtMatmulPreference_t made = nullptr;
  blas_->check("cublasLtMatmulPreferenceCreate", blas_->p_cublasLtMatmulPreferenceCreate(&made));
  Owned<cublasLtMatmulPreference_t> owned(made, blas_->p_cublasLtMatmulPreferenceDestroy);
  set_preference(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                 static_cast<std::uint64_t>(gemm_workspace_limit));
  // Split k may add partial sums in the compute type, in a fixed order. In place they would meet in the order
  // that blocks finish; in the output type they would round once per partial sum.
  set_preference(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                 static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  return owned;
}

std::vector<Choice> CudaGemm::proposed(cublasLtMatmulPreference_t preference, std::int64_t alignment) const {
  for (auto which :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set_preference(preference, which, static_cast<std::uint32_t>(alignment));
  }

  // A longer list takes longer to make, and only decisions look further than the first that can be used.
  constexpr int most = 16;
  const int wanted = desc_.algorithm == 0 ? 4 : most;
  std::array<cublasLtMatmulHeuristicResult_t, most> results{};
  int found = 0;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  context_
      ->run_apart([&](const Driver&) {
        status = blas_->p_cublasLtMatmulAlgoGetHeuristic(blas_->handle(), matmul_.get(), first_.get(),
                                                         second_.get(), result_.get(), result_.get(),
                                                         preference, wanted, results.data(), &found);
        if (status == CUBLAS_STATUS_NOT_SUPPORTED) return Status();  // no algorithm: not a failure
        return blas_->status("cublasLtMatmulAlgoGetHeuristic", status);
      })
      .throw_if_failed();
  std::vector<Choice> choices;
  if (status != CUBLAS_STATUS_SUCCESS) return choices;
  choices.reserve(static_cast<std::size_t>(std::min(found, wanted)));
  for (int i = 0; i < std::min(found, wanted); ++i) {
    const cublasLtMatmulHeuristicResult_t& r = results[static_cast<std::size_t>(i)];
    if (r.state != CUBLAS_STATUS_SUCCESS ||
        r.workspaceSize > static_cast<std::size_t>(gemm_workspace_limit)) {
      continue;
    }
    choices.push_back({r.algo, alignment, static_cast<std::int64_t>(r.workspaceSize)});
  }
  return choices;
}

// An algorithm is a plain structure, which its version of the library takes again (cublasLtMatmulAlgo_t).
std::string CudaGemm::recorded() const {
  if (choices_.empty()) return {};
  const Choice& choice = choices_.front();
  std::string text = fmt::format("{}:", choice.alignment);
  for (const std::uint64_t word : choice.algo.data) text += fmt::format("{:016x}", word);
  return text;
}

std::optional<Choice> CudaGemm::recorded_choice(std::int64_t alignment) const {
  if (!desc_.recorded || desc_.recorded->empty()) return std::nullopt;
  const std::string_view text = *desc_.recorded;
  Choice choice;
  const std::size_t colon = text.find(':');
  constexpr std::size_t digits = 16, words = std::size(cublasLtMatmulAlgo_t{}.data);
  const auto number = [](std::string_view from, auto& value, int base) {
    const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), value, base);
    return error == std::errc() && end == from.data() + from.size();
  };
  bool good = colon != text.npos && number(text.substr(0, colon), choice.alignment, 10) &&
              text.size() == colon + 1 + words * digits;
  for (std::size_t i = 0; good && i < words; ++i)
    good = number(text.substr(colon + 1 + i * digits, digits), choice.algo.data[i], 16);
  if (!good) {
    throw Error({.code = ErrorCode::file_format,
                 .message = fmt::format("{} is not an algorithm of cuBLASLt", in_quotes(*desc_.recorded)),
                 .op = "matmul",
                 .hint = "time the GEMMs again"});
  }
  if (choice.alignment > alignment) return std::nullopt;
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status =
      blas_->p_cublasLtMatmulAlgoCheck(blas_->handle(), matmul_.get(), first_.get(), second_.get(),
                                       result_.get(), result_.get(), &choice.algo, &result);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE ||
      status == CUBLAS_STATUS_ARCH_MISMATCH)
    return std::nullopt;
  blas_->check("cublasLtMatmulAlgoCheck", status);
  if (result.state != CUBLAS_STATUS_SUCCESS ||
      result.workspaceSize > static_cast<std::size_t>(gemm_workspace_limit))
    return std::nullopt;
  choice.workspace = static_cast<std::int64_t>(result.workspaceSize);
  return choice;
}

std::string CudaGemm::algorithm() const {
  if (gemm_is_trivial(desc_)) return "none: nothing to multiply";
  std::string text = "cuBLASLt";
  for (const Choice& choice : choices_) {
    const auto number = [&](cublasLtMatmulAlgoConfigAttributes_t attribute) {
      std::int32_t value = 0;
      blas_->check("cublasLtMatmulAlgoConfigGetAttribute",
                   blas_->p_cublasLtMatmulAlgoConfigGetAttribute(&choice.algo, attribute, &value,
                                                                 sizeof value, nullptr));
      return value;
    };
    text += fmt::format(
        "{} algorithm {}, tile {}, stages {}, split-k {}, {} bytes of scratch for {}-byte aligned "
        "operands",
        text.ends_with("operands") ? ", else" : "", number(CUBLASLT_ALGO_CONFIG_ID),
        number(CUBLASLT_ALGO_CONFIG_TILE_ID), number(CUBLASLT_ALGO_CONFIG_STAGES_ID),
        number(CUBLASLT_ALGO_CONFIG_SPLITK_NUM), choice.workspace, choice.alignment);
  }
  return text;
}

Status CudaGemm::zero(CUstream stream, void* c) const noexcept {
  const auto element = static_cast<std::int64_t>(size_of(desc_.result));
  const auto row = static_cast<std::size_t>(desc_.m * desc_.n * element);
  // Between the matrices of a batch there may be bytes of others.
  const auto pitch = static_cast<std::size_t>(desc_.batch > 1 ? desc_.stride_c * element : 0);
  return context_->run([&](const Driver& d) {
    if (pitch == 0 || pitch == row) {
      return d.status(
          "cuMemsetD8Async",
          d.p_cuMemsetD8Async(device_pointer(c), 0, row * static_cast<std::size_t>(desc_.batch), stream));
    }
    return d.status("cuMemsetD2D8Async",
                    d.p_cuMemsetD2D8Async(device_pointer(c), pitch, 0, row,
                                          static_cast<std::size_t>(desc_.batch), stream));
  });
}

/// Inlined on purpose, as it is what a step costs us.
[[gnu::always_inline]] inline Status CudaGemm::call(const Choice& choice, CUstream stream, const void* a,
                                                    const void* b, void* c, void* workspace,
                                                    const void* extra) const noexcept {
  const void* const addend = adds() ? extra : c;
  return context_->run([&](const Driver&) {
    cublasLtMatmulDesc_t matmul = matmul_.get();
    Owned<cublasLtMatmulDesc_t> own(nullptr, blas_->p_cublasLtMatmulDescDestroy);
    if (has_bias()) {
      own.reset(spare_.exchange(nullptr));
      if (!own) {  // another thread has it
        if (Status s = describe(own); !s) return s;
      }
      matmul = own.get();
      if (Status s = set(matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, extra); !s) return s;
    }
    const cublasStatus_t done = blas_->p_cublasLtMatmul(
        blas_->handle(), matmul, alpha_.address(), b, first_.get(), a, second_.get(), beta_.address(), addend,
        result_.get(), c, result_.get(), &choice.algo, choice.workspace ? workspace : nullptr,
        static_cast<std::size_t>(choice.workspace), stream);
    if (own) own.reset(spare_.exchange(own.release()));
    return blas_->status("cublasLtMatmul", done);
  });
}

Status CudaGemm::run(Queue& queue, const void* a, const void* b, void* c, void* workspace,
                     const void* extra) const noexcept {
  CUstream stream = nullptr;
  if (const Status status = cuda_stream_of(*context_, queue, stream); !status) return status;
  if (desc_.batch == 0 || desc_.m == 0 || desc_.n == 0) return Status();
  if (desc_.k == 0) return zero(stream, c);

  const std::uintptr_t addresses = reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b) |
                                   reinterpret_cast<std::uintptr_t>(c) |
                                   (adds() ? reinterpret_cast<std::uintptr_t>(extra) : 0);
  const Choice* choice = nullptr;
  for (const Choice& candidate : choices_) {
    if ((addresses & static_cast<std::uintptr_t>(candidate.alignment - 1)) == 0) {  // a power of two
      choice = &candidate;
      break;
    }
  }
  if (!choice)
    return Status(ErrorCode::misaligned, "matmul: an operand is not aligned as its algorithm needs");
  if (choice->workspace > 0 && (!workspace || reinterpret_cast<std::uintptr_t>(workspace) % 256)) {
    return Status(ErrorCode::misaligned, "matmul: the workspace is missing or not aligned to 256 bytes");
  }

  const auto operand = static_cast<std::int64_t>(size_of(desc_.operand));
  const auto result = static_cast<std::int64_t>(size_of(desc_.result));
  Status done;
  for (std::int64_t i = 0; done && i < desc_.calls; ++i) {
    done = call(*choice, stream, static_cast<const std::byte*>(a) + i * desc_.call_a * operand,
                static_cast<const std::byte*>(b) + i * desc_.call_b * operand,
                static_cast<std::byte*>(c) + i * desc_.call_c * result, workspace, extra);
  }
  return done;
}

}  // namespace

std::unique_ptr<Gemm> make_cuda_gemm(std::shared_ptr<const CudaContext> context,
                                     std::shared_ptr<const CublasLt> blas, const GemmDesc& desc) {
  if (kind_of(desc.operand) != DTypeKind::floating) {
    throw Error({.code = ErrorCode::unsupported,
                 .message = fmt::format("the cuda device has no matmul of {}", to_string(desc.operand)),
                 .op = "matmul",
                 .hint = "convert the operands to a floating type (f64 holds every i32 exactly)"});
  }
  return std::make_unique<CudaGemm>(std::move(context), std::move(blas), desc);
}

}  // namespace fuse::runtime
