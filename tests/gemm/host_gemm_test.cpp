// The CPU's GEMM, by OpenBLAS and by the plain loops, against loops in long double.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/host_gemm.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>

#include "support/catch.hpp"
#include "tensors/host_tensor.hpp"

namespace fuse::test {
namespace {

using runtime::GemmDesc;
using runtime::HostGemm;

struct Rounding {
  double unit;      ///< half the distance of 1 to the next number
  double smallest;  ///< the smallest subnormal: more than the error of a result that underflows
};
Rounding rounding_of(DType type) {
  switch (type) {
    case f64:
      return {0x1p-53, 0x1p-1074};
    case f16:
      return {0x1p-11, 0x1p-25};
    case bf16:
      return {0x1p-8, 0x1p-134};
    default:
      return {0x1p-24, 0x1p-150};
  }
}

double value_at(DType type, const std::vector<std::byte>& bytes, std::int64_t index) {
  return runtime::dispatch(type, [&]<DType t>() {
    typename runtime::StorageOf<t>::type x;
    std::memcpy(&x, bytes.data() + static_cast<std::size_t>(index) * sizeof x, sizeof x);
    return static_cast<double>(x);
  });
}

std::vector<std::byte> random_bytes(DType type, std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> pick(-1, 1);
  return runtime::dispatch(type, [&]<DType t>() {
    using T = typename runtime::StorageOf<t>::type;
    std::vector<std::byte> bytes(static_cast<std::size_t>(count) * sizeof(T));
    for (std::int64_t i = 0; i < count; ++i) {
      const T x = is_floating(t) ? static_cast<T>(pick(random)) : static_cast<T>(pick(random) * 1000);
      std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof x, &x, sizeof x);
    }
    return bytes;
  });
}

struct Problem {
  GemmDesc desc;
  std::vector<std::byte> a, b, c;

