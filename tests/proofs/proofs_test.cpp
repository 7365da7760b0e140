// What the programs of proofs prove at length, in short. SPDX-License-Identifier: Apache-2.0
#include "proofs/cuda_on_host.hpp"
#include "proofs/division.hpp"
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

}  // namespace fuse::test
