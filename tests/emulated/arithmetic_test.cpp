// The arithmetic primitives on the host body: integers never trap, NaN propagates.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "emulated/support.hpp"

namespace fuse::test {
namespace {

template <class T>
std::string kernels(const std::string& type) {
  std::string text;
  for (const char* op : {"maximum", "minimum", "divide", "remainder", "power"}) {
    text += "FUSE_KERNEL(32) " + std::string(op) + "_2(global<const " + type + "> a, global<const " + type +
            "> b, global<" + type + "> y, int n) {\n  const int i = blockIdx.x * 32 + threadIdx.x;\n" +
            "  if (i < n) store(y, i, " + op + "(load(a, i), load(b, i)));\n}\n";
  }
  for (const char* op : {"absolute", "sign"}) {
    text += "FUSE_KERNEL(32) " + std::string(op) + "_1(global<const " + type + "> a, global<" + type +
            "> y, int n) {\n  const int i = blockIdx.x * 32 + threadIdx.x;\n  if (i < n) store(y, i, " + op +
            "(load(a, i)));\n}\n";
  }
  return text;
}

template <class T>
T wrapped(__int128 v) {
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(v));
}

template <class T>
T integer_power(T base, T exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  std::make_unsigned_t<T> result = 1;
  for (T i = 0; i < exponent; ++i) result *= static_cast<std::make_unsigned_t<T>>(base);
  return static_cast<T>(result);
}

template <class T>
bool same(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0 || (a != a && b != b);
}

template <class T>
void check(const std::string& type, const std::vector<T>& values,
           const std::vector<std::pair<std::string, std::function<T(T, T)>>>& binary,
           const std::vector<std::pair<std::string, std::function<T(T)>>>& unary) {
  EmulatedDevice d({.checked = true});
  d.load(kernels<T>(type));
  std::vector<T> a, b;
  for (T x : values) {
    for (T y : values) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  const auto n = static_cast<std::int64_t>(a.size());
  const auto at_a = d.buffer(a), at_b = d.buffer(b), at_y = d.buffer(at_a.bytes);
  for (const auto& [name, expected] : binary) {
    REQUIRE(d.run(name + "_2", {(n + 31) / 32}, {at_a, at_b, at_y, extent(n)}));
    const auto got = d.values<T>(at_y);
    for (std::size_t i = 0; i < a.size(); ++i) {
      INFO(name << "(" << a[i] << ", " << b[i] << ") = " << got[i]);
      CHECK(same(got[i], expected(a[i], b[i])));
    }
  }
  for (const auto& [name, expected] : unary) {
    REQUIRE(d.run(name + "_1", {(n + 31) / 32}, {at_a, at_y, extent(n)}));
    const auto got = d.values<T>(at_y);
    for (std::size_t i = 0; i < a.size(); ++i) {
      INFO(name << "(" << a[i] << ") = " << got[i]);
      CHECK(same(got[i], expected(a[i])));
    }
  }
}

template <class T>
void check_integers(const std::string& type) {
  using Limits = std::numeric_limits<T>;
  const std::vector<T> values = {0, 1, -1, 2, -2, 3, 7, -7, 10, 31, Limits::max(), Limits::min()};
  check<T>(
      type, values,
      {{"maximum", [](T a, T b) { return std::max(a, b); }},
       {"minimum", [](T a, T b) { return std::min(a, b); }},
       {"divide", [](T a, T b) { return b == 0 ? T{0} : wrapped<T>(static_cast<__int128>(a) / b); }},
       {"remainder", [](T a, T b) { return b == 0 ? T{0} : static_cast<T>(static_cast<__int128>(a) % b); }}},
      {{"absolute", [](T a) { return wrapped<T>(a < 0 ? -static_cast<__int128>(a) : a); }},
       {"sign", [](T a) { return static_cast<T>((a > 0) - (a < 0)); }}});
  const std::vector<T> small = {0, 1, -1, 2, -2, 3, 10, -10, 63, 64, 100, -3};
  check<T>(type, small, {{"power", [](T a, T b) { return integer_power<T>(a, b); }}}, {});
}

template <class T>
void check_floats(const std::string& type) {
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> values = {T(0), T(-0.0), T(1), T(-1), T(0.1), T(-2.5), T(7), T(1e30), inf, -inf, nan};
  check<T>(type, values,
           {{"maximum",
             [](T a, T b) {
               if (std::isnan(a) || std::isnan(b)) return a + b;
               if (a == 0 && b == 0) return std::signbit(a) ? b : a;
               return std::max(a, b);
             }},
            {"minimum",
             [](T a, T b) {
               if (std::isnan(a) || std::isnan(b)) return a + b;
               if (a == 0 && b == 0) return std::signbit(a) ? a : b;
               return std::min(a, b);
             }},
            {"divide", [](T a, T b) { return a / b; }},
            {"remainder", [](T a, T b) { return std::fmod(a, b); }},
            {"power", [](T a, T b) { return std::pow(a, b); }}},
           {{"absolute", [](T a) { return std::fabs(a); }},
            {"sign", [](T a) { return std::isnan(a) ? a : static_cast<T>((a > 0) - (a < 0)); }}});
}

/// A constant exponent of one half, which compilers know.
template <class T>
void check_half_powers(const std::string& type, int optimization) {
  EmulatedDevice d({.optimization = optimization});
  // Four elements that lie beside each other: a vector for the compiler.
  d.load("FUSE_KERNEL(32) halves(global<const " + type + "> a, global<" + type + "> y) {\n" +  //
         "  FUSE_LOCAL(" + type + ", 4, x);\n  FUSE_LOCAL(" + type + ", 4, z);\n" +
         "  load_vector(x, a, 4 * threadIdx.x);\n" +
         "  for (int v = 0; v < 4; ++v) store(z, v, power(load(x, v), " + type + "(0.5)));\n" +
         "  store_vector(y, 4 * threadIdx.x, z);\n}\n");
  const T inf = std::numeric_limits<T>::infinity();
  std::vector<T> a;
  for (int i = 0; i < 32; ++i) {
    for (const T value : {-inf, T(-0.0), T(4), T(-1)}) a.push_back(value);
  }
  const auto at_a = d.buffer(a), at_y = d.buffer(at_a.bytes);
  REQUIRE(d.run("halves", {1}, {at_a, at_y}));
  const auto got = d.values<T>(at_y);
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO(type << " at -O" << optimization << ", element " << i << ": " << a[i] << ", got " << got[i]);
    CHECK(same(got[i], std::pow(a[i], T(0.5))));
  }
}

}  // namespace

