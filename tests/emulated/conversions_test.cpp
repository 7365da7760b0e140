// Every conversion, on the host body: one rounding to nearest even from any type.
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "emulated/support.hpp"

namespace fuse::test {
namespace {

using Wide = long double;  // holds every f64 and i64 exactly

template <class To, int mantissa, int bias>
Wide value_of(std::uint16_t bits) {
  return static_cast<Wide>(static_cast<double>(std::bit_cast<To>(bits)));
}

// The 16-bit float nearest to v, by trying them all in the neighbourhood of a double rounding.
template <class To>
std::uint16_t nearest(Wide v) {
  const std::uint16_t start = To(static_cast<double>(v)).bits;
  if (std::isnan(v) || std::isinf(v) || v == 0) return start;
  const auto magnitude = [](std::uint16_t bits) -> Wide {
    const auto m = static_cast<std::uint16_t>(bits & 0x7fff);
    // Infinity stands where the next finite number would be.
    const double d = static_cast<double>(std::bit_cast<To>(m));
    if (!std::isinf(d)) return d;
    const Wide last = static_cast<double>(std::bit_cast<To>(static_cast<std::uint16_t>(m - 1)));
    const Wide before = static_cast<double>(std::bit_cast<To>(static_cast<std::uint16_t>(m - 2)));
    return last + (last - before);
  };
  std::uint16_t best = start;
  for (int step = -1; step <= 1; ++step) {
    const int m = (start & 0x7fff) + step;
    if (m < 0 || std::isnan(static_cast<double>(std::bit_cast<To>(static_cast<std::uint16_t>(m))))) continue;
    const auto candidate = static_cast<std::uint16_t>((start & 0x8000) | m);
    const Wide d = std::fabs(magnitude(candidate) - std::fabs(v));
    const Wide e = std::fabs(magnitude(best) - std::fabs(v));
    if (d < e || (d == e && candidate % 2 == 0)) best = candidate;
  }
  return best;
}

template <class T>
Wide widen(T v) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) return static_cast<double>(v);
  return static_cast<Wide>(v);
}
template <>
Wide widen(half v) {
  return static_cast<double>(v);
}
template <>
Wide widen(bfloat16 v) {
  return static_cast<double>(v);
}

template <class To>
bool agrees(Wide v, To got) {
  if constexpr (std::is_same_v<To, bool>) {
    return got == (v != 0);
  } else if constexpr (std::is_integral_v<To>) {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(v)) return got == 0;
    if (v >= static_cast<Wide>(Limits::max())) return got == Limits::max();
    if (v <= static_cast<Wide>(Limits::min())) return got == Limits::min();
    return got == static_cast<To>(v);
  } else if constexpr (std::is_floating_point_v<To>) {
    if (std::isnan(v)) return std::isnan(got);
    return std::bit_cast<std::array<char, sizeof(To)>>(got) ==
           std::bit_cast<std::array<char, sizeof(To)>>(static_cast<To>(v));
  } else {
    if (std::isnan(v)) return std::isnan(static_cast<double>(got));
    return got.bits == nearest<To>(v);
  }
}

template <class To>
Wide to_wide(To got) {
  return widen(got);
}

std::vector<double> doubles() {
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> v = {0.0,
                           -0.0,
                           inf,
                           -inf,
                           std::nan(""),
                           1,
                           -1,
                           0.5,
                           1.5,
                           2.5,
                           65504,
                           65519.99999999999,
                           65520,
                           65536,
                           1e300,
                           -1e300,
                           1e-300,
                           5e-324,
                           0x1p-24,
                           0x1p-25,
                           0x1.0000000000001p-25,
                           0x1p-133,
                           0x1p-134,
                           0x1.8p-134,
                           3.3895313892515355e38,
                           3.4e38,
                           0x1.fep127,
                           0x1.ffp127,
                           0x1.fefffffffffffp127,
                           2147483647.0,
                           2147483647.5,
                           2147483648.0,
                           -2147483648.0,
                           -2147483648.5,
                           -2147483649.0,
                           9.223372036854775e18,
                           0x1p63,
                           -0x1p63,
                           1e19,
                           0x1p128};
  std::mt19937_64 random(7);
  // Halfway cases of both formats, and just beside them: where rounding twice goes wrong.
  for (int mantissa : {7, 10}) {
    for (int i = 0; i < 2000; ++i) {
      const double scale = std::ldexp(1.0, static_cast<int>(random() % 40) - 26);
      const double exact =
          std::ldexp(static_cast<double>((random() >> (63 - mantissa)) * 2 + 1), -mantissa) * scale;
      for (double d : {exact, std::nextafter(exact, inf), std::nextafter(exact, 0), exact * (1 + 0x1p-40)}) {
        v.push_back(d);
        v.push_back(-d);
      }
    }
  }
  for (int i = 0; i < 5000; ++i) v.push_back(std::bit_cast<double>(random()));
  return v;
}

