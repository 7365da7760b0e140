// Transposes inside element-wise kernels: values whose memory lies along another dim than the results'.
// Threads that walk the innermost dim of the results would read them a stride apart; a block that has a tile
// of both dims reads them along their own, and passes them on through shared memory (nest_of_tiles).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/segments/segment.hpp"

namespace fuse::schedule {

/// The elements of a tile along each of its dims: a lane of a warp has `vector` of them side by side.
inline int tile_side(int vector) { return 32 * vector; }
/// The distance of its rows in shared memory: each row of words begins in another bank, so that columns use
/// all.
inline int tile_pitch(int vector) { return tile_side(vector) + vector; }

struct Transposed {
  std::vector<ir::NodeId> nodes{};  ///< the permutes, which have the results' dims
  std::size_t along = 0;            ///< the dim of the results that their operands' memory runs along
  std::size_t inner = 0;            ///< the innermost long dim of the results
};

/// The permutes of a phase without reductions, where both dims are longer than half of the smallest tile.
/// Where they run along several dims, it takes those along the first one found.
std::optional<Transposed> transposed(const ir::Graph&, const Phase&);
/// The extents of the tiles that cover the results' dims: the two dims are in units of a tile.
std::vector<Dim> tile_dims(const std::vector<Dim>& dims, const Transposed&, int vector);
/// The shared memory per block.
std::int64_t tile_bytes(const ir::Graph&, const Transposed&, int vector);

}  // namespace fuse::schedule
