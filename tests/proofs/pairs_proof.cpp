// SPDX-License-Identifier: Apache-2.0
#include "proofs/pairs_proof.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <fuse/dtype.hpp>

namespace fuse::test {
namespace {

/// A double that rounds to a half as the exact a + b does: what the sum loses in double is one sticky bit.
double sum_to_odd(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  const double of_b = sum - a;
  const double lost = (a - (sum - of_b)) + (b - of_b);
  if (lost == 0 || (std::bit_cast<std::uint64_t>(sum) & 1)) return sum;
  return (lost > 0) == (sum > 0) ? std::bit_cast<double>(std::bit_cast<std::uint64_t>(sum) | 1)
                                 : std::bit_cast<double>(std::bit_cast<std::uint64_t>(sum) - 1);
}

template <class Half>
Half of_bits(std::uint64_t bits) {
  Half result;
  result.bits = static_cast<std::uint16_t>(bits);
  return result;
}

template <class Half>
void prove(std::uint64_t stride, const char* type, ProofResult& result) {
  for (std::uint64_t n = 0; n < std::uint64_t{1} << 32; n += stride) {
    const double a = static_cast<double>(of_bits<Half>(n >> 16)), b = static_cast<double>(of_bits<Half>(n));
    if (std::isnan(a) || std::isnan(b)) continue;
    const auto check = [&](const char* op, double exact, float in_f32) {
      ++result.tested;
      const Half once(exact), twice(static_cast<double>(in_f32));
      if (once.bits == twice.bits || (std::isnan(exact) && std::isnan(in_f32))) return;
      if (result.wrong++ == 0) result.first_wrong = fmt::format("{} {}: {:a} and {:a}", type, op, a, b);
    };
    check("mul", a * b, static_cast<float>(a) * static_cast<float>(b));  // at most 22 bits: exact in double
    check("add", sum_to_odd(a, b), static_cast<float>(a) + static_cast<float>(b));
  }
}

}  // namespace

ProofResult prove_pairs(std::uint64_t stride) {
  ProofResult result;
  prove<half>(stride, "f16", result);
  prove<bfloat16>(stride, "bf16", result);
  return result;
}

}  // namespace fuse::test