TEST_CASE("integer arithmetic wraps and never traps", "[emulated]") {
  check_integers<std::int32_t>("int");
  check_integers<std::int64_t>("long long");
}

TEST_CASE("float arithmetic propagates NaN, and +0 is greater than -0", "[emulated]") {
  check_floats<float>("float");
  check_floats<double>("double");
}

TEST_CASE("a power of one half is no square root: of -inf and -0 it is positive", "[emulated]") {
  for (const int optimization : {0, 2, 3}) {
    check_half_powers<float>("float", optimization);
    check_half_powers<double>("double", optimization);
  }
}

TEST_CASE("a vector of random numbers holds the numbers of its positions", "[emulated]") {
  for (const bool checked : {false, true}) {
    for (const std::string type : {"float", "double"}) {
      std::string body;
      for (const int n : {2, 4, 8, 16}) {
        const std::string count = std::to_string(n);
        body += "FUSE_KERNEL(32) draw_" + count + "(global<" + type + "> y, global<" + type +
                "> z) {\n  FUSE_LOCAL(" + type + ", " + count +
                ", own);\n  const long long first = " + count +
                "LL * threadIdx.x;\n  random_vector(own, 5, -6, 7, first);\n  for (int k = 0; k < " + count +
                "; ++k) {\n    store(y, first + k, load(own, k));\n    store(z, first + k, random_uniform_" +
                (type == "float" ? "f32" : "f64") + "(5, -6, 7, first + k));\n  }\n}\n";
      }
      EmulatedDevice d({.checked = checked});
      d.load(body);
      for (const int n : {2, 4, 8, 16}) {
        const auto bytes = 32 * n * (type == "float" ? 4 : 8);
        const auto y = d.buffer(bytes), z = d.buffer(bytes);
        REQUIRE(d.run("draw_" + std::to_string(n), {1}, {y, z}));
        INFO(type << ", vectors of " << n);
        CHECK(d.values<std::uint32_t>(y) == d.values<std::uint32_t>(z));
      }
    }
  }
}

TEST_CASE("CUDA's math functions exist for both float types", "[emulated]") {
  const std::vector<std::pair<std::string, double (*)(double)>> functions = {
      {"exp", std::exp},
      {"log", std::log},
      {"log1p", std::log1p},
      {"expm1", std::expm1},
      {"sin", std::sin},
      {"cos", std::cos},
      {"tanh", std::tanh},
      {"erf", std::erf},
      {"sqrt", std::sqrt},
      {"fabs", std::fabs},
      {"floor", std::floor},
      {"ceil", std::ceil},
      {"rsqrt", [](double v) { return 1 / std::sqrt(v); }}};
  std::string body = "FUSE_KERNEL(32) all(global<const double> x, global<double> y, global<float> z) {\n";
  body += "  const double v = load(x, threadIdx.x);\n";
  const int count = static_cast<int>(functions.size());
  for (int i = 0; i < count; ++i) {
    const std::string& name = functions[static_cast<std::size_t>(i)].first;
    const std::string at = std::to_string(i) + " * 32 + threadIdx.x";
    body += "  store(y, " + at + ", " + name + "(v));\n";
    body += "  store(z, " + at + ", " + name + "f(to_f32(v)) + 0.0f * " + name + "(to_f32(v)));\n";
  }
  body += "  store(y, " + std::to_string(count) + " * 32 + threadIdx.x, pow(v, 2.0) + fmod(v, 1.0));\n";
  body += "  store(z, " + std::to_string(count) +
          " * 32 + threadIdx.x, powf(to_f32(v), 2.0f) + fmodf(v, 1.0f));\n}\n";
  EmulatedDevice d({});
  d.load(body);
  std::vector<double> x(32);
  for (int i = 0; i < 32; ++i) x[static_cast<std::size_t>(i)] = 0.3 + 0.25 * i;
  const auto y = d.buffer((count + 1) * 32 * 8), z = d.buffer((count + 1) * 32 * 4);
  REQUIRE(d.run("all", {1}, {d.buffer(x), y, z}));
  const auto wide = d.values<double>(y);
  const auto narrow = d.values<float>(z);
  for (std::size_t f = 0; f <= functions.size(); ++f) {
    for (std::size_t i = 0; i < 32; ++i) {
      const double expected =
          f < functions.size() ? functions[f].second(x[i]) : std::pow(x[i], 2.0) + std::fmod(x[i], 1.0);
      CHECK(wide[f * 32 + i] == Approx(expected).epsilon(1e-13));
      CHECK(narrow[f * 32 + i] == Approx(expected).epsilon(1e-5).margin(1e-5));
    }
  }
}

}  // namespace fuse::test
