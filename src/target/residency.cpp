// SPDX-License-Identifier: Apache-2.0
#include "target/residency.hpp"

#include <algorithm>
#include <limits>

#include "base/divide_up.hpp"

namespace fuse::schedule {
namespace {

constexpr std::int64_t register_unit = 256;   // a warp's registers are a multiple of it
constexpr std::int64_t most_registers = 255;  // per thread

std::int64_t round_up(std::int64_t a, std::int64_t unit) { return divide_up(a, unit) * unit; }

std::int64_t registers_of_warp(const Residency& launch, std::int64_t warps, const Target& target) {
  const auto granted = [&](std::int64_t of_thread) {
    return round_up(of_thread * target.warp_size, register_unit);
  };
  if (launch.registers != Residency::unknown) return granted(launch.registers);
  const std::int64_t of_subpartition = divide_up(warps * launch.blocks_per_sm, subpartitions_per_sm);
  const std::int64_t allowed = subpartition_of(target).registers / of_subpartition;
  return std::min(granted(most_registers), allowed / register_unit * register_unit);
}

}  // namespace

SubPartition subpartition_of(const Target& target) {
  return {.warps = target.max_threads_per_sm / target.warp_size / subpartitions_per_sm,
          .registers = target.registers_per_sm / subpartitions_per_sm};
}

std::int64_t SubPartition::warps_of(std::int64_t registers_each) const {
  return registers_each > 0 ? std::min(warps, registers / registers_each) : warps;
}

Share share_of_block(const Residency& launch, const Target& target) {
  const std::int64_t warps = std::max<std::int64_t>(1, divide_up(launch.threads, target.warp_size));
  return {.warps = static_cast<int>(warps),
          .registers = registers_of_warp(launch, warps, target),
          .shared = round_up(launch.shared_bytes + target.shared_reserved, target.shared_unit)};
}

int blocks_per_sm(const Residency& launch, const Target& target) {
  if (launch.threads > target.max_threads_per_block || launch.shared_bytes > target.shared_per_block_optin)
    return 0;
  const Share share = share_of_block(launch, target);
  const std::int64_t warps = subpartitions_per_sm * subpartition_of(target).warps_of(share.registers);
  std::int64_t blocks = std::min<std::int64_t>(target.max_blocks_per_sm, warps / share.warps);
  if (share.shared > 0) blocks = std::min(blocks, target.shared_per_sm / share.shared);
  if (launch.counted != Residency::unknown) blocks = std::min<std::int64_t>(blocks, launch.counted);
  return static_cast<int>(blocks);
}

namespace {

constexpr std::int64_t all_slots = std::numeric_limits<std::int64_t>::max();

std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t total = 0;
  return __builtin_add_overflow(a, b, &total) ? all_slots : total;
}

/// The most slots for blocks of `one` that the blocks of `other` take.
std::int64_t taken(Residency one, const Residency& other, const Target& target) {
  one.counted = Residency::unknown;  // the device's count says nothing about `other`
  const std::int64_t slots = std::max(1, blocks_per_sm(one, target));
  const Share mine = share_of_block(one, target), theirs = share_of_block(other, target);
  const std::int64_t warps = divide_up(slots * mine.warps, subpartitions_per_sm);  // per subpartition
  const std::int64_t registers = std::max<std::int64_t>(1, subpartition_of(target).registers / warps);
  const std::int64_t by_warps =
      theirs.warps * std::max<std::int64_t>(1, divide_up(theirs.registers, registers));
  const std::int64_t by_block = std::max(divide_up(by_warps, warps * subpartitions_per_sm / slots),
                                         divide_up(theirs.shared, target.shared_per_sm / slots));
  std::int64_t total = 0;
  return __builtin_mul_overflow(other.blocks, by_block, &total) ? all_slots : total;
}

std::int64_t taken(const Residency& one, std::span<const Residency> others, const Target& target) {
  std::int64_t total = 0;
  for (const Residency& other : others) total = sum(total, taken(one, other, target));
  return total;
}

}  // namespace

bool fit_together(std::span<const Residency> launches, const Target& target) {
  const Alternatives one_run = {{launches.begin(), launches.end()}};
  return fit_together(std::span(&one_run, 1), target);
}

bool fit_together(std::span<const Alternatives> runs, const Target& target) {
  const auto fits = [&](std::size_t run, const std::vector<Residency>& list, std::size_t index) {
    const Residency& one = list[index];
    std::int64_t lost = taken(one, std::span(list).first(index), target);
    lost = sum(lost, taken(one, std::span(list).subspan(index + 1), target));
    for (std::size_t other = 0; other < runs.size(); ++other) {
      if (other == run) continue;
      std::int64_t most = 0;
      for (const std::vector<Residency>& there : runs[other])
        most = std::max(most, taken(one, there, target));
      lost = sum(lost, most);
    }
    return std::int64_t{target.sms} * blocks_per_sm(one, target) - one.blocks >= lost;
  };
  for (std::size_t run = 0; run < runs.size(); ++run) {
    for (const std::vector<Residency>& list : runs[run]) {
      for (std::size_t index = 0; index < list.size(); ++index) {
        if (!fits(run, list, index)) return false;
      }
    }
  }
  return true;
}

}  // namespace fuse::schedule
