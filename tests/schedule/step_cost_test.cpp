// What the cost model says of one step. SPDX-License-Identifier: Apache-2.0
#include "target/step_cost.hpp"

#include "support/catch.hpp"
#include "target/target.hpp"

using namespace fuse;  // NOLINT
using schedule::gemm_cost;

TEST_CASE("a GEMM fills the part of the device that its tiles have multiprocessors for", "[schedule]") {
  const Target target = target_profile("h200");
  const double few = gemm_cost(1, 3, 256, 384, 64, target).share;  // 3 x 2 x 3 tiles of 128 x 128
  CHECK(few == Approx(18.0 / target.sms));
  CHECK(gemm_cost(1, 3, 257, 384, 64, target).share == Approx(27.0 / target.sms));
  CHECK(gemm_cost(1, 100, 256, 384, 64, target).share == 1);
}

TEST_CASE("each profile has a second-level cache beyond what its multiprocessors share", "[schedule]") {
  for (const std::string_view name : target_profile_names()) {
    INFO(name);
    const Target target = target_profile(name);
    CHECK(target.l2_bytes >= target.sms * target.shared_per_sm / 4);
    CHECK(target.l2_bytes <= 128 << 20);
  }
  CHECK(target_profile("h200").l2_bytes > target_profile("a100").l2_bytes);
  CHECK(target_profile("a100").l2_bytes > target_profile("v100").l2_bytes);
}
