// Residency: what a kernel occupies of a device while it runs, and which cooperative kernels may run
// concurrently (AStitch, 3.2.3; brief: barrier-safe concurrency). SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "target/target.hpp"

namespace fuse::schedule {

/// The residency of one launch. Registers that are not counted yet are taken to be the most that the kernel's
/// bounds allow.
struct Residency {
  static constexpr int unknown = 0;
  std::int64_t blocks = 0;
  int threads = 0;                ///< threads per block
  int registers = unknown;        ///< registers per thread
  std::int64_t shared_bytes = 0;  ///< shared memory per block
  int blocks_per_sm = 1;          ///< blocks that the registers of a multiprocessor suffice for
  int counted = unknown;          ///< blocks that a multiprocessor holds by the device's own count
  bool operator==(const Residency&) const = default;
};

/// A multiprocessor has subpartitions, each with a part of its registers and of its warp slots. A warp of a
/// block lies in any subpartition that has room for it.
constexpr int subpartitions_per_sm = 4;
struct SubPartition {
  std::int64_t warps = 0;
  std::int64_t registers = 0;
  /// The number of warps with so many registers each that it holds.
  std::int64_t warps_of(std::int64_t registers_each) const;
};
SubPartition subpartition_of(const Target&);

/// What a block of a launch takes of a multiprocessor, besides one of its block slots.
struct Share {
  int warps = 0;
  std::int64_t registers = 0;  ///< registers per warp
  std::int64_t shared = 0;     ///< bytes
};
Share share_of_block(const Residency&, const Target&);

/// The blocks of the launch that one multiprocessor holds, as NVIDIA's cuda_occupancy.h counts them, and no
/// more than the device has counted; 0 where not even one fits.
int blocks_per_sm(const Residency&, const Target&);

/// Whether every block of every launch finds a slot, whatever slots the others took. Blocks of launches that
/// are not cooperative do not count, since they end by themselves.
///
/// Let a multiprocessor hold b blocks of `one`. A block of one may be taken to need more than it does: an
/// equal part of what b of its blocks leave over, since b of them fit as before. A block of `other` then
/// takes the slots of at most c blocks of one on its multiprocessor, where c is the larger of
///   ceil(warps of other * ceil(registers of its warp / registers of one's warp) / warps of one) and
///   ceil(shared bytes of other / shared bytes of one).
/// So `one` finds a slot for each of its blocks where
///   SMs * b - sum over others (blocks(other) * c) >= blocks(one).
bool fit_together(std::span<const Residency>, const Target&);

/// Cooperative launches of runs of which only one is in flight at a time: those of one list may be resident
/// together, those of two lists never are.
using Alternatives = std::vector<std::vector<Residency>>;
/// The same, whichever list of each is resident.
bool fit_together(std::span<const Alternatives>, const Target&);

}  // namespace fuse::schedule
