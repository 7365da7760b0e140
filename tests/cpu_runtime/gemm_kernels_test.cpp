// What GEMMs of the cpu device are made of: conversions, plans, and what a run may not do.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/gemm/gemm_kernels.hpp"

#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include "runtime/cpu/gemm/cpu_gemm.hpp"
#include "runtime/cpu/gemm/strip_gemm.hpp"
#include "runtime/cpu/gemm/strip_plan.hpp"
#include "runtime/device/host_gemm.hpp"
#include "runtime/device/hot_path_check.hpp"
#include "support/catch.hpp"
#include "support/sanitized.hpp"
#include "support/variable.hpp"

namespace fuse::test {
namespace {

using runtime::cpu::GemmKernels;
using runtime::cpu::StripPlan;

constexpr const char* kernel_levels[] = {"x86-64-v4", "x86-64-v3", "portable"};

template <class T>
void check_conversions(const GemmKernels& kernels, DType type) {
  INFO(to_string(type) << " on " << kernels.level);
  const auto index = static_cast<std::size_t>(runtime::cpu::type_index(type));
  std::vector<T> all(1 << 16);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i);
  std::vector<float> wide(all.size());
  kernels.widen[index](all.data(), wide.data(), static_cast<std::int64_t>(all.size()));
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const float right = runtime::widen(all[i]);
    wrong += std::isnan(right) ? !std::isnan(wide[i])
                               : std::bit_cast<std::uint32_t>(right) != std::bit_cast<std::uint32_t>(wide[i]);
  }
  CHECK(wrong == 0);
  // f32 of all exponents, with ties between two results and their neighbours.
  std::vector<float> from;
  for (std::uint32_t high = 0; high < 1u << 16; high += sanitized() ? 37 : 1) {
    for (const std::uint32_t low :
         {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x3000u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      from.push_back(std::bit_cast<float>(high << 16 | low));
  }
  from.resize(from.size() - 3);  // no multiple of any number of lanes
  std::vector<T> narrow(from.size());
  kernels.narrow[index](from.data(), narrow.data(), static_cast<std::int64_t>(from.size()));
  wrong = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const T right = runtime::narrow(from[i], static_cast<T*>(nullptr));
    wrong += std::isnan(from[i]) ? !std::isnan(runtime::widen(narrow[i])) : right.bits != narrow[i].bits;
  }
  CHECK(wrong == 0);
}

TEST_CASE("vectors convert 16-bit floats as single elements are converted", "[gemm][runtime]") {
  int levels = 0;
  for (const char* const level : kernel_levels) {
    const GemmKernels* const kernels = runtime::cpu::gemm_kernels_of(level);
    if (!kernels) continue;
    ++levels;
    CHECK(kernels->level == level);
    check_conversions<half>(*kernels, f16);
    check_conversions<bfloat16>(*kernels, bf16);
  }
  CHECK(levels >= 1);
  CHECK(runtime::cpu::gemm_kernels_of("x86-64-v9") == nullptr);
}

TEST_CASE("a matrix is turned whatever its sides are", "[gemm][runtime]") {
  for (const char* const level : kernel_levels) {
    const GemmKernels* const kernels = runtime::cpu::gemm_kernels_of(level);
    if (!kernels) continue;
    for (std::int64_t rows = 1; rows < 11; ++rows) {
      for (std::int64_t columns = 1; columns < 22; columns += 3) {
        std::vector<float> from(static_cast<std::size_t>(rows * 25)), to(22 * 13, -1);
        std::iota(from.begin(), from.end(), 0.0f);
        kernels->transpose(from.data(), 25, rows, columns, to.data(), 13);
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < 22 * 13; ++i) {
          const std::int64_t column = i / 13, row = i % 13;
          const float right = row < rows && column < columns ? static_cast<float>(row * 25 + column) : -1;
          wrong += to[static_cast<std::size_t>(i)] != right;
        }
        CHECK(wrong == 0);
      }
    }
  }
}

runtime::GemmDesc typed(std::int64_t m, std::int64_t n, std::int64_t k, DType type) {
  return {.m = m, .n = n, .k = k, .operand = type, .result = type};
}

TEST_CASE("units cover a product once", "[gemm][runtime]") {
  for (const std::int64_t m : {1, 7, 16, 17, 200, 3000}) {
    for (const std::int64_t n : {1, 16, 63, 1000, 20000}) {
      for (const std::int64_t k : {1, 100, 5000, 1000000}) {
        const StripPlan p = runtime::cpu::strip_plan_of(typed(m, n, k, bf16), 48);
        INFO(m << " x " << n << " by " << k);
        CHECK((p.down - 1) * p.tile_rows < p.rows);
        CHECK(p.down * p.tile_rows >= p.rows);
        CHECK((p.across - 1) * p.tile_columns < p.columns);
        CHECK(p.across * p.tile_columns >= p.columns);
        CHECK((p.parts - 1) * p.part_depth < k);
        CHECK(p.parts * p.part_depth >= k);
        CHECK(p.units == p.down * p.across * p.parts);
        CHECK(p.units_of_chunk <= p.units);
        CHECK(p.room() <= 1 << 20);  // floats of a thread: what a second-level cache holds, or little more
      }
    }
  }
}

