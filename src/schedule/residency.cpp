// SPDX-License-Identifier: Apache-2.0
#include "schedule/residency.hpp"

#include <algorithm>
#include <array>

namespace fuse::schedule {
namespace {

constexpr int most_registers = 255;  // of a thread
constexpr int register_unit = 256;   // a warp's registers are handed out in these
constexpr std::int64_t shared_reserved = 1024;  // of each block, by the driver

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// What a block takes of a multiprocessor's slots, threads, registers and shared memory.
using Needs = std::array<std::int64_t, 4>;

Needs needs(const Residency& launch, const Target& target) {
  const std::int64_t warps = std::max<std::int64_t>(1, ceil_div(launch.threads, target.warp_size));
  int registers = launch.registers;
  if (registers == Residency::unknown) {
    registers = static_cast<int>(std::min<std::int64_t>(
        most_registers, target.registers_per_sm / (warps * target.warp_size)));
  }
  const std::int64_t of_warp =
      ceil_div(std::int64_t{registers} * target.warp_size, register_unit) * register_unit;
  const std::int64_t shared = launch.shared_bytes > 0 ? launch.shared_bytes + shared_reserved : 0;
  return {1, warps * target.warp_size, warps * of_warp, shared};
}

Needs capacity(const Target& target) {
  return {target.max_blocks_per_sm, target.max_threads_per_sm, target.registers_per_sm, target.shared_per_sm};
}

}  // namespace

int blocks_per_sm(const Residency& launch, const Target& target) {
  const Needs of_block = needs(launch, target), of_sm = capacity(target);
  std::int64_t blocks = of_sm[0];
  for (std::size_t i = 0; i < of_block.size(); ++i) {
    if (of_block[i] > 0) blocks = std::min(blocks, of_sm[i] / of_block[i]);
  }
  return static_cast<int>(blocks);
}

bool fit_together(std::span<const Residency> launches, const Target& target) {
  for (std::size_t one = 0; one < launches.size(); ++one) {
    const Needs mine = needs(launches[one], target);
    std::int64_t places = std::int64_t{target.sms} * blocks_per_sm(launches[one], target);
    for (std::size_t other = 0; other < launches.size(); ++other) {
      if (other == one) continue;
      const Needs theirs = needs(launches[other], target);
      std::int64_t taken = 1;
      for (std::size_t i = 0; i < mine.size(); ++i) {
        if (theirs[i] == 0) continue;
        // What I do not need, another cannot take from me.
        if (mine[i] > 0) taken = std::max(taken, ceil_div(theirs[i], mine[i]));
      }
      std::int64_t lost = 0;
      if (__builtin_mul_overflow(launches[other].blocks, taken, &lost)) return false;
      if (__builtin_sub_overflow(places, lost, &places)) return false;
    }
    if (places < launches[one].blocks) return false;
  }
  return true;
}

}  // namespace fuse::schedule
