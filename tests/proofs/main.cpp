// fuse_proofs: the proofs at length. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "proofs/division_proof.hpp"
#include "proofs/pairs_proof.hpp"

namespace fuse::test {

void print_special_functions();

namespace {

bool shown(const char* what, const ProofResult& result) {
  fmt::print("{}: {} tested, {} wrong{}{}\n", what, result.tested, result.wrong,
             result.wrong > 0 ? "; first " : "", result.first_wrong);
  std::fflush(stdout);
  return result.wrong == 0;
}

int usage() {
  std::fputs(
      "usage: fuse_proofs division [CASES [SEED]] | pairs [STRIDE] | special\n"
      "  division  reciprocals, quotients near the middle of two floats, CASES random divisions (10^9)\n"
      "  pairs     sums and products of f16 and bf16, every STRIDE-th pair (1: all; some minutes)\n"
      "  special   prints a C++ program that computes erf and tanh of every float\n",
      stderr);
  return 2;
}

int run(int count, char** words) {
  const std::string_view name = count > 1 ? words[1] : "";
  const auto number = [&](int at, std::uint64_t usual) {
    return count > at ? std::strtoull(words[at], nullptr, 10) : usual;
  };
  if (name == "division") {
    const std::uint64_t seed = number(3, 27);
    bool right = shown("reciprocals", prove_reciprocals());
    right = shown("quotients near the middle of two floats", prove_division_near_middles()) && right;
    right = shown(fmt::format("random divisions, seed {}", seed).c_str(),
                  test_divisions(number(2, 1'000'000'000), seed)) &&
            right;
    return right ? 0 : 1;
  }
  if (name == "pairs")
    return shown("sums and products of pairs", prove_pairs(std::max<std::uint64_t>(1, number(2, 1)))) ? 0 : 1;
  if (name != "special") return usage();
  print_special_functions();
  return 0;
}

}  // namespace
}  // namespace fuse::test

int main(int count, char** words) {
  try {
    return fuse::test::run(count, words);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuse_proofs: %s\n", error.what());
    return 1;
  }
}
