// Launch bounds: assumed, and relaxed where more blocks could not run. SPDX-License-Identifier: Apache-2.0
#include "schedule/mapping/occupancy_target.hpp"

#include "schedule/mapping/schedule.hpp"
#include "support/catch.hpp"

using namespace fuse;            // NOLINT
using namespace fuse::schedule;  // NOLINT

namespace {

int aimed(const Dim& grid, int threads, std::int64_t shared = 0, int least = 1,
          const char* profile = "h200") {
  return min_blocks_per_sm({.grid = grid, .block_threads = threads}, shared, least, target_profile(profile));
}

}  // namespace

TEST_CASE("a multiprocessor is to hold 1024 threads", "[schedule]") {
  const Dim B = Dim::symbol("B", {.min = 1, .max = 1 << 20});
  CHECK(aimed(B, 256) == 4);
  CHECK(aimed(1000, 128) == 8);
  CHECK(aimed(B, 1024) == 1);
}

TEST_CASE("a number of registers says how many threads a multiprocessor is to hold", "[schedule]") {
  const auto by = [](int registers, int threads) {
    return min_blocks_per_sm({.grid = 10000, .block_threads = threads, .registers = registers}, 0, 1,
                             target_profile("h200"));
  };
  CHECK(by(32, 1024) == 2);
  CHECK(by(64, 1024) == 1);
  CHECK(by(32, 256) == 8);
  CHECK(by(128, 256) == 2);
  CHECK(by(255, 256) == 1);
}

TEST_CASE("a grid without blocks for that leaves more registers", "[schedule]") {
  const Dim B = Dim::symbol("B", {.min = 1, .max = 200});
  CHECK(aimed(132, 128) == 1);
  CHECK(aimed(133, 128) == 2);
  CHECK(aimed(B, 128) == 2);
  CHECK(aimed(B, 128, 0, 1, "v100") == 3);
}

TEST_CASE("shared memory that leaves few slots leaves more registers", "[schedule]") {
  CHECK(aimed(10000, 128, 100 << 10) == 2);
  CHECK(aimed(10000, 128, 1 << 10) == 8);
}

TEST_CASE("blocks that wait for each other need their slots", "[schedule]") {
  CHECK(aimed(264, 256, 0, 2) == 2);
  CHECK(aimed(132, 1024, 0, 2) == 2);
  CHECK(aimed(1, 128, 0, 3) == 3);
}
