// Intervals and forms by themselves: what no graph of a sensible size reaches.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/polynomial.hpp"

#include "base/access.hpp"
#include "support/catch.hpp"

namespace fuse::analysis {
namespace {

bool is(Interval interval, Wide low, Wide high) { return interval.low == low && interval.high == high; }

const Dim A = Dim::symbol("A", {.min = 0, .max = 99}), B = Dim::symbol("B", {.min = 0, .max = 99}),
          C = Dim::symbol("C", {.min = 0, .max = 99});

TEST_CASE("intervals: an end without a bound stays without one", "[facts][intervals]") {
  const Interval any{}, positive{1, infinite}, some{-3, 5};
  CHECK(is(add(positive, some), -2, infinite));
  CHECK(is(add(some, positive), -2, infinite));
  CHECK(is(add(negate(positive), some), -infinite, 4));
  CHECK(is(add(some, negate(positive)), -infinite, 4));
  CHECK(is(add(any, {infinite, infinite}), -infinite, infinite));
  CHECK(is(add({-infinite, -infinite}, any), -infinite, infinite));
  CHECK(is(multiply(positive, positive), 1, infinite));
  CHECK(is(multiply(positive, negate(positive)), -infinite, -1));
  CHECK(is(multiply(some, {-2, 7}), -21, 35));
  CHECK(is(multiply({infinite, infinite}, {infinite, infinite}), infinite, infinite));
  CHECK(is(multiply({-infinite, -infinite}, {-infinite, -infinite}), infinite, infinite));
  CHECK(is(intersect(some, positive), 1, 5));
  CHECK_FALSE(intersect(some, {5, 9}).empty());
  CHECK(intersect(some, {6, 9}).empty());
}

TEST_CASE("intervals: quotients are rounded to what lies inside", "[facts][intervals]") {
  CHECK(floor_divide(7, 2) == 3);
  CHECK(floor_divide(-7, 2) == -4);
  CHECK(floor_divide(-8, 2) == -4);
  CHECK(ceil_divide(7, 2) == 4);
  CHECK(ceil_divide(-7, 2) == -3);
  CHECK(ceil_divide(8, 2) == 4);
  CHECK(ceil_divide(5, infinite) == 1);
  for (const Wide end : {infinite, -infinite}) {
    CHECK(floor_divide(end, 1000) == end);
    CHECK(ceil_divide(end, 1000) == end);
  }
  CHECK(is(quotients({-7, 11}, 3), -2, 3));
  CHECK(is(quotients({-7, 11}, -3), -3, 2));
  CHECK(is(quotients({-7, 11}, 1), -7, 11));
  CHECK(is(quotients({-7, infinite}, -2), -infinite, 3));
  CHECK(clamp_to_int64(infinite) == INT64_MAX);
  CHECK(clamp_to_int64(-infinite) == INT64_MIN);
}

TEST_CASE("forms: the size counts atoms, and stops above its budget", "[facts]") {
  CHECK(size(Dim(5), 9) == 1);
  CHECK(size(A * B + C, 9) == 4);
  CHECK(size((A * B + C) / 4, 99) == 7);
  CHECK(size((A * B + C) % 4, 99) == 7);
  CHECK(size(A * B * C, 3) == 4);
  CHECK(size(A * B * C, 2) == 3);
  CHECK(size(A * B * C * C, 1) == 2);
  CHECK(size((A * A * B * B * C * C) / 2, 4) == 6);  // 2, then 3 of the dividend, then the divisor
}

TEST_CASE("forms: equal atoms are the same whoever made them", "[facts]") {
  const auto atom = [](const Dim& dim) { return poly_of(dim)->terms[0].factors[0]; };
  const Dim other = Dim::symbol("A", {.min = 0, .max = 99});
  CHECK(same(atom(A), atom(other)));
  CHECK_FALSE(same(atom(A), atom(B)));
  CHECK(same(atom((A + B) / 4), atom((other + B) / 4)));
  CHECK_FALSE(same(atom((A + B) / 4), atom((A + B) % 4)));
  CHECK_FALSE(same(atom((A + B) / 4), atom((A + B) / 5)));
  CHECK_FALSE(same(atom((A + B) / 4), atom((A + C) / 4)));
  CHECK(key(atom(A)) == "A");
  CHECK(key(atom((A + B) / 4)) != key(atom((A + B) / 5)));
  std::vector<Atom> rest;
  CHECK(contains({atom(A), atom(B), atom(A)}, {atom(A)}, rest));
  CHECK(rest.size() == 2);
  CHECK_FALSE(contains({atom(A), atom(B)}, {atom(A), atom(A)}, rest));
  CHECK_FALSE(contains({atom(A)}, {atom(A), atom(B)}, rest));
}

TEST_CASE("forms: a product may stand under each factor and each pair", "[facts]") {
  const std::vector<Atom> factors = poly_of(A * A * B)->terms[0].factors;
  CHECK(part_keys(factors) == std::set<std::string>{"A", "A * A", "A * B", "B"});
  CHECK(first_key(factors) == "A * A");
  CHECK(first_key({factors[2]}) == "B");
  CHECK(as_term(A * B * 3)->coefficient == 3);
  CHECK(as_term(Dim(7))->factors.empty());
  CHECK_FALSE(as_term(A * B + 1));
  CHECK_FALSE(as_term(A + B));
}

}  // namespace
}  // namespace fuse::analysis
