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

/// Elements of a tile along both of its dims: each lane of a warp has `vector` of them side by side.
inline int tile_side(int vector) { return 32 * vector; }
/// Between its rows in shared memory: rows of words begin in other banks each, so that columns take them all.
inline int tile_pitch(int vector) { return tile_side(vector) + vector; }

struct Transposed {
  std::vector<ir::NodeId> nodes{};  ///< the permutes, of the results' dims
  std::size_t along = 0;            ///< the dim of the results that their operands' memory runs along
  std::size_t inner = 0;            ///< the innermost long dim of the results
};

/// Of a segment without reductions, where both dims are longer than half of the smallest tile. Of permutes
/// along several dims, those along the first one found.
std::optional<Transposed> transposed(const ir::Graph&, const Phase&);
/// Extents of the tiles that cover the results' dims: the two dims in units of a tile.
std::vector<Dim> tile_dims(const std::vector<Dim>& dims, const Transposed&, int vector);
/// Shared memory of a block.
std::int64_t tile_bytes(const ir::Graph&, const Transposed&, int vector);

}  // namespace fuse::schedule
