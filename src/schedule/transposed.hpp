// Transposes inside element-wise kernels: values whose memory lies along another dim than the results'.
// Threads that walk the innermost dim of the results would read them a stride apart; a block that has a tile
// of both dims reads them along their own, and passes them on through shared memory (Mapping::tile).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.hpp"
#include "schedule/partition.hpp"

namespace fuse::schedule {

inline constexpr int tile_side = 32;  ///< elements of a tile, along both of its dims
inline constexpr int tile_pitch =
    tile_side + 1;  ///< between its rows in shared memory, so that columns take all banks

struct Transposed {
  std::vector<ir::NodeId> nodes{};  ///< the permutes, of the results' dims
  std::size_t along = 0;            ///< the dim of the results that their operands' memory runs along
  std::size_t inner = 0;            ///< the innermost long dim of the results
};

/// Of a piece without reductions, where both dims are longer than half a tile. Of permutes along several
/// dims, those along the first one found.
std::optional<Transposed> transposed(const ir::Graph&, const Segment&);
/// Extents of the tiles that cover the results' dims: the two dims in units of a tile.
std::vector<Dim> tile_dims(const std::vector<Dim>& dims, const Transposed&);
/// Shared memory of a block.
std::int64_t tile_bytes(const ir::Graph&, const Transposed&);

}  // namespace fuse::schedule
