// What the programs of proofs prove at length, in short. SPDX-License-Identifier: Apache-2.0
#include "proofs/cuda_on_host.hpp"
#include "proofs/division_proof.hpp"
#include "proofs/pairs_proof.hpp"
#include "support/catch.hpp"

namespace fuse::test {

TEST_CASE("division by one value of many has the bits of division", "[emulated][proofs]") {
  std::string why;
  if (!runs_cuda_bodies(why)) {
    WARN("skipped: " << why);
    return;
  }
  const ProofResult reciprocals = prove_reciprocals();
  INFO(reciprocals.first_wrong);
  CHECK(reciprocals.wrong == 0);
  CHECK(reciprocals.tested > 8'000'000);
  const ProofResult middles = prove_division_near_middles();
  INFO(middles.first_wrong);
  CHECK(middles.wrong == 0);
  CHECK(middles.tested > 40'000'000);
  constexpr std::uint64_t seed = 27;
  const ProofResult random = test_divisions(2'000'000, seed);
  INFO("seed " << seed << ": " << random.first_wrong);
  CHECK(random.wrong == 0);
}

TEST_CASE("ops of pairs round as ops of f32 and a conversion do", "[proofs]") {
  const ProofResult pairs = prove_pairs(20011);
  INFO(pairs.first_wrong);
  CHECK(pairs.wrong == 0);
  CHECK(pairs.tested > 800'000);
}

}  // namespace fuse::test
