// Warp reductions: one rendezvous on the host gives the bits of the five-step butterfly.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "emulated/support.hpp"

namespace fuse::test {
namespace {

std::string kernels(const std::string& type) {
  std::string text = "FUSE_KERNEL(64) both_" + (type == "long long" ? "i64" : type) + "(global<const " +
                     type + "> x, global<" + type +
                     "> y) {\n  const int i = blockIdx.x * 64 + threadIdx.x;\n" +
                     "  const int n = gridDim.x * 64;\n  " + type + " v;\n";
  int slot = 0;
  const auto add = [&](const std::string& fused, const std::string& step) {
    text += "  store(y, " + std::to_string(slot++) + " * n + i, " + fused + "(load(x, i)));\n";
    text += "  v = load(x, i);\n  for (int d = 16; d > 0; d >>= 1) v = " + step + ";\n";
    text += "  store(y, " + std::to_string(slot++) + " * n + i, v);\n";
  };
  if (type != "bool") {
    add("warp_sum", "v + shuffle_xor(v, d)");
    add("warp_prod", "v * shuffle_xor(v, d)");
  }
  add("warp_max", "maximum(v, shuffle_xor(v, d))");
  add("warp_min", "minimum(v, shuffle_xor(v, d))");
  return text + "}\n";
}

template <class T>
void check(const std::string& type, const std::vector<T>& x, int pairs, bool checked) {
  EmulatedDevice d({.checked = checked, .shuffle_seed = checked ? 5u : 0u});
  d.load(kernels(type));
  const auto n = static_cast<std::int64_t>(x.size());
  const auto at = d.buffer(x), y = d.buffer(at.bytes * pairs * 2);
  REQUIRE(d.run("both_" + (type == "long long" ? "i64" : type), {n / 64}, {at, y}));
  const auto got = d.values<T>(y);
  for (int p = 0; p < pairs; ++p) {
    const T* fused = got.data() + p * 2 * n;
    for (std::int64_t i = 0; i < n; ++i) {
      const T a = fused[i], b = fused[n + i];
      INFO(type << " pair " << p << " element " << i);
      CHECK((std::memcmp(&a, &b, sizeof(T)) == 0 || (a != a && b != b)));
    }
  }
}

template <class T>
std::vector<T> floats() {
  std::mt19937 random(3);
  std::vector<T> v(64 * 5);
  for (T& e : v)
    e = static_cast<T>(std::ldexp(random() / 4294967296.0 - 0.5, static_cast<int>(random() % 20)));
  for (std::size_t i = 64; i < 128; ++i) v[i] = i % 3 ? T(0) : T(-0.0);               // zeros of both signs
  for (std::size_t i = 128; i < 192; ++i) v[i] = i % 5 ? -std::fabs(v[i]) : T(-0.0);  // the maximum is -0
  v[200] = std::numeric_limits<T>::quiet_NaN();
  v[260] = std::numeric_limits<T>::infinity();
  return v;
}

}  // namespace

TEST_CASE("warp reductions equal their butterflies bit for bit", "[emulated]") {
  std::mt19937_64 random(4);
  std::vector<std::int32_t> ints(128);
  for (auto& v : ints) v = static_cast<std::int32_t>(random());
  std::vector<std::int64_t> longs(128);
  for (auto& v : longs) v = static_cast<std::int64_t>(random());
  std::vector<std::uint8_t> bools(192);
  for (std::size_t i = 0; i < 64; ++i) bools[i] = random() % 2;
  for (std::size_t i = 64; i < 128; ++i) bools[i] = 1;
  for (const bool checked : {false, true}) {
    check("float", floats<float>(), 4, checked);
    check("double", floats<double>(), 4, checked);
    check("int", ints, 4, checked);
    check("long long", longs, 4, checked);
    check("bool", bools, 2, checked);
  }
}

TEST_CASE("shuffle_xor exchanges the lanes of each warp", "[emulated]") {
  EmulatedDevice d({.checked = true});
  d.load(R"(
FUSE_KERNEL(128) swap(global<int> y) {
  store(y, threadIdx.x, shuffle_xor(static_cast<int>(threadIdx.x), 5));
}
)");
  const auto y = d.buffer(128 * 4);
  REQUIRE(d.run("swap", {1}, {y}));
  const auto got = d.values<int>(y);
  for (int i = 0; i < 128; ++i) CHECK(got[static_cast<std::size_t>(i)] == (i ^ 5));
}

}  // namespace fuse::test
