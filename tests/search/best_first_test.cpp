// Best-first search finds what trying everything finds, and says so only where it has seen to it.
// SPDX-License-Identifier: Apache-2.0
#include "schedule/search/best_first.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "support/catch.hpp"

using namespace fuse::schedule;  // NOLINT

namespace {

/// Costs that are drawn: of each option after the one before it, in whole numbers, so that sums are exact.
/// Some designs are illegal, and the number of options depends on what was taken before.
class DrawnProblem {
 public:
  explicit DrawnProblem(std::uint32_t seed) {
    std::mt19937 random(seed);
    depth_ = 1 + random() % 5;
    width_ = 1 + random() % 4;
    const std::uint32_t most = 1 + random() % 20;  // few different costs make many equal ones
    costs_.resize(depth_ * width_ * width_);
    for (double& cost : costs_) cost = static_cast<double>(random() % most);
    salt_ = static_cast<std::uint32_t>(random());
    illegal_ = random() % 4;
  }
  std::size_t variables() const { return depth_; }
  std::size_t options(const Prefix& prefix) const {
    return prefix.empty() ? width_ : std::min<std::size_t>(width_, 1 + (hash(prefix) % (width_ + 1)));
  }
  /// The cost so far, and the least that each of the others can add.
  double bound(const Prefix& prefix) const {
    double sum = so_far(prefix);
    for (std::size_t i = prefix.size(); i < depth_; ++i) {
      const auto first = costs_.begin() + static_cast<std::ptrdiff_t>(i * width_ * width_);
      sum += *std::min_element(first, first + static_cast<std::ptrdiff_t>(width_ * width_));
    }
    return sum;
  }
  std::optional<double> cost(const Prefix& design, double below) const {
    const double sum = so_far(design);
    if (!(sum < below) || hash(design) % 4 < illegal_) return std::nullopt;
    return sum;
  }

 private:
  std::uint32_t hash(const Prefix& prefix) const {
    std::uint32_t state = salt_;
    for (const std::uint16_t option : prefix) state = (state ^ option) * 2654435761u;
    return state >> 8;
  }
  double so_far(const Prefix& prefix) const {
    double sum = 0;
    for (std::size_t i = 0; i < prefix.size(); ++i)
      sum += costs_[(i * width_ + (i > 0 ? prefix[i - 1] : 0u)) * width_ + prefix[i]];
    return sum;
  }

  std::size_t depth_ = 1, width_ = 1;
  std::uint32_t salt_ = 0, illegal_ = 0;
  std::vector<double> costs_;
};

}  // namespace

TEST_CASE("best first: finds the least of drawn problems, and proves it", "[search]") {
  std::int64_t examined = 0, all = 0;
  for (std::uint32_t seed = 1; seed <= 3000; ++seed) {
    INFO("seed " << seed);
    const DrawnProblem problem(seed);
    const Searched found = best_first(problem), tried = by_trying_all(problem);
    REQUIRE(found.proven);
    CHECK(found.cost == tried.cost);
    CHECK(found.design.has_value() == tried.design.has_value());
    CHECK(found.examined <= tried.examined);
    CHECK(count_designs(problem, 1 << 20) == tried.examined);
    examined += found.examined;
    all += tried.examined;
    // What is known already is not beaten by what is equal.
    const Searched again = best_first(problem, {}, tried.cost);
    CHECK_FALSE(again.design);
    CHECK(again.cost == tried.cost);
    CHECK(again.proven);
  }
  INFO(examined << " of " << all);
  CHECK(examined < all / 2);
}

TEST_CASE("best first: the same problem gives the same design and counts", "[search]") {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    const Searched a = best_first(DrawnProblem(seed)), b = best_first(DrawnProblem(seed));
    CHECK(a.design == b.design);
    CHECK(a.examined == b.examined);
    CHECK(a.expanded == b.expanded);
    CHECK(a.pruned == b.pruned);
  }
}

TEST_CASE("best first: a limit ends the search, and nothing is proven then", "[search]") {
  int stopped = 0;
  for (std::uint32_t seed = 1; seed <= 500; ++seed) {
    INFO("seed " << seed);
    const DrawnProblem problem(seed);
    const Searched whole = best_first(problem);
    const Searched part = best_first(problem, {.most_examined = 1, .most_expanded = 3});
    CHECK(part.examined <= 1);
    CHECK(part.expanded <= 3);
    CHECK(part.cost >= whole.cost);
    if (part.proven) CHECK(part.cost == whole.cost);
    stopped += !part.proven;
  }
  CHECK(stopped > 50);
}
