// GEMMs of the cpu device: the same bits for every number of threads, and right.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/gemm/cpu_gemm.hpp"

#include <cmath>
#include <cstring>
#include <fuse/dtype.hpp>
#include <limits>
#include <random>

#include "base/access.hpp"
#include "runtime/cpu/gemm/thin_gemm.hpp"
#include "runtime/device/host_gemm.hpp"
#include "support/catch.hpp"
#include "support/sanitized.hpp"
#include "support/small_numbers.hpp"

namespace fuse::test {
namespace {

using runtime::GemmDesc;
using runtime::cpu::Tiling;
using runtime::cpu::tiling_of;
using runtime::cpu::WorkerPool;
using schedule::EpilogueKind;

template <class T>
std::vector<std::byte> elements(std::int64_t count, unsigned seed) {
  SmallNumbers next(seed);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * sizeof(T));
  for (std::int64_t i = 0; i < count; ++i) {
    const T x = static_cast<T>(std::is_integral_v<T> ? std::round(next() * 1000) : next());
    std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof x, &x, sizeof x);
  }
  return bytes;
}

std::vector<std::byte> elements(DType type, std::int64_t count, unsigned seed) {
  if (type == f64) return elements<double>(count, seed);
  if (type == f16) return elements<half>(count, seed);
  if (type == bf16) return elements<bfloat16>(count, seed);
  if (type == i32) return elements<std::int32_t>(count, seed);
  if (type == i64) return elements<std::int64_t>(count, seed);
  return elements<float>(count, seed);
}

double value_of(DType type, const std::vector<std::byte>& bytes, std::int64_t index) {
  const auto as = [&]<class T>(T x) {
    std::memcpy(&x, bytes.data() + static_cast<std::size_t>(index) * sizeof x, sizeof x);
    return static_cast<double>(x);
  };
  if (type == f64) return as(double{});
  if (type == f16) return as(half{});
  if (type == bf16) return as(bfloat16{});
  if (type == i32) return as(std::int32_t{});
  if (type == i64) return as(std::int64_t{});
  return as(float{});
}

struct Product {
  explicit Product(const GemmDesc& d)
      : desc(d),
        a(elements(
            d.operand,
            (d.transpose_a ? d.k : d.m) * row_of_a(d) + (d.batch - 1) * d.stride_a + (d.calls - 1) * d.call_a,
            1)),
        b(elements(
            d.operand,
            (d.transpose_b ? d.n : d.k) * row_of_b(d) + (d.batch - 1) * d.stride_b + (d.calls - 1) * d.call_b,
            2)),
        extra(elements(d.result, results(), 3)),
        c(static_cast<std::size_t>(results()) * size_of(d.result), std::byte{0x55}) {}
  std::int64_t results() const {
    return (desc.m - 1) * row_of_c(desc) + desc.n + (desc.batch - 1) * desc.stride_c +
           (desc.calls - 1) * desc.call_c;
  }
  GemmDesc desc;
  std::vector<std::byte> a, b, extra, c;
};

std::string name_of(const GemmDesc& d) {
  return runtime::gemm_text(d) + ", " + std::to_string(d.calls) + " calls";
}

std::vector<std::byte> computed(Product p, int threads) {
  const auto pool = std::make_shared<WorkerPool>(WorkerPool::Options{.threads = threads});
  runtime::Queue* queue = nullptr;
  struct OwnQueue final : runtime::Queue {
    using Queue::Queue;
    Status synchronize() noexcept override { return {}; }
  } own(&queue);
  const auto gemm = runtime::cpu::make_cpu_gemm(p.desc, pool, &queue);
  std::vector<std::byte> workspace(static_cast<std::size_t>(gemm->workspace_bytes()), std::byte{0xff});
  CHECK(gemm->run(own, p.a.data(), p.b.data(), p.c.data(), workspace.data(), p.extra.data()));
  return p.c;
}

/// What the loops compute, of every call; nothing else is written.
std::vector<std::byte> plain(Product p) {
  const GemmDesc& desc = p.desc;
  GemmDesc one = desc;
  one.calls = 1;
  one.call_a = one.call_b = one.call_c = 0;
  if (desc.calls == 1 || desc.epilogue == EpilogueKind::none) {
    const auto gemm = runtime::make_plain_gemm(one);
    const auto operand = static_cast<std::int64_t>(size_of(desc.operand)),
               result = static_cast<std::int64_t>(size_of(desc.result));
    for (std::int64_t i = 0; i < desc.calls; ++i) {
      gemm->run(p.a.data() + i * desc.call_a * operand, p.b.data() + i * desc.call_b * operand,
                p.c.data() + i * desc.call_c * result, p.extra.data());
    }
  }
  return p.c;
}

