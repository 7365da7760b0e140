// SPDX-License-Identifier: Apache-2.0
#include <fuse/dim.hpp>
#include <fuse/error.hpp>
#include <limits>
#include <random>

#include "support/catch.hpp"
#include "support/sanitized.hpp"

using fuse::Dim;

namespace {
const Dim B = Dim::symbol("B", {1, 1 << 20, 0});
const Dim T = Dim::symbol("T", {1, 4096, 0});
}  // namespace

TEST_CASE("dim: one canonical form") {
  CHECK(B * T == T * B);
  CHECK((B + 1) * (B - 1) == B * B - 1);
  CHECK(B - B == Dim(0));
  CHECK((B * T + 3).to_string() == "B * T + 3");
  CHECK((Dim(4) - B).to_string() == "-B + 4");
  CHECK(fuse::ceil_div(B, 256).to_string() == "(B + 255) / 256");
  CHECK_FALSE(B == T);
  CHECK_FALSE(B == Dim::symbol("B", {1, 8, 0}));
}

TEST_CASE("dim: divisions that come out") {
  CHECK(B * 1024 / 1024 == B);
  CHECK((B * 1024 + 5) / 1024 == B);
  CHECK((B * 1024 + 5) % 1024 == Dim(5));
  CHECK(B * T / T == B);
  CHECK(B * T % T == Dim(0));
  CHECK((B * 2 / 4).to_string() == "B / 2");
  CHECK(B / 4 / 8 == B / 32);
  CHECK((B % 12) % 4 == B % 4);
}

TEST_CASE("dim: divisors below 0 round down, too") {
  CHECK(B / -8 == (0 - B) / 8);
  CHECK(B % -8 == 0 - (0 - B) % 8);
  CHECK(B / (0 - T) == (0 - B) / T);
  CHECK((0 - B / -8).min() == 1);
  CHECK((0 - B / -8).max() == (1 << 20) / 8);
  CHECK((B % -8).min() == -7);
  CHECK((B % -8).max() == 0);
  const Dim either = T - 5;
  CHECK((B / either).min() == -(1 << 20));
  CHECK((B / either).max() == 1 << 20);
  CHECK((B % either).min() == -3);
  CHECK((B % either).max() == 4090);
  CHECK_FALSE(B / T / either == B / (T * either));  // 1 / 2 / -1 is 0, and 1 / -2 is -1
}

TEST_CASE("dim: an index taken apart and put together is itself") {
  const Dim i = Dim::index("i", B * T * 64);
  const Dim x = i / (T * 64), y = (i / 64) % T, z = i % 64;
  CHECK((x * T + y) * 64 + z == i);
  const Dim row = Dim::index("row", B), c = Dim::index("c", T);
  CHECK((row * T + c) / T == row);
  CHECK((row * T + c) % T == c);
}

TEST_CASE("dim: groups of elements are divided as groups") {
  const Dim g = Dim::index("g", 4096), v = Dim::index("v", 8);
  CHECK((8 * g + v) / 1024 == g / 128);
  CHECK((8 * g + v) % 1024 == 8 * (g % 128) + v);
  CHECK((8 * g + v + 1024 * B) % 1024 == 8 * (g % 128) + v);
  CHECK((8 * g + v) / 1024 * 1024 + (8 * g + v) % 1024 == 8 * g + v);
  CHECK_FALSE((8 * g + v) / 12 == 2 * g / 3);  // by fours, and v is not below 4
  CHECK((8 * g + v) / (64 * T) == g / (8 * T));
  CHECK((8 * g + v) % (64 * T) == 8 * (g % (8 * T)) + v);
  CHECK_FALSE((4 * g + v) / 1024 == g / 256);
}

TEST_CASE("dim: bounds and proofs") {
  const Dim row = Dim::index("row", B), c = Dim::index("c", T);
  CHECK((B * 1024).max() == std::int64_t{1} << 30);
  CHECK(((B + 3) / 4).min() == 1);
  CHECK(fuse::proven_less(row * T + c, B * T));
  CHECK_FALSE(fuse::proven_less(row * T + c, B * T - 1));
  CHECK(fuse::proven_le(B, B * T));
  CHECK(fuse::proven_le(B / 2, B));
  CHECK(fuse::proven_less(B / 2 * 2, B + 1));
  CHECK(fuse::proven_divisible(B * 96, 32));
  CHECK_FALSE(fuse::proven_divisible(B * 48, 32));
  CHECK(B.hint() == 1024);
}

