// Division of many elements by one value has the bits of IEEE division. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace fuse::test {

struct ProofResult {
  std::uint64_t tested = 0, wrong = 0;
  std::string first_wrong{};  ///< empty where none is
};

/// The reciprocal of every significand, from every approximation that is off by one unit in the last place at
/// most: the nearest float, or NaN where the significand is all ones.
ProofResult prove_reciprocals();

/// Every quotient of normal floats that lies so near to the middle of two floats that an error of the steps
/// could round it to the wrong one.
///
/// Let a and b be integers in [2^23, 2^24), the significands. The value that is rounded last is off a / b by
/// at most 1.75 * 2^-23 units in the last place: 2^-23 since the remainder of a quotient that is 1.5 units
/// off may have 25 bits, and 0.75 * 2^-23 since the reciprocal is off by half a unit. So it is rounded as
/// a / b is, unless a / b lies as near to the middle w / 2 of two floats, w odd: where a 2^(s + 1) = w b + k
/// with 0 < |k| <= 7 and s the 23 or 24 bits of the quotient. (k = 0 is no quotient: w b would be a multiple
/// of 2^(s + 1).) For each b and k all w follow from the inverse of b modulo 2^(s + 1): about 50 million
/// pairs of a and b, all of which are divided here. Powers of two and signs change no step.
ProofResult prove_division_near_middles();

/// `count` random pairs: bits at random, numerators around 2^-101, around subnormals and near the largest,
/// zeros, infinities and NaNs; divisors at and around both ends of the interval, and of any kind.
ProofResult test_divisions(std::uint64_t count, std::uint64_t seed);

}  // namespace fuse::test