TEST_CASE("small products of a batch are taken many at a time", "[gemm][runtime]") {
  runtime::GemmDesc heads = typed(16, 16, 16, f32);
  heads.batch = 1000;
  heads.stride_a = heads.stride_b = heads.stride_c = 256;
  const StripPlan p = runtime::cpu::strip_plan_of(heads, 48);
  CHECK(p.units == 1000);
  CHECK(p.units_of_chunk == 64);
  CHECK(runtime::cpu::strip_plan_of(typed(32, 32, 32, f32), 48).units == 1);
  CHECK(runtime::cpu::takes_strips(typed(64, 64, 64, f32), true, 16));
  CHECK(runtime::cpu::takes_strips(typed(1, 4096, 4096, f32), true, 16));
  CHECK(runtime::cpu::takes_strips(typed(4096, 16, 4096, f32), true, 16));
  CHECK(runtime::cpu::takes_strips(typed(512, 512, 512, bf16), true, 16));
  CHECK(!runtime::cpu::takes_strips(typed(512, 512, 512, f32), true, 16));
  CHECK(runtime::cpu::takes_strips(typed(512, 512, 512, f32), false, 16));
  CHECK(runtime::cpu::takes_strips(typed(512, 512, 512, f32), true, 48));
  CHECK(!runtime::cpu::takes_strips(typed(64, 64, 64, f64), false, 48));
}

struct KernelQueue final : runtime::Queue {
  using Queue::Queue;
  Status synchronize() noexcept override { return {}; }
};

TEST_CASE("a product allocates nothing, of whatever type and shape", "[gemm][runtime]") {
  const auto pool =
      std::make_shared<runtime::cpu::WorkerPool>(runtime::cpu::WorkerPool::Options{.threads = 3});
  KernelQueue queue(&pool);
  const std::int64_t shapes[][3] = {
      {1, 700, 900}, {700, 8, 900}, {40, 40, 40}, {200, 210, 220}, {2, 8, 90000}};
  const std::vector<std::byte> zeros(8 << 20);
  std::vector<std::byte> result(8 * 210 * 210 * 4);
  for (const DType type : {f32, f64, f16, bf16, i32, i64}) {
    for (const auto& [m, n, k] : shapes) {
      const auto gemm = runtime::cpu::make_cpu_gemm(typed(m, n, k, type), pool, &pool);
      INFO(gemm->algorithm());
      std::vector<std::byte> workspace(static_cast<std::size_t>(gemm->workspace_bytes()));
      const char* broken = nullptr;
      Status status;
      {
        const runtime::contract::HotPath hot(true);
        status = gemm->run(queue, zeros.data(), zeros.data(), result.data(), workspace.data());
        broken = hot.broken();
      }
      CHECK(status);
      CHECK((broken ? std::string(broken) : std::string()) == "");
    }
  }
}

TEST_CASE("a product without its workspace, or on a foreign queue, is refused", "[gemm][runtime]") {
  const auto pool =
      std::make_shared<runtime::cpu::WorkerPool>(runtime::cpu::WorkerPool::Options{.threads = 2});
  KernelQueue queue(&pool), foreign(&queue);
  std::vector<std::byte> memory(1 << 16);
  const auto gemm = runtime::cpu::make_cpu_gemm(typed(40, 40, 40, bf16), pool, &pool);
  REQUIRE(gemm->workspace_bytes() > 0);
  const Status none = gemm->run(queue, memory.data(), memory.data(), memory.data(), nullptr);
  CHECK(none.code() == ErrorCode::invalid_argument);
  const Status other = gemm->run(foreign, memory.data(), memory.data(), memory.data(), memory.data());
  CHECK(other.code() == ErrorCode::internal);
}

TEST_CASE("an algorithm says which kernels it has", "[gemm][runtime]") {
  const auto pool =
      std::make_shared<runtime::cpu::WorkerPool>(runtime::cpu::WorkerPool::Options{.threads = 2});
  const auto name = [&](const runtime::GemmDesc& d) {
    return runtime::cpu::make_cpu_gemm(d, pool, &pool)->algorithm();
  };
  CHECK(name(typed(1, 4096, 4096, bf16)).find("strips of 1 row across b of bf16") == 0);
  CHECK(name(typed(4096, 3, 4096, f32)).find("strips of 3 rows along a of f32") == 0);
  CHECK(name(typed(1, 4096, 4096, f32)).find(runtime::cpu::gemm_kernels().level) != std::string::npos);
  CHECK(name(typed(300, 300, 300, i32)).find("plain loops") != std::string::npos);
  CHECK(name(typed(600, 600, 600, bf16)).find("panels of ") == 0);
  runtime::GemmDesc packed = typed(600, 600, 600, bf16);
  packed.packed_b = true;
  CHECK(name(packed).find("columns of bf16, packed once") != std::string::npos);
  if (!runtime::openblas_used()) return;
  const auto portable = runtime::cpu::make_cpu_gemm(typed(600, 600, 600, f32), pool, &pool,
                                                    *runtime::cpu::gemm_kernels_of("portable"));
  CHECK(portable->algorithm().find("OpenBLAS 0.") == 0);
  CHECK(portable->algorithm().find(runtime::openblas_name()) == 0);
  const Variable set("OPENBLAS_CORETYPE", "Haswell");
  CHECK(runtime::openblas_name().find("OPENBLAS_CORETYPE=Haswell is set") != std::string::npos);
  CHECK(runtime::host_gemm_report().find("OPENBLAS_CORETYPE=Haswell is set") != std::string::npos);
  const Variable unset("OPENBLAS_CORETYPE", nullptr);
  CHECK(runtime::host_gemm_report().find("CORETYPE") == std::string::npos);
}

}  // namespace
}  // namespace fuse::test
