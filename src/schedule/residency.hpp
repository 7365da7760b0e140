// Residency: what of a device a kernel holds while it runs, and which kernels that wait for their own blocks
// may run beside each other (AStitch, 3.2.3; brief: barrier-safe concurrency).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/target.hpp"

namespace fuse::schedule {

/// Of one launch. Registers that nobody counted yet are taken to be the most that the kernel's bounds allow.
struct Residency {
  static constexpr int unknown = 0;
  std::int64_t blocks = 0;
  int threads = 0;                ///< of a block
  int registers = unknown;        ///< of a thread
  std::int64_t shared_bytes = 0;  ///< of a block
  int blocks_an_sm = 1;           ///< for which the registers of a multiprocessor suffice
  bool operator==(const Residency&) const = default;
};

/// Block slots, threads, registers and bytes of shared memory: of a multiprocessor, or of what takes them.
using Share = std::array<std::int64_t, 4>;
/// What a block of the launch takes.
Share share_of_block(const Residency&, const Target&);
/// What a multiprocessor has.
Share share_of_multiprocessor(const Target&);

/// Blocks of the launch that one multiprocessor holds; 0 where not even one fits.
int blocks_per_sm(const Residency&, const Target&);

/// Whether every block of every launch has a place whatever places the others took: blocks of launches that
/// end by themselves count for nothing, since they leave.
///
/// A block of `other` takes the places of at most c blocks of `one` on its multiprocessor, where c is the
/// largest of ceil(what it needs / what one needs) over threads, registers, shared memory and block slots. So
/// `one` finds a place for each of its blocks where
///   SMs * blocks_per_sm(one) - sum over others (blocks(other) * c) >= blocks(one).
bool fit_together(std::span<const Residency>, const Target&);

/// Launches that spin, of runs of which one at a time is in flight: those of one list may be there together,
/// those of two lists never are.
using Alternatives = std::vector<std::vector<Residency>>;
/// As above, whichever list of each is there.
bool fit_together(std::span<const Alternatives>, const Target&);

}  // namespace fuse::schedule
