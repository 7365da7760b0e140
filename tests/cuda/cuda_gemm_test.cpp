// The cuda device's GEMM against the plain loops: the fake cuBLASLt computes by its descriptors alone.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "cuda/fakes.hpp"
#include "runtime/device/host_gemm.hpp"

namespace fuse::test {
namespace {

using runtime::GemmDesc;

/// Small integers: every sum is exact in every type, so the results agree bit for bit.
std::vector<char> small_integers(DType type, std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> pick(-3, 3);
  std::vector<char> bytes(static_cast<std::size_t>(count) * size_of(type));
  for (std::int64_t i = 0; i < count; ++i) {
    char* at = bytes.data() + static_cast<std::size_t>(i) * size_of(type);
    const double value = pick(random);
    const float narrow = static_cast<float>(value);
    const half h(value);
    const bfloat16 b(value);
    if (type == f64) std::memcpy(at, &value, 8);
    if (type == f32) std::memcpy(at, &narrow, 4);
    if (type == f16) std::memcpy(at, &h, 2);
    if (type == bf16) std::memcpy(at, &b, 2);
  }
  return bytes;
}

void check_against_loops(const Fakes& fakes, GemmDesc desc, std::int64_t offset_bytes = 0) {
  const auto backend = fakes.backend();
  const auto queue = backend->create_queue();
  const auto last = [&](std::int64_t stride, std::int64_t call) {
    return (desc.batch - 1) * stride + (desc.calls - 1) * call;
  };
  const std::int64_t rows_a = desc.transpose_a ? desc.k : desc.m, rows_b = desc.transpose_b ? desc.n : desc.k;
  const auto a = small_integers(desc.operand, rows_a * row_of_a(desc) + last(desc.stride_a, desc.call_a), 1);
  const auto b = small_integers(desc.operand, rows_b * row_of_b(desc) + last(desc.stride_b, desc.call_b), 2);
  const auto c_count = (desc.m - 1) * row_of_c(desc) + desc.n + last(desc.stride_c, desc.call_c);
  std::vector<char> expected(static_cast<std::size_t>(c_count) * size_of(desc.result), 0x55);
  std::vector<char> got = expected;
  const auto extra = small_integers(desc.result, c_count, 3);
  for (std::int64_t i = 0; i < desc.calls; ++i) {
    const auto at = [&](auto& bytes, std::int64_t elements, DType type) {
      return bytes.data() + i * elements * static_cast<std::int64_t>(size_of(type));
    };
    runtime::make_plain_gemm(desc)->run(at(a, desc.call_a, desc.operand), at(b, desc.call_b, desc.operand),
                                        at(expected, desc.call_c, desc.result), extra.data());
  }

  const auto gemm = backend->prepare_gemm(desc);
  std::vector<void*> memory;
  const auto allocate = [&](std::size_t bytes) {
    memory.push_back(backend->allocate(static_cast<std::int64_t>(bytes) + offset_bytes));
    return static_cast<char*>(memory.back()) + offset_bytes;
  };
  char* da = allocate(a.size());
  char* db = allocate(b.size());
  char* dc = allocate(got.size());
  char* dextra = allocate(extra.size());
  void* workspace =
      gemm->workspace_bytes() ? allocate(static_cast<std::size_t>(gemm->workspace_bytes())) : nullptr;
  if (workspace) workspace = memory.back();
  REQUIRE(backend->upload(*queue, da, a.data(), static_cast<std::int64_t>(a.size())));
  REQUIRE(backend->upload(*queue, db, b.data(), static_cast<std::int64_t>(b.size())));
  REQUIRE(backend->upload(*queue, dextra, extra.data(), static_cast<std::int64_t>(extra.size())));
  REQUIRE(backend->upload(*queue, dc, got.data(), static_cast<std::int64_t>(got.size())));
  const Status status = gemm->run(*queue, da, db, dc, workspace, dextra);
  INFO(status.message());
  REQUIRE(status);
  REQUIRE(backend->download(*queue, got.data(), dc, static_cast<std::int64_t>(got.size())));
  CHECK(got == expected);
  for (void* address : memory) backend->free(address);
}

TEST_CASE("heads side by side, in one call or several", "[cuda][gemm]") {
  for (const DType type : {f64, f32, f16, bf16}) {
    for (const std::int64_t calls : {1, 3}) {
      const Fakes fakes;
      INFO(to_string(type) << ", calls " << calls);
      const int before = fakes.blas_call_count();
      // [calls, 2 heads, 5, 4] to [calls, 5, 2 heads, 4]
      check_against_loops(fakes, {.batch = 2,
                                  .m = 5,
                                  .n = 4,
                                  .k = 8,
                                  .stride_a = 40,
                                  .stride_b = 32,
                                  .stride_c = 4,
                                  .row_c = 8,
                                  .calls = calls,
                                  .call_a = 80,
                                  .call_b = 64,
                                  .call_c = 40,
                                  .operand = type,
                                  .result = type});
      int products = 0;
      for (int i = before; i < fakes.blas_call_count(); ++i)
        products += std::string(fakes.blas_call(i)).starts_with("cublasLtMatmul ");
      CHECK(products == calls);
    }
  }
}

TEST_CASE("operands in strides, in one call or several", "[cuda][gemm]") {
  for (const DType type : {f64, f32, f16, bf16}) {
    for (const std::int64_t calls : {1, 3}) {
      for (int transposes = 0; transposes < 4; ++transposes) {
        const Fakes fakes;
        INFO(to_string(type) << ", calls " << calls << ", transposes " << transposes);
        check_against_loops(fakes, {.batch = 2,
                                    .m = 5,
                                    .n = 4,
                                    .k = 8,
                                    .stride_a = 8,
                                    .stride_b = 0,
                                    .stride_c = 20,
                                    .row_a = 16,
                                    .row_b = 12,
                                    .calls = calls,
                                    .call_a = 128,
                                    .call_b = 96,
                                    .call_c = 40,
                                    .transpose_a = (transposes & 1) != 0,
                                    .transpose_b = (transposes & 2) != 0,
                                    .operand = type,
                                    .result = type});
      }
    }
  }
}

TEST_CASE("row-major, transposes, batches and types map onto column-major cuBLASLt", "[cuda][gemm]") {
  const std::pair<DType, DType> types[] = {{f64, f64}, {f32, f32},   {f16, f16},
                                           {f16, f32}, {bf16, bf16}, {bf16, f32}};
  for (const auto& [operand, result] : types) {
    for (int transposes = 0; transposes < 4; ++transposes) {
      for (std::int64_t batch : {1, 3}) {
        const Fakes fakes;
        INFO(to_string(operand) << " to " << to_string(result) << ", transposes " << transposes << ", batch "
                                << batch);
        check_against_loops(fakes, {.batch = batch,
                                    .m = 3,
                                    .n = 5,
                                    .k = 7,
                                    .stride_a = 21,
                                    .stride_b = transposes == 3 ? 0 : 35,
                                    .stride_c = 17,
                                    .transpose_a = (transposes & 1) != 0,
                                    .transpose_b = (transposes & 2) != 0,
                                    .operand = operand,
                                    .result = result});
        fakes.require_clean();
      }
    }
  }
}

TEST_CASE("epilogues are a bias along n, a beta and an alpha, one at a time", "[cuda][gemm]") {
  using schedule::EpilogueKind;
  for (const auto& [operand, result] : {std::pair{f64, f64}, {f32, f32}, {f16, f32}, {bf16, f32}}) {
    for (const EpilogueKind kind : {EpilogueKind::bias, EpilogueKind::add, EpilogueKind::scale}) {
      for (std::int64_t batch : {1, 3}) {
        const Fakes fakes;
        INFO(to_string(operand) << " to " << to_string(result) << ", " << to_string(kind) << ", batch "
                                << batch);
        check_against_loops(fakes, {.batch = batch,
                                    .m = 3,
                                    .n = 5,
                                    .k = 7,
                                    .stride_a = 21,
                                    .stride_b = 35,
                                    .stride_c = 17,
                                    .transpose_b = true,
                                    .operand = operand,
                                    .result = result,
                                    .epilogue = kind,
                                    .scale = -0.5});
        // The library makes descriptors, of its own size. A run with a bias has the one for itself.
        int made = 0;
        for (int i = 0; i < fakes.blas_call_count(); ++i)
          made += contains(fakes.blas_call(i), "MatmulDescCreate");
        CHECK(made == 1);
        fakes.require_clean();
      }
    }
  }
  const Fakes fakes;
  const auto backend = fakes.backend();
  CHECK(error_info([&] {
          backend->prepare_gemm(
              {.m = 2, .n = 2, .k = 2, .operand = f16, .result = f16, .epilogue = EpilogueKind::bias});
        }).message.find("an epilogue that the rounding") != std::string::npos);
}

TEST_CASE("threads that run one product with their own biases do not meet", "[cuda][gemm]") {
  constexpr std::size_t side = 8;
  const Fakes fakes;
  {
    const auto backend = fakes.backend();
    const auto gemm =
        backend->prepare_gemm({.m = side, .n = side, .k = side, .epilogue = schedule::EpilogueKind::bias});
    const auto memory = [&] { return static_cast<float*>(backend->allocate(side * side * sizeof(float))); };
    float* const zeros = memory();
    std::fill_n(zeros, side * side, 0.0f);
    std::atomic<int> wrong = 0;
    std::vector<float*> mine;
    for (int i = 0; i < 8; ++i) mine.push_back(memory());
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        const auto queue = backend->create_queue();
        float *const bias = mine[2 * t], *const result = mine[2 * t + 1];
        for (int run = 0; run < 100; ++run) {
          std::fill_n(bias, side, static_cast<float>(100 * run) + static_cast<float>(t));
          const Status done = gemm->run(*queue, zeros, zeros, result, nullptr, bias);
          wrong += !done || std::count(result, result + side * side, bias[0]) != side * side;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
    for (float* const address : mine) backend->free(address);
    backend->free(zeros);
  }
  fakes.require_clean();
}

TEST_CASE("the algorithm is asked for deterministically, at two alignments", "[cuda][gemm]") {
  const Fakes fakes;
  check_against_loops(fakes, {.m = 4, .n = 4, .k = 4});
  std::vector<std::string> asked;
  for (int i = 0; i < fakes.blas_call_count(); ++i) {
    if (contains(fakes.blas_call(i), "Heuristic")) asked.push_back(fakes.blas_call(i));
  }
  // 2: split k adds parts in the compute type only; 33554432: 32 MB.
  REQUIRE(asked.size() == 2);
  CHECK(asked[0] == "cublasLtMatmulAlgoGetHeuristic workspace 33554432 reduction 2 alignment 16");
  CHECK(asked[1] == "cublasLtMatmulAlgoGetHeuristic workspace 33554432 reduction 2 alignment 4");
  CHECK(contains(fakes.blas_call(fakes.blas_call_count() - 1), "cublasLtMatmul alignment 16"));

  const Fakes unaligned;
  check_against_loops(unaligned, {.m = 4, .n = 4, .k = 4}, 4);
  CHECK(contains(unaligned.blas_call(unaligned.blas_call_count() - 1), "cublasLtMatmul alignment 4"));
  // The matrices of a batch are 9 floats apart: no algorithm may count on 16 bytes.
  const Fakes odd;
  check_against_loops(odd, {.batch = 2, .m = 3, .n = 3, .k = 3, .stride_a = 9, .stride_b = 9, .stride_c = 9});
  CHECK(contains(odd.blas_call(odd.blas_call_count() - 1), "cublasLtMatmul alignment 4"));
}

TEST_CASE("the workspace is the caller's, aligned, and within the limit", "[cuda][gemm]") {
  const Fakes fakes;
  fakes.blas_set_workspace(1 << 20);
  check_against_loops(fakes, {.m = 4, .n = 4, .k = 4});
  const auto backend = fakes.backend();
  const auto queue = backend->create_queue();
  const auto gemm = backend->prepare_gemm({.m = 4, .n = 4, .k = 4});
  CHECK(gemm->workspace_bytes() == 1 << 20);
  void* x = backend->allocate(1024);
  CHECK(gemm->run(*queue, x, x, x, nullptr).code() == ErrorCode::misaligned);
  CHECK(gemm->run(*queue, x, x, x, static_cast<char*>(x) + 16).code() == ErrorCode::misaligned);
  CHECK(gemm->run(*queue, static_cast<char*>(x) + 2, x, x, x).code() == ErrorCode::misaligned);
  backend->free(x);
  fakes.blas_set_workspace((32 << 20) + 1);
  const ErrorInfo error = error_info([&] { backend->prepare_gemm({.m = 4, .n = 4, .k = 4}); });
  CHECK(error.code == ErrorCode::unsupported);
  CHECK(contains(error.message, "cuBLASLt has no algorithm for 4 x 4 matrices of f32 to f32 by k = 4"));
}

TEST_CASE("empty results need no cuBLASLt, k = 0 writes zeros", "[cuda][gemm]") {
  const Fakes fakes;
  check_against_loops(fakes, {.m = 3, .n = 4, .k = 0});
  check_against_loops(fakes, {.batch = 3, .m = 3, .n = 4, .k = 0, .stride_c = 15});
  CHECK(contains(fakes.find_call("cuMemsetD2D8Async"), "pitch 60 width 48 height 3"));
  check_against_loops(fakes,
                      {.batch = 3, .m = 3, .n = 4, .k = 0, .stride_c = 12, .operand = f16, .result = f32});
  {
    const auto backend = fakes.backend();
    const auto queue = backend->create_queue();
    for (GemmDesc d : {GemmDesc{.batch = 0, .m = 3, .n = 4, .k = 5}, GemmDesc{.m = 0, .n = 4, .k = 5},
                       GemmDesc{.m = 3, .n = 0, .k = 5}}) {
      const int calls = fakes.call_count();
      CHECK(backend->prepare_gemm(d)->run(*queue, nullptr, nullptr, nullptr, nullptr));
      CHECK(fakes.call_count() == calls);
    }
  }
  CHECK(fakes.blas_call_count() == 0);
  fakes.require_clean();
}

TEST_CASE("what the cuda device does not multiply", "[cuda][gemm]") {
  const Fakes fakes;
  const auto backend = fakes.backend();
  const ErrorInfo integers =
      error_info([&] { backend->prepare_gemm({.m = 1, .n = 1, .k = 1, .operand = i32, .result = i32}); });
  CHECK(integers.kind == ErrorKind::user);
  CHECK(integers.code == ErrorCode::unsupported);
  CHECK(contains(integers.message, "no matmul of i32"));
  const ErrorInfo many = error_info([&] {
    backend->prepare_gemm({.batch = std::int64_t{1} << 31, .m = 1, .n = 1, .k = 1, .stride_c = 1});
  });
  CHECK(contains(many.message, "2^31 - 1 matrices"));
  CHECK(error_info([&] { backend->prepare_gemm({.m = -1, .n = 1, .k = 1}); }).kind == ErrorKind::internal);
}

TEST_CASE("a missing cuBLASLt is missed by the first GEMM only", "[cuda][gemm]") {
  const Fakes fakes;
  const auto backend =
      runtime::make_cuda_backend(0, {.cuda = fake_cuda_path(), .cublaslt = "/nowhere/libcublasLt.so"});
  CHECK(backend->prepare_gemm({.m = 1, .n = 1, .k = 0})->workspace_bytes() == 0);
  const ErrorInfo error = error_info([&] { backend->prepare_gemm({.m = 1, .n = 1, .k = 1}); });
  CHECK(error.code == ErrorCode::missing_library);
  CHECK(contains(error.message, "cuBLASLt was not found; looked for\n  /nowhere/libcublasLt.so: "));
  CHECK(contains(error.hint, "libcublas"));
}

}  // namespace
}  // namespace fuse::test
#endif
