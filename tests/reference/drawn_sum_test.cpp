// Sums as a right device may have them. SPDX-License-Identifier: Apache-2.0
#include "eval/bounds/drawn_sum.hpp"

#include <vector>

#include "support/catch.hpp"

namespace fuse::runtime::reference {
namespace {

/// Whether each of 16 variants is off the sum of these terms in their order.
int moved(const std::vector<float>& terms) {
  int count = 0;
  for (std::uint64_t variant = 1; variant <= 16; ++variant) {
    DrawnSum<float> drawn(variant);
    float sum = 0;
    for (const float term : terms) drawn.add(term), sum += term;
    count += drawn.value() != sum;
  }
  return count;
}

}  // namespace

TEST_CASE("drawn sums: every variant moves a sum that some order rounds", "[reference]") {
  CHECK(moved({1, 0x1p-25F, 0x1p-25F}) == 16);
  CHECK(moved({1, 2, 3}) == 0);
}

TEST_CASE("drawn sums: there is one way to add two terms", "[reference]") {
  CHECK(moved({1, 0x1p-25F}) == 0);
}

TEST_CASE("drawn sums: a product may round or be fused with the addition", "[reference]") {
  int count = 0;
  for (std::uint64_t variant = 1; variant <= 16; ++variant) {
    DrawnSum<float> drawn(variant);
    drawn.add_product(0.1F, 0.3F);
    drawn.add_product(0.1F, -0.3F);
    count += drawn.value() != 0;
  }
  CHECK(count == 16);
}

}  // namespace fuse::runtime::reference