  explicit Problem(const GemmDesc& d)
      : desc(d),
        a(random_bytes(d.operand, (d.transpose_a ? d.k : d.m) * row_of_a(d) + (d.batch - 1) * d.stride_a, 1)),
        b(random_bytes(d.operand, (d.transpose_b ? d.n : d.k) * row_of_b(d) + (d.batch - 1) * d.stride_b, 2)),
        c(static_cast<std::size_t>((d.m - 1) * row_of_c(d) + d.n + (d.batch - 1) * d.stride_c) *
              size_of(d.result),
          std::byte{0x55}) {}
};

/// |got - exact| <= gamma_k * sum |a||b| in the accumulator's unit, and one rounding to the result's type.
void check_result(const Problem& p) {
  const GemmDesc& d = p.desc;
  const Rounding sum_rounding = rounding_of(d.operand == f64 ? f64 : f32), result = rounding_of(d.result);
  const double ku = static_cast<double>(d.k) * sum_rounding.unit, gamma = ku / (1 - ku);
  std::int64_t wrong = 0, gaps = 0;
  std::vector<bool> written(p.c.size() / size_of(d.result));
  for (std::int64_t i = 0; i < d.batch; ++i) {
    for (std::int64_t row = 0; row < d.m; ++row) {
      for (std::int64_t column = 0; column < d.n; ++column) {
        long double exact = 0, magnitude = 0;
        for (std::int64_t k = 0; k < d.k; ++k) {
          const long double x =
              value_at(d.operand, p.a,
                       i * d.stride_a + (d.transpose_a ? k * row_of_a(d) + row : row * row_of_a(d) + k));
          const long double y = value_at(
              d.operand, p.b,
              i * d.stride_b + (d.transpose_b ? column * row_of_b(d) + k : k * row_of_b(d) + column));
          exact += x * y;
          magnitude += std::fabs(x * y);
        }
        const double sum_error = gamma * static_cast<double>(magnitude);
        const double whole = static_cast<double>(std::fabs(exact)) + sum_error;
        const double bound =
            is_floating(d.operand) ? (sum_error + result.unit * whole + result.smallest) * (1 + 0x1p-40) : 0;
        const std::int64_t at = i * d.stride_c + row * row_of_c(d) + column;
        written[static_cast<std::size_t>(at)] = true;
        const double got = value_at(d.result, p.c, at);
        if (!(std::fabs(static_cast<double>(got - exact)) <= bound)) ++wrong;
      }
    }
  }
  for (std::size_t byte = 0; byte < p.c.size(); ++byte) {
    gaps += !written[byte / size_of(d.result)] && p.c[byte] != std::byte{0x55};
  }
  CHECK(wrong == 0);
  CHECK(gaps == 0);
}

std::string text_of(const GemmDesc& d) {
  return std::string(to_string(d.operand)) + " to " + std::string(to_string(d.result)) + ", " +
         std::to_string(d.batch) + " of " + std::to_string(d.m) + " x " + std::to_string(d.n) + " by " +
         std::to_string(d.k) + (d.transpose_a ? ", a transposed" : "") +
         (d.transpose_b ? ", b transposed" : "");
}

constexpr std::pair<DType, DType> types[] = {{f64, f64},   {f32, f32},  {f16, f16}, {f16, f32},
                                             {bf16, bf16}, {bf16, f32}, {i32, i32}, {i64, i64}};

void check_both(const GemmDesc& desc) {
  INFO(text_of(desc));
  for (bool plain : {false, true}) {
    Problem problem(desc);
    (plain ? runtime::make_plain_gemm(desc) : runtime::make_host_gemm(desc))
        ->run(problem.a.data(), problem.b.data(), problem.c.data());
    check_result(problem);
  }
}

TEST_CASE("rows and matrices of a result stand where they are wanted", "[gemm]") {
  for (const auto& [operand, result] : types) {
    GemmDesc heads{
        .batch = 3, .m = 5, .n = 4, .k = 9, .stride_a = 45, .stride_b = 36, .stride_c = 4, .row_c = 12};
    heads.operand = operand;
    heads.result = result;
    check_both(heads);  // side by side
    heads.stride_c = 70;
    check_both(heads);  // one behind the other, with gaps
  }
  const GemmDesc blocks{
      .batch = 2, .m = 70, .n = 65, .k = 33, .stride_a = 2310, .stride_c = 66, .row_c = 140};
  check_both(blocks);
}

TEST_CASE("operands lie in strides", "[gemm]") {
  for (const auto& [operand, result] : types) {
    for (int transposes = 0; transposes < 4; ++transposes) {
      GemmDesc heads{.batch = 3, .m = 5, .n = 4, .k = 9, .stride_a = 11, .stride_b = 90, .stride_c = 20};
      heads.transpose_a = transposes & 1;
      heads.transpose_b = transposes & 2;
      heads.row_a = 33;  // heads side by side
      heads.row_b = 10;  // a part of each row
      heads.operand = operand;
      heads.result = result;
      check_both(heads);
    }
  }
}

TEST_CASE("scattered results that overlap are refused", "[gemm]") {
  const auto why = [](const GemmDesc& d) {
    try {
      runtime::check_gemm_desc(d);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const GemmDesc good{.batch = 3, .m = 5, .n = 4, .k = 9, .stride_c = 4, .row_c = 12};
  CHECK(why(good).empty());
  const auto with = [&](auto change) {
    GemmDesc d = good;
    change(d);
    return why(d);
  };
  CHECK(with([](GemmDesc& d) { d.row_a = 8; }).find("rows of an operand overlap") != std::string::npos);
  CHECK(with([](GemmDesc& d) { d.row_a = 9; }).empty());
  CHECK(with([](GemmDesc& d) { d.row_b = 3; }).find("rows of an operand overlap") != std::string::npos);
  CHECK(with([](GemmDesc& d) { d.row_c = 3; }).find("overlap") != std::string::npos);
  CHECK(with([](GemmDesc& d) { d.row_c = 11; }).find("overlap") != std::string::npos);
  CHECK(with([](GemmDesc& d) { d.stride_c = 3; }).find("overlap") != std::string::npos);
  CHECK(with([](GemmDesc& d) { d.stride_c = 51; }).find("overlap") != std::string::npos);
  CHECK(with([](GemmDesc& d) { d.stride_c = 52; }).empty());
  CHECK(with([](GemmDesc& d) { d.k = 0; }).find("scattered results of no products") != std::string::npos);
  CHECK(with([](GemmDesc& d) { d.epilogue = schedule::EpilogueKind::scale; }).find("or with an epilogue") !=
        std::string::npos);
}

TEST_CASE("every type, transpose and odd size is within the bound", "[gemm]") {
  const std::int64_t sizes[][3] = {{1, 1, 1},    {3, 5, 7},   {33, 65, 129},
                                   {1, 70, 100}, {70, 1, 65}, {40, 9, 1}};
  for (const auto& [operand, result] : types) {
    for (const auto& [m, n, k] : sizes) {
      for (int transposes = 0; transposes < 4; ++transposes) {
        check_both({.m = m,
                    .n = n,
                    .k = k,
                    .transpose_a = (transposes & 1) != 0,
                    .transpose_b = (transposes & 2) != 0,
                    .operand = operand,
                    .result = result});
      }
    }
  }
}

TEST_CASE("batches, with shared operands and gaps between results", "[gemm]") {
  for (const auto& [operand, result] : types) {
    for (std::int64_t stride_a : {0, 20, 23}) {
      for (std::int64_t stride_b : {0, 30, 31}) {
        check_both({.batch = 3,
                    .m = 4,
                    .n = 6,
                    .k = 5,
                    .stride_a = stride_a,
                    .stride_b = stride_b,
                    .stride_c = 24 + stride_a % 2,
                    .operand = operand,
                    .result = result});
      }
    }
  }
}

TEST_CASE("an empty result writes nothing, k = 0 writes zeros", "[gemm]") {
  for (const auto& [operand, result] : types) {
    for (const GemmDesc& d : {GemmDesc{.batch = 0, .m = 2, .n = 2, .k = 2}, GemmDesc{.m = 0, .n = 2, .k = 2},
                              GemmDesc{.m = 2, .n = 0, .k = 2}}) {
      GemmDesc desc = d;
      desc.operand = operand;
      desc.result = result;
      runtime::make_host_gemm(desc)->run(nullptr, nullptr, nullptr);
      runtime::make_plain_gemm(desc)->run(nullptr, nullptr, nullptr);
    }
    check_both({.batch = 2, .m = 3, .n = 4, .k = 0, .stride_c = 13, .operand = operand, .result = result});
  }
}

TEST_CASE("the plain loops sum in ascending k, so their bits are those of three loops", "[gemm]") {
  const GemmDesc desc{.m = 37, .n = 41, .k = 131};
  Problem p(desc);
  runtime::make_plain_gemm(desc)->run(p.a.data(), p.b.data(), p.c.data());
  std::vector<float> a(37 * 131), b(131 * 41), c(37 * 41), expected(37 * 41);
  std::memcpy(a.data(), p.a.data(), p.a.size());
  std::memcpy(b.data(), p.b.data(), p.b.size());
  std::memcpy(c.data(), p.c.data(), p.c.size());
  for (std::size_t i = 0; i < 37; ++i) {
    for (std::size_t j = 0; j < 41; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < 131; ++k) sum += a[i * 131 + k] * b[k * 41 + j];
      expected[i * 41 + j] = sum;
    }
  }
  CHECK((c == expected));
}

TEST_CASE("integers wrap", "[gemm]") {
  const std::int32_t a32[] = {std::numeric_limits<std::int32_t>::max(), 3}, b32[] = {2, 7};
  std::int32_t c32 = 0;
  runtime::make_host_gemm({.m = 1, .n = 1, .k = 2, .operand = i32, .result = i32})->run(a32, b32, &c32);
  CHECK(c32 == 19);
  const std::int64_t a64[] = {std::numeric_limits<std::int64_t>::min(), -1}, b64[] = {3, 5};
  std::int64_t c64 = 0;
  runtime::make_host_gemm({.m = 1, .n = 1, .k = 2, .operand = i64, .result = i64})->run(a64, b64, &c64);
  CHECK(c64 == std::numeric_limits<std::int64_t>::max() - 4);
}

TEST_CASE("the host's algorithm 1 is the plain loops, where there is a library before them",
          "[gemm][decisions]") {
  // In ascending k, 1 is lost beside 2^24, and so is each that follows.
  const std::vector<float> ones(64, 1.0f);
  std::vector<float> b(64, 1.0f);
  b[0] = 0x1p24f;
  GemmDesc desc{.m = 1, .n = 1, .k = 64, .algorithm = 1};
  if (runtime::openblas_used()) {
    float c = 0;
    runtime::make_host_gemm(desc)->run(ones.data(), b.data(), &c);
    CHECK(c == 0x1p24f);
  } else {
    desc.algorithm = 0;
  }
  ++desc.algorithm;
  try {
    runtime::make_host_gemm(desc);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.info().message.find("for 1 x 1 matrices of f32 to f32 by k = 64, batch 1: the library "
                                    "proposes") != std::string::npos);
  }
  CHECK_THROWS(
      runtime::make_host_gemm({.m = 1, .n = 1, .k = 1, .operand = i32, .result = i32, .algorithm = 1}));
}

TEST_CASE("infinity and NaN pass through, and nothing leaks in from padding", "[gemm]") {
  const float inf = std::numeric_limits<float>::infinity();
  const float a[] = {inf, 1, 2, 3}, b[] = {1, 0, 0, 1};
  for (bool plain : {false, true}) {
    float c[4] = {};
    const GemmDesc d{.m = 2, .n = 2, .k = 2};
    (plain ? runtime::make_plain_gemm(d) : runtime::make_host_gemm(d))->run(a, b, c);
    CHECK(c[0] == inf);
    CHECK(std::isnan(c[1]));  // inf * 0 + 1 * 1
    CHECK(c[2] == 2);
    CHECK(c[3] == 3);
  }
}

TEST_CASE("one GEMM on several threads gives the same bits every time", "[gemm]") {
  for (DType type : {f32, f16}) {
    const GemmDesc desc{.m = 96, .n = 80, .k = 112, .operand = type, .result = type};
    const Problem first(desc);
    const auto gemm = runtime::make_host_gemm(desc);
    std::vector<std::vector<std::byte>> results(6, first.c);
    std::vector<std::thread> threads;
    for (auto& result : results) {
      threads.emplace_back([&] { gemm->run(first.a.data(), first.b.data(), result.data()); });
    }
    for (auto& thread : threads) thread.join();
    for (const auto& result : results) CHECK((result == results[0]));
  }
}

TEST_CASE("all 16-bit floats are widened exactly and narrowed back", "[gemm]") {
  for (DType type : {f16, bf16}) {
    std::vector<std::uint16_t> bits(65536), back(65536);
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
    const std::uint16_t one = type == f16 ? half(1).bits : bfloat16(1).bits;
    std::vector<float> wide(65536);
    const GemmDesc to_f32{.m = 65536, .n = 1, .k = 1, .operand = type, .result = f32};
    const GemmDesc to_same{.m = 65536, .n = 1, .k = 1, .operand = type, .result = type};
    runtime::make_plain_gemm(to_f32)->run(bits.data(), &one, wide.data());
    runtime::make_plain_gemm(to_same)->run(bits.data(), &one, back.data());
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < bits.size(); ++i) {
      half h;
      bfloat16 b;
      h.bits = b.bits = bits[i];
      const double exact = type == f16 ? static_cast<double>(h) : static_cast<double>(b);
      if (std::isnan(exact)) {
        h.bits = b.bits = back[i];
        wrong += !std::isnan(wide[i]) || !std::isnan(type == f16 ? double(h) : double(b));
      } else {
        // A product summed onto +0 loses the sign of -0.
        wrong += wide[i] != exact || (exact != 0 && back[i] != bits[i]);
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("sums are rounded to 16 bits once, to nearest even", "[gemm]") {
  // a * b as a 1 x 1 GEMM is exact in f32; the reference rounds the exact product.
  std::mt19937 random(7);
  std::int64_t wrong = 0;
  for (int i = 0; i < 200000; ++i) {
    for (DType type : {f16, bf16}) {
      half ha, hb;
      bfloat16 ba, bb;
      const std::uint32_t both = static_cast<std::uint32_t>(random());
      ha.bits = ba.bits = static_cast<std::uint16_t>(both);
      hb.bits = bb.bits = static_cast<std::uint16_t>(both >> 16);
      const double x = type == f16 ? double(ha) : double(ba), y = type == f16 ? double(hb) : double(bb);
      // bf16 products may leave f32's range at the small end, where the f32 product itself rounds.
      const float product = static_cast<float>(x) * static_cast<float>(y) + 0.0f;
      const std::uint16_t expected =
          type == f16 ? half(double(product)).bits : bfloat16(double(product)).bits;
      std::uint16_t got = 0;
      static const auto f16_gemm =
          runtime::make_plain_gemm({.m = 1, .n = 1, .k = 1, .operand = f16, .result = f16});
      static const auto bf16_gemm =
          runtime::make_plain_gemm({.m = 1, .n = 1, .k = 1, .operand = bf16, .result = bf16});
      (type == f16 ? f16_gemm : bf16_gemm)->run(&ha.bits, &hb.bits, &got);
      const bool nan = std::isnan(product);
      half gh;
      bfloat16 gb;
      gh.bits = gb.bits = got;
      wrong += nan ? !std::isnan(type == f16 ? double(gh) : double(gb)) : got != expected;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("descriptions that no device takes", "[gemm]") {
  const auto error_of = [](const GemmDesc& d) -> ErrorInfo {
    try {
      runtime::check_gemm_desc(d);
    } catch (const Error& error) {
      return error.info();
    }
    return {.code = ErrorCode::ok};
  };
  CHECK(error_of({.m = 1, .n = 1, .k = 1}).code == ErrorCode::ok);
  CHECK(error_of({.operand = boolean, .result = boolean}).code == ErrorCode::unsupported);
  CHECK(error_of({.operand = f32, .result = f16}).code == ErrorCode::unsupported);
  CHECK(error_of({.operand = f32, .result = f64}).code == ErrorCode::unsupported);
  CHECK(error_of({.m = -1}).kind == ErrorKind::internal);
  CHECK(error_of({.stride_a = -1}).kind == ErrorKind::internal);
  const std::int64_t huge = std::int64_t{1} << 40;
  CHECK(error_of({.m = huge, .n = 1, .k = huge}).code == ErrorCode::invalid_extent);
  CHECK(error_of({.batch = huge, .m = 1, .n = 1, .k = 1, .stride_b = huge, .stride_c = 1}).code ==
        ErrorCode::invalid_extent);
  CHECK(error_of({.batch = 2, .m = 2, .n = 2, .k = 1, .stride_c = 3}).message.find("overlap") !=
        std::string::npos);
}

TEST_CASE("the report says which GEMM is used", "[gemm]") {
  const std::string report = runtime::host_gemm_report();
  INFO(report);
  CHECK(report.find("OpenBLAS:\n") == 0);
  const bool used = report.find("used for f64") != std::string::npos;
  const bool loops = report.find("plain loops instead") != std::string::npos;
  CHECK(used != loops);
  if (used) CHECK(report.find("\n  OpenBLAS 0.") != std::string::npos);  // its version and its build
}

}  // namespace
}  // namespace fuse::test