template <class T>
std::vector<T> inputs();
template <>
std::vector<double> inputs() {
  return doubles();
}
template <>
std::vector<float> inputs() {
  std::vector<float> v;
  for (double d : doubles()) v.push_back(static_cast<float>(d));
  std::mt19937 random(8);
  for (int i = 0; i < 5000; ++i) v.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  return v;
}
template <class T>
std::vector<T> all_patterns() {
  std::vector<T> v(65536);
  for (int i = 0; i < 65536; ++i) v[static_cast<std::size_t>(i)].bits = static_cast<std::uint16_t>(i);
  return v;
}
template <>
std::vector<half> inputs() {
  return all_patterns<half>();
}
template <>
std::vector<bfloat16> inputs() {
  return all_patterns<bfloat16>();
}
template <>
std::vector<std::int64_t> inputs() {
  std::vector<std::int64_t> v = {
      0,     1,     -1,    2147483647, -2147483648ll, 9223372036854775807ll, -9223372036854775807ll - 1,
      65504, 65519, 65520, 65535};
  std::mt19937_64 random(9);
  for (int bits = 9; bits < 63; ++bits) {  // halfway between two 8-bit or 11-bit numbers, and one beside
    for (int mantissa : {8, 11, 24, 53}) {
      if (bits <= mantissa) continue;
      for (int i = 0; i < 20; ++i) {
        const std::int64_t top =
            static_cast<std::int64_t>(random() >> (64 - mantissa)) | 1ll << (mantissa - 1);
        const std::int64_t exact = (top * 2 + 1) << (bits - mantissa - 1);
        for (std::int64_t e : {exact - 1, exact, exact + 1}) {
          v.push_back(e);
          v.push_back(-e);
        }
      }
    }
  }
  return v;
}
template <>
std::vector<std::int32_t> inputs() {
  std::vector<std::int32_t> v = {0,     1,     -1,  2147483647, -2147483647 - 1, 16777217, 33554435,
                                 65519, 65520, 257, 2049};
  std::mt19937 random(10);
  for (int i = 0; i < 2000; ++i) v.push_back(static_cast<std::int32_t>(random()) >> random() % 31);
  return v;
}

struct Converter {
  EmulatedDevice device{runtime::EmulatedOptions{}};
  Converter() {
    std::string body;
    for (DType from : {f64, f32, f16, bf16, i64, i32, boolean}) {
      for (DType to : {f64, f32, f16, bf16, i64, i32, boolean}) body += kernel(from, to);
    }
    device.load(body);
  }
  static std::string_view cuda(DType type) {
    switch (type) {
#define FUSE_DTYPE(name, text, bytes, kind, cuda) \
  case DType::name:                               \
    return cuda;
#include <fuse/dtypes.def>
    }
    return "";
  }
  static std::string name(DType from, DType to) {
    return std::string(to_string(from)) + "_" + std::string(to_string(to));
  }
  static std::string kernel(DType from, DType to) {
    return "FUSE_KERNEL(256) " + name(from, to) + "(global<const " + std::string(cuda(from)) +
           "> x, global<" + std::string(cuda(to)) +
           "> y, int n) {\n  const int i = blockIdx.x * 256 + threadIdx.x;\n" +
           "  if (i < n) store(y, i, to_" + std::string(to_string(to)) + "(load(x, i)));\n}\n";
  }
  template <class From, class To>
  void check(DType from, DType to) {
    const std::vector<From> v = inputs<From>();
    const auto n = static_cast<std::int64_t>(v.size());
    const auto x = device.buffer(v), y = device.buffer(n * static_cast<std::int64_t>(sizeof(To)));
    REQUIRE(device.run(name(from, to), {(n + 255) / 256}, {x, y, extent(n)}));
    const std::vector<To> got = device.values<To>(y);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
      bool good = agrees<To>(widen(v[i]), got[i]);
      if constexpr (std::is_same_v<From, std::int64_t> && std::is_same_v<To, std::int32_t>) {
        good = got[i] == static_cast<std::int32_t>(v[i]);  // integers wrap
      }
      if (!good && wrong++ < 3) {
        UNSCOPED_INFO(name(from, to) << "(" << static_cast<double>(widen(v[i]))
                                     << ") = " << static_cast<double>(to_wide(got[i])));
      }
    }
    CHECK(wrong == 0);
  }
  template <class From>
  void check_from(DType from) {
    check<From, double>(from, f64);
    check<From, float>(from, f32);
    check<From, half>(from, f16);
    check<From, bfloat16>(from, bf16);
    check<From, std::int64_t>(from, i64);
    check<From, std::int32_t>(from, i32);
  }
};

}  // namespace

