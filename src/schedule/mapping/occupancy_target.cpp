// SPDX-License-Identifier: Apache-2.0
#include "schedule/mapping/occupancy_target.hpp"

#include <algorithm>

#include "schedule/mapping/schedule.hpp"
#include "target/residency.hpp"

namespace fuse::schedule {

int min_blocks_per_sm(const KernelSchedule& launch, std::int64_t shared_bytes, int least,
                      const Target& target) {
  constexpr int assumed_threads = 1024;
  constexpr int few_registers = 16;  // so few that they limit nothing
  const int threads = std::max(1, launch.block_threads);
  const std::int64_t assumed =
      launch.registers == 0
          ? assumed_threads / threads
          : blocks_per_sm({.blocks = 1, .threads = threads, .registers = launch.registers}, target);
  const std::int64_t busy = (launch.grid.max() - 1) / target.sms + 1;
  const std::int64_t slots = blocks_per_sm({.blocks = 1,
                                            .threads = launch.block_threads,
                                            .registers = few_registers,
                                            .shared_bytes = shared_bytes},
                                           target);
  return static_cast<int>(std::max<std::int64_t>({std::min({assumed, busy, slots}), least, 1}));
}

}  // namespace fuse::schedule