/// Elements that lie further apart than two sums of k products of numbers below 1 may, and one rounding each.
std::int64_t differing(const GemmDesc& d, const std::vector<std::byte>& x, const std::vector<std::byte>& y) {
  const double unit = d.result == f64 ? 0x1p-53 : 0x1p-24;
  const double rounding = d.result == f16 ? 0x1p-11 : d.result == bf16 ? 0x1p-8 : unit;
  const auto k = static_cast<double>(d.k);
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(x.size() / size_of(d.result)); ++i) {
    const double one = value_of(d.result, x, i), other = value_of(d.result, y, i);
    const double bound = is_floating(d.result) ? 2 * k * unit * k + 4 * rounding * (std::fabs(one) + 1) : 0;
    const bool untouched =
        std::memcmp(&x[static_cast<std::size_t>(i) * size_of(d.result)],
                    &y[static_cast<std::size_t>(i) * size_of(d.result)], size_of(d.result)) == 0;
    count += !untouched && !(std::fabs(one - other) <= bound);
  }
  return count;
}

void check_threads(const GemmDesc& desc) {
  INFO(name_of(desc));
  const Product inputs(desc);  // to make them takes longer than to multiply
  const std::vector<std::byte> one = computed(inputs, 1);
  CHECK(computed(inputs, 2) == one);
  CHECK(computed(inputs, 8) == one);
  Product backwards = inputs;
  backwards.desc.backwards = true;
  CHECK(computed(backwards, 2) == one);
  CHECK(differing(desc, one, plain(inputs)) == 0);
}

constexpr std::pair<DType, DType> operand_and_result[] = {{f32, f32},   {f64, f64},  {f16, f16}, {f16, f32},
                                                          {bf16, bf16}, {bf16, f32}, {i32, i32}, {i64, i64}};

GemmDesc with_types(GemmDesc desc, const std::pair<DType, DType>& types, int transposes) {
  desc.operand = types.first;
  desc.result = types.second;
  desc.transpose_a = transposes & 1;
  desc.transpose_b = transposes & 2;
  return desc;
}

TEST_CASE("a product has the same bits for every number of threads", "[gemm][runtime]") {
  const std::int64_t sizes[][3] = {{1, 1, 1},      {3, 5, 7},     {257, 70, 65}, {33, 300, 130}, {1, 600, 40},
                                   {3, 1300, 200}, {900, 4, 300}, {600, 1, 40},  {64, 64, 3000}};
  for (const auto& types : operand_and_result) {
    for (const auto& [m, n, k] : sizes) {
      if (sanitized() && m * n * k > 1 << 20) continue;
      for (int transposes = 0; transposes < 4; ++transposes)
        check_threads(with_types({.m = m, .n = n, .k = k}, types, transposes));
    }
  }
}

TEST_CASE("batches, rows and calls lie where they are wanted", "[gemm][runtime]") {
  for (const auto& types : operand_and_result) {
    for (int transposes = 0; transposes < 4; ++transposes) {
      const auto check = [&](const GemmDesc& d) { check_threads(with_types(d, types, transposes)); };
      check({.batch = 5, .m = 40, .n = 50, .k = 60, .stride_a = 2400, .stride_b = 3000, .stride_c = 2000});
      check({.batch = 300, .m = 4, .n = 5, .k = 6, .stride_a = 24, .stride_b = 0, .stride_c = 20});
      // Heads side by side, each a part of a row; two calls behind each other.
      check({.batch = 3,
             .m = 70,
             .n = 40,
             .k = 64,
             .stride_a = 70,
             .stride_b = 64,
             .stride_c = 40,
             .row_a = 220,
             .row_b = 200,
             .row_c = 130,
             .calls = 2,
             .call_a = 15400,
             .call_b = 12800,
             .call_c = 9200});
    }
  }
}

TEST_CASE("an epilogue is computed tile by tile", "[gemm][runtime]") {
  for (const auto& types : operand_and_result) {
    if (types.first == i32 || types.first == i64 || is_half(types.second)) continue;
    for (const EpilogueKind epilogue : {EpilogueKind::bias, EpilogueKind::add, EpilogueKind::scale}) {
      for (int transposes = 0; transposes < 4; ++transposes) {
        GemmDesc d = with_types(
            {.batch = 2, .m = 270, .n = 35, .k = 40, .stride_a = 10800, .stride_b = 1400, .stride_c = 9450},
            types, transposes);
        d.epilogue = epilogue;
        d.scale = 0.3;
        check_threads(d);
        std::swap(d.m, d.n);
        check_threads(d);
      }
    }
  }
}

