// What costs decide is asked about, so that decisions of one device hold where other things are fast.
// SPDX-License-Identifier: Apache-2.0
#include "fuzz/told.hpp"

#include "fuzz/corpus.hpp"
#include "support/catch.hpp"

using namespace fuse::fuzz;  // NOLINT

TEST_CASE("an operand that costs copy, and not its strides, is copied by decisions", "[fuzz][decisions]") {
  const Told told = told_again(parse_case(R"(#! options profile=a100
#! dims B=1 T=5
graph @g(%x0: f64[3, T, 2, 6], %x1: f64[6, 2]) -> (y0: f64[3, T, 2, 6], y1: f64[6, 2, 3, T])
    where B in [1, 1024] hint 108, T in [2, 8] hint 8 {
  %2 = tanh %x0 : f64[3, T, 2, 6]
  %3 = contraction %x0, %x1 {batch_a = [3, 2], batch_b = [0, 1], contract_a = [], contract_b = []} : f64[6, 2, 3, T]
  %4 = tanh %3 : f64[6, 2, 3, T]
  return y0 = %2, y1 = %4
})",
                                          "test"));
  CHECK(told.model_differs);  // without decisions the other device would do otherwise
  CHECK(told.differs == "");
}