TEST_CASE("dim: a product of hints beyond 63 bits is the upper bound") {
  const Dim any = Dim::symbol("S", {1, 2147483647, 0});
  CHECK((any * any * any * any).hint() == 46340LL * 46340 * 46340 * 46340);
  CHECK((any * any * any * any * any).hint() == std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("dim: a proof is never wrong and a form never changes the value") {
  const unsigned seed = 20240607;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const Dim S = Dim::symbol("S", {1, 5, 0}), U = Dim::symbol("U", {0, 4, 0});
  const Dim i = Dim::index("i", S * 3), j = Dim::index("j", S);
  for (int round = 0; round < fuse::test::fewer(3000, 15); ++round) {
    // The same random expression as a Dim and as a plain function of the values.
    const std::int64_t s = 1 + pick(5), u = pick(5), iv = pick(static_cast<int>(s) * 3),
                       jv = pick(static_cast<int>(s));
    std::vector<std::pair<Dim, std::int64_t>> values = {{S, s}, {U, u}, {i, iv}, {j, jv},
                                                        {2, 2}, {3, 3}, {-3, -3}};
    for (int step = 0; step < 5; ++step) {
      const auto [a, x] = values[static_cast<std::size_t>(pick(static_cast<int>(values.size())))];
      const auto [b, y] = values[static_cast<std::size_t>(pick(static_cast<int>(values.size())))];
      switch (pick(5)) {
        case 0:
          values.emplace_back(a + b, x + y);
          break;
        case 1:
          values.emplace_back(a * b, x * y);
          break;
        case 2:
          values.emplace_back(a - b, x - y);
          break;
        default: {
          if (y == 0) break;
          const std::int64_t quotient = x / y - (x % y != 0 && (x < 0) != (y < 0));
          if (pick(2))
            values.emplace_back(a / b, quotient);
          else
            values.emplace_back(a % b, x - quotient * y);
        }
      }
    }
    const auto of = [&](std::string_view name) {
      return name == "S" ? s : name == "U" ? u : name == "i" ? iv : jv;
    };
    for (const auto& [dim, value] : values) {
      INFO(dim.to_string() << " at S=" << s << " U=" << u << " i=" << iv << " j=" << jv);
      REQUIRE(dim.evaluate(of) == value);
      REQUIRE(dim.min() <= value);
      REQUIRE(dim.max() >= value);
      for (const auto& [other, bound] : values) {
        if (fuse::proven_less(dim, other)) REQUIRE(value < bound);
      }
    }
  }
}

TEST_CASE("dim: a product with an extent of 0 is 0, however large the other extents are") {
  const Dim large = Dim::symbol("L", {.min = 0, .max = std::int64_t{1} << 40}),
            last = Dim::symbol("Z", {.min = 0, .max = 9});
  const auto at = [](std::int64_t l, std::int64_t z) {
    return [l, z](std::string_view name) { return name == "L" ? l : z; };
  };
  const Dim product = Dim(65) * large * large * last;
  CHECK(product.evaluate(at(std::int64_t{1} << 40, 0)) == 0);
  CHECK((product + 7).evaluate(at(std::int64_t{1} << 40, 0)) == 7);
  CHECK((last * (large * large + 1) * large).evaluate(at(0, 9)) == 0);
  CHECK_THROWS_WITH(product.evaluate(at(std::int64_t{1} << 40, 1)),
                    "arithmetic on extents overflows 63 bits");
  // 2^32 * 2^32 is 0 in 64 bits.
  CHECK_THROWS_WITH((large * large * last).evaluate(at(std::int64_t{1} << 32, 1)),
                    "arithmetic on extents overflows 63 bits");
  CHECK_THROWS_WITH((large / last).evaluate(at(8, 0)), "division of an extent by zero");
  CHECK_THROWS_WITH((large % last).evaluate(at(8, 0)), "division of an extent by zero");
}

TEST_CASE("dim: overflow and division by zero are user errors") {
  CHECK_THROWS_WITH(Dim(std::int64_t{1} << 62) * 4, "arithmetic on extents overflows 63 bits");
  CHECK_THROWS_WITH(B / 0, "division of an extent by zero");
}