TEST_CASE("a product of a few rows lies where it is wanted, and keeps nothing that lay there",
          "[gemm][runtime]") {
  for (const auto& types : operand_and_result) {
    for (int transposes = 0; transposes < 4; ++transposes) {
      GemmDesc d = with_types({.batch = 3,
                               .m = 2,
                               .n = 300,
                               .k = 70,
                               .stride_a = 350,
                               .stride_b = 24000,
                               .stride_c = 400,
                               .row_a = 75,
                               .row_b = 310,
                               .row_c = 1300},
                              types, transposes);
      check_threads(d);
      d.row_a = 310;
      std::swap(d.m, d.n);
      std::swap(d.stride_a, d.stride_b);
      d.stride_c = 2;
      d.row_c = 7;
      check_threads(d);
    }
  }
  // What lay in the result is not a number; numbers that are none come through.
  const double none = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> a(64, 1), b(64 * 40, 1), c(40, none);
  b[5] = none;
  b[40 + 6] = std::numeric_limits<double>::infinity();
  a[1] = 0;
  const auto thin = runtime::cpu::make_thin_gemm({.m = 1, .n = 40, .k = 64, .operand = f64, .result = f64});
  CHECK((thin != nullptr) == runtime::openblas_used());
  if (!thin) return;
  thin->run(a.data(), b.data(), c.data());
  for (std::size_t i = 0; i < c.size(); ++i) CHECK((i == 5 || i == 6 ? std::isnan(c[i]) : c[i] == 63));
  CHECK(runtime::cpu::make_thin_gemm({.m = 5, .n = 40, .k = 64, .operand = f64, .result = f64}) == nullptr);
}

TEST_CASE("plain loops are the second algorithm, and products of nothing are zero", "[gemm][runtime]") {
  GemmDesc d{.m = 200, .n = 300, .k = 50};
  if (runtime::openblas_used()) {
    d.algorithm = 1;
    CHECK(computed(Product(d), 4) == plain(Product(d)));
  }
  const GemmDesc nothing{.m = 30, .n = 20, .k = 0};
  CHECK(computed(Product(nothing), 2) == std::vector<std::byte>(30 * 20 * 4, std::byte{0}));
  const GemmDesc empty{.m = 1, .n = 0, .k = 5};
  CHECK(computed(Product(empty), 2).empty());
}

TEST_CASE("tiles are fixed by the shape", "[gemm][runtime]") {
  const auto counted = [](const GemmDesc& d) {
    const Tiling t = tiling_of(d);
    CHECK(t.rows >= 1);
    CHECK(t.columns >= 1);
    CHECK((t.down - 1) * t.rows < d.m);
    CHECK(t.down * t.rows >= d.m);
    CHECK((t.across - 1) * t.columns < d.n);
    CHECK(t.across * t.columns >= d.n);
    CHECK(t.tiles == d.calls * d.batch * t.down * t.across);
    return t;
  };
  for (std::int64_t m = 1; m < 600; m += 13) {
    for (std::int64_t n = 1; n < 600; n += 37) {
      for (const std::int64_t k : {1, 100, 1 << 16}) counted({.m = m, .n = n, .k = k});
    }
  }
  CHECK(counted({.m = 40, .n = 40, .k = 40}).tiles == 1);
  CHECK(counted({.m = 4096, .n = 4096, .k = 4096}).tiles == 256);
  CHECK(counted({.m = 1024, .n = 1024, .k = 1024}).tiles == 16);
  CHECK(counted({.m = 1, .n = 4096, .k = 4096}).tiles == 8);
  CHECK(counted({.m = 64, .n = 64, .k = 1 << 20}).tiles == 4);
  const Tiling small = counted({.batch = 1000, .m = 8, .n = 8, .k = 8, .stride_a = 64, .stride_c = 64});
  CHECK(small.tiles == 1000);
  CHECK(small.tiles_of_chunk == 256);
}

TEST_CASE("no product asks for more scratch than the device says", "[gemm][runtime]") {
  const std::uint64_t seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  const Device device = Device::cpu({.threads = 4});
  runtime::Backend& backend = *backend_of(device);
  const auto extent = [&] { return std::int64_t{1} << random() % 15; };
  for (int i = 0; i < 3000; ++i) {
    GemmDesc d{.m = extent() + static_cast<std::int64_t>(random() % 7), .n = extent(), .k = extent()};
    d.operand = d.result = random() % 2 ? f32 : bf16;
    if (random() % 2) d.result = f32;
    d.transpose_a = random() % 2;
    d.transpose_b = random() % 2;
    if (random() % 4 == 0) {
      d.batch = 1 + static_cast<std::int64_t>(random() % 40);
      d.stride_a = d.m * d.k;
      d.stride_b = d.k * d.n;
      d.stride_c = d.m * d.n;
    }
    INFO(runtime::gemm_text(d));
    REQUIRE(backend.prepare_gemm(d)->workspace_bytes() <= backend.most_gemm_scratch());
  }
}

}  // namespace
}  // namespace fuse::test
