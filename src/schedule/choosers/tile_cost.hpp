// What a kernel of halo tiles costs, for one tile after another. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/regional/halo_tiles.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

class TileCost {
 public:
  TileCost(const ir::Graph&, const Segment&, HaloTiles, const Target&);

  /// The shared memory of a block.
  std::int64_t shared_bytes(const std::vector<int>& tile) const;
  /// Whether its blocks compute little again: at most a tenth more costly ops, and twice all ops, than if
  /// they were given the halos. The model's times are not exact enough to spend more.
  bool repeats_little(const std::vector<int>& tile) const;
  double seconds(const std::vector<int>& tile, int threads) const;
  const HaloTiles& tiles() const { return tiles_; }

 private:
  struct Input {
    double bytes = 0, of_element = 0;
  };
  /// What does not depend on the tile.
  struct Load {
    std::vector<Input> inputs{};  // what it reads from memory
    std::int64_t passed_on = 0;   // bytes per element of what stays in the block
    double elements = 0;          // of the whole value
    double instructions = 0;      // per element
    double costly = 0;            // the costly ones of the ops
  };

  const HaloTiles tiles_;
  const Target& target_;
  double results_ = 0;  // bytes
  std::vector<Load> loads_{};
};

}  // namespace fuse::schedule
