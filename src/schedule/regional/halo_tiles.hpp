// Halo tiles: element-wise phases of which each reads windows of those before it. A block has a tile of the
// last phase's elements. Of each earlier phase it computes what that tile needs: a tile, and a margin around
// it, the halo, which blocks of neighbouring tiles compute, too. It passes them on in its shared memory
// (AStitch's regional scheme, 3.2.1, for values that no slice goes through).
//
// Before:  a = exp(x)    y[i] = a[i - 1] + a[i] + a[i + 1], and 0 outside
// After:   in tiles of 256: 258 elements of a from 256 t - 1 on, a block barrier, 256 elements of y
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/segments/segment.hpp"

namespace fuse::schedule {

/// The positions along a dim that are needed of a value for position 0 of the last phase.
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

/// None where a phase reduces, scans or writes in place, where another than the last stores a value that
/// leaves the block (`results` are the kernel's), or where a phase reads another through anything but
/// element-wise ops, slices with stride 1, pads and concats whose offsets are numbers.
std::optional<HaloTiles> halo_tiles(const ir::Graph&, const std::vector<Phase>&,
                                    const std::vector<ir::NodeId>& results);

/// The elements of a tile and its halo along each dim.
std::vector<std::int64_t> extents_of(const Windows&, const std::vector<int>& tile);
/// The tiles along each dim.
std::vector<Dim> tile_counts(const std::vector<Dim>& dims, const std::vector<int>& tile);

}  // namespace fuse::schedule
