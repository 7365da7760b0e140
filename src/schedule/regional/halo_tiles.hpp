// Halo tiles: element-wise phases of which each reads windows of those before it. A block has a tile of the
// last phase's elements. Of each earlier phase it computes what that tile needs: a tile, and a margin around
// it, the halo, which lies in its neighbours' tiles, so that they compute it, too. It passes them on in its
// shared memory (AStitch's regional scheme, 3.2.1).
//
// Before:  kernel a = pad(blur(x))    kernel y = blur(a), which reads 4 neighbours in a
// After:   one kernel, in tiles of 8 x 32: 10 x 34 elements of a, a block barrier, 8 x 32 elements of y
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/segments/segment.hpp"

namespace fuse::schedule {

/// The positions along a dim that are needed of a value for position 0 of the last phase, from the first to
/// the last. A tile of t elements needs t + high - low.
struct Window {
  std::int64_t low = 0, high = 0;
  bool operator==(const Window&) const = default;
};
/// One for each dim.
using Windows = std::vector<Window>;

struct HaloTiles {
  std::vector<Dim> dims{};        ///< those of the last phase's loops
  std::vector<Windows> phases{};  ///< what is needed of each phase's values
};

/// `results`: what the kernel stores in memory, ascending. There is none
/// - for a single phase, and where the last one has no dims;
/// - where a phase reduces, scans, writes in place or has another rank;
/// - where a phase before the last stores a result in memory, or makes what no later one reads;
/// - where a phase reads another through anything but element-wise ops, slices with stride 1, pads and
/// concats
///   whose offsets are numbers, or 4096 positions or more away.
/// To let a reduction be a phase, begin with is_element_wise and Needs::through here; then come
/// make_regional, the lowering of tiles (elementwise_loops.cpp) and TileCost.
std::optional<HaloTiles> halo_tiles(const ir::Graph&, const std::vector<Phase>&,
                                    const std::vector<ir::NodeId>& results);

/// The elements of a tile with its halo along each dim.
std::vector<std::int64_t> extents_of(const Windows&, const std::vector<int>& tile);
/// The tiles along each dim, the last of which may be a part of one.
std::vector<Dim> tile_counts(const std::vector<Dim>& dims, const std::vector<int>& tile);

}  // namespace fuse::schedule
