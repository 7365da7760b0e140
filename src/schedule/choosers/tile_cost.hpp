// What a kernel of halo tiles costs, for one tile after another. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/regional/halo_tiles.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

/// Of one segment, for as many tiles as are asked for. Keeps a reference to the target.
class TileCost {
 public:
  TileCost(const ir::Graph&, const Segment&, HaloTiles, const Target&);

  /// The bytes of shared memory of a block.
  std::int64_t shared_bytes(const std::vector<int>& tile) const;
  /// Whether blocks compute little again: at most a tenth more costly ops, and twice as many instructions, as
  /// the tile takes without its halos. A costly op counts as 8 instructions, another as 2; the model's times
  /// are not exact enough to spend more. Choosers ask this; choices of decisions may repeat more.
  bool repeats_little(const std::vector<int>& tile) const;
  /// The seconds of the kernel. All arithmetic counts, though none does for the phases as kernels of their
  /// own; what the first phase's windows read of its inputs again does not.
  double seconds(const std::vector<int>& tile, int threads) const;
  const HaloTiles& tiles() const { return tiles_; }

 private:
  struct Input {
    double bytes = 0;       // of the whole input
    double of_element = 0;  // bytes of an element
  };
  /// What does not depend on the tile.
  struct Load {
    std::vector<Input> inputs{};  // what it reads from memory
    std::int64_t passed_on = 0;   // bytes per element of what stays in the block
    double elements = 0;          // of the whole value
    double instructions = 0;      // per element
    double costly = 0;            // costly ops per element
  };

  const HaloTiles tiles_;
  const Target& target_;
  double results_ = 0;         // bytes
  std::size_t innermost_ = 0;  // the innermost dim that is longer than 1
  std::vector<Load> loads_{};
};

}  // namespace fuse::schedule
