// Residency: what of a device a kernel holds while it runs, and which kernels that wait for their own blocks
// may run beside each other (AStitch, 3.2.3; brief: barrier-safe concurrency).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "target/target.hpp"

namespace fuse::schedule {

/// Of one launch. Registers that nobody counted yet are taken to be the most that the kernel's bounds allow.
struct Residency {
  static constexpr int unknown = 0;
  std::int64_t blocks = 0;
  int threads = 0;                ///< of a block
  int registers = unknown;        ///< of a thread
  std::int64_t shared_bytes = 0;  ///< of a block
  int blocks_per_sm = 1;          ///< for which the registers of a multiprocessor suffice
  int counted = unknown;          ///< blocks that a multiprocessor holds by the device's own count
  bool operator==(const Residency&) const = default;
};

/// A multiprocessor has subpartitions, each with a part of its registers and of its places for warps. A warp
/// of a block lies in any subpartition that has room for it.
constexpr int subpartitions_per_sm = 4;
struct SubPartition {
  std::int64_t warps = 0;
  std::int64_t registers = 0;
  /// How many warps it holds that have so many registers each.
  std::int64_t warps_of(std::int64_t registers_each) const;
};
SubPartition subpartition_of(const Target&);

/// What a block of a launch takes of a multiprocessor, beside one of its block slots.
struct Share {
  int warps = 0;
  std::int64_t registers = 0;  ///< of each warp
  std::int64_t shared = 0;     ///< bytes
};
Share share_of_block(const Residency&, const Target&);

/// Blocks of the launch that one multiprocessor holds, as NVIDIA's cuda_occupancy.h counts them, and no more
/// than the device has counted; 0 where not even one fits.
int blocks_per_sm(const Residency&, const Target&);

/// Whether every block of every launch has a place whatever places the others took: blocks of launches that
/// end by themselves count for nothing, since they leave.
///
/// Let a multiprocessor hold b blocks of `one`. One may be taken to need more than it does: an equal part of
/// what b of its blocks leave over, since b of them fit as before. A block of `other` then takes the places
/// of at most c blocks of one on its multiprocessor, where c is the larger of
///   ceil(warps of other * ceil(registers of its warp / registers of one's warp) / warps of one) and
///   ceil(shared bytes of other / shared bytes of one).
/// So `one` finds a place for each of its blocks where
///   SMs * b - sum over others (blocks(other) * c) >= blocks(one).
bool fit_together(std::span<const Residency>, const Target&);

/// Launches that spin, of runs of which one at a time is in flight: those of one list may be there together,
/// those of two lists never are.
using Alternatives = std::vector<std::vector<Residency>>;
/// As above, whichever list of each is there.
bool fit_together(std::span<const Alternatives>, const Target&);

}  // namespace fuse::schedule
