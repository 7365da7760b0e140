// SPDX-License-Identifier: Apache-2.0
#include "schedule/residency.hpp"

#include <algorithm>
#include <limits>

namespace fuse::schedule {
namespace {

constexpr int most_registers = 255;             // of a thread
constexpr int register_unit = 256;              // a warp's registers are handed out in these
constexpr std::int64_t shared_reserved = 1024;  // of each block, by the driver

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

Share share_of_block(const Residency& launch, const Target& target) {
  const std::int64_t warps = std::max<std::int64_t>(1, ceil_div(launch.threads, target.warp_size));
  std::int64_t registers = launch.registers;
  if (registers == Residency::unknown) {
    const std::int64_t a_thread = target.registers_per_sm / (warps * target.warp_size * launch.blocks_an_sm);
    registers = std::min<std::int64_t>(most_registers, a_thread);
    // A warp's share is rounded up: no more than fits so.
    if (registers < most_registers)
      registers = registers * target.warp_size / register_unit * register_unit / target.warp_size;
  }
  const std::int64_t of_warp = ceil_div(registers * target.warp_size, register_unit) * register_unit;
  const std::int64_t shared = launch.shared_bytes > 0 ? launch.shared_bytes + shared_reserved : 0;
  return {1, warps * target.warp_size, warps * of_warp, shared};
}

Share share_of_multiprocessor(const Target& target) {
  return {target.max_blocks_per_sm, target.max_threads_per_sm, target.registers_per_sm, target.shared_per_sm};
}

int blocks_per_sm(const Residency& launch, const Target& target) {
  const Share of_block = share_of_block(launch, target), of_sm = share_of_multiprocessor(target);
  std::int64_t blocks = of_sm[0];
  for (std::size_t i = 0; i < of_block.size(); ++i) {
    if (of_block[i] > 0) blocks = std::min(blocks, of_sm[i] / of_block[i]);
  }
  return static_cast<int>(blocks);
}

namespace {

constexpr std::int64_t all_places = std::numeric_limits<std::int64_t>::max();

std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t total = 0;
  return __builtin_add_overflow(a, b, &total) ? all_places : total;
}

/// The most places for blocks of `one` that the blocks of `other` take.
std::int64_t taken(const Residency& one, const Residency& other, const Target& target) {
  const Share mine = share_of_block(one, target), theirs = share_of_block(other, target);
  std::int64_t by_block = 1;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    // What I do not need, another cannot take from me.
    if (mine[i] > 0) by_block = std::max(by_block, ceil_div(theirs[i], mine[i]));
  }
  std::int64_t total = 0;
  return __builtin_mul_overflow(other.blocks, by_block, &total) ? all_places : total;
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