TEST_CASE("conversions round once to nearest even", "[emulated]") {
  Converter c;
  c.check_from<double>(f64);
  c.check_from<float>(f32);
  c.check_from<half>(f16);
  c.check_from<bfloat16>(bf16);
  c.check_from<std::int64_t>(i64);
  c.check_from<std::int32_t>(i32);
}

TEST_CASE("conversions to and from bool", "[emulated]") {
  EmulatedDevice d({});
  d.load(R"(
FUSE_KERNEL(32) from_float(global<const float> x, global<int> y) {
  store(y, threadIdx.x, to_i32(to_bool(load(x, threadIdx.x))));
}
FUSE_KERNEL(32) from_half(global<const f16> x, global<bool> y) {
  store(y, threadIdx.x, to_bool(load(x, threadIdx.x)));
}
FUSE_KERNEL(32) to_half(global<const bool> x, global<bf16> y) {
  store(y, threadIdx.x, to_bf16(load(x, threadIdx.x)));
}
)");
  std::vector<float> x(32, 0.0f);
  x[1] = -0.0f;
  x[2] = std::nanf("");
  x[3] = 1e-45f;
  const auto y = d.buffer(128);
  REQUIRE(d.run("from_float", {1}, {d.buffer(x), y}));
  const auto got = d.values<int>(y);
  CHECK(got[0] == 0);
  CHECK(got[1] == 0);
  CHECK(got[2] == 1);
  CHECK(got[3] == 1);
  std::vector<half> h(32);
  h[1].bits = 0x8000;
  h[2].bits = 1;
  const auto b = d.buffer(32);
  REQUIRE(d.run("from_half", {1}, {d.buffer(h), b}));
  CHECK(d.values<std::uint8_t>(b)[1] == 0);
  CHECK(d.values<std::uint8_t>(b)[2] == 1);
  const auto w = d.buffer(64);
  REQUIRE(d.run("to_half", {1}, {b, w}));
  CHECK(d.values<std::uint16_t>(w)[1] == 0);
  CHECK(d.values<std::uint16_t>(w)[2] == 0x3f80);
}

TEST_CASE("a double rounded to float stays rounded when it is a double again", "[emulated]") {
  for (const int optimization : {0, 2, 3}) {
    EmulatedDevice d({.optimization = optimization});
    // Two elements that lie beside each other: a vector for the compiler.
    d.load(R"(FUSE_KERNEL(32) rounded(global<const double> a, global<double> y) {
  FUSE_LOCAL(double, 2, x);
  FUSE_LOCAL(double, 2, z);
  load_vector(x, a, 2 * threadIdx.x);
  for (int v = 0; v < 2; ++v) store(z, v, to_f64(to_f32(load(x, v) * 1.1)));
  store_vector(y, 2 * threadIdx.x, z);
}
)");
    std::vector<double> a(64);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = 0.1 + 0.37 * static_cast<double>(i);
    const auto at_a = d.buffer(a), at_y = d.buffer(at_a.bytes);
    REQUIRE(d.run("rounded", {1}, {at_a, at_y}));
    const auto got = d.values<double>(at_y);
    for (std::size_t i = 0; i < a.size(); ++i) {
      INFO("-O" << optimization << ", element " << i);
      CHECK(got[i] == static_cast<double>(static_cast<float>(a[i] * 1.1)));
    }
  }
}

}  // namespace fuse::test
