// Nest: the loops of a launch as one ordered list of splits. Strides, thread numbers and the order of loops
// are read off the list.
//
//   r:grid r:warp8 c:serial c:lane32 c:vector4
//
// Here rows r are spread over blocks of 8 warps; a warp walks the elements c of its row, 32 lanes side by
// side, 4 elements per lane.
//
// An earlier split of a dim has the larger stride. A later split of a level is the faster part of the number.
// Serial splits are loops of a thread, in the order of the list. docs/nests.md says more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/dim.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fuse::schedule {

/// Where the units of a split are.
enum class Level : std::uint8_t {
  grid,     ///< blocks, or clusters where there are any
  cluster,  ///< blocks within a cluster
  warp,     ///< warps within a block
  lane,     ///< threads within a warp
  serial,   ///< iterations of a loop in a thread
  vector,   ///< elements that a thread takes side by side
};
std::string_view to_string(Level);
/// The names of all levels, in the order of `Level`.
std::vector<std::string> level_names();

struct Split {
  char dim = 'r';
  Level level = Level::grid;
  std::int64_t extent = 0;  ///< units; 0: as many as the other splits of the dim leave
  bool operator==(const Split&) const = default;
};

struct Nest {
  struct LoopDim {
    char name = 'r';
    Dim extent{};
    bool operator==(const LoopDim&) const = default;
  };
  std::vector<LoopDim> dims{};
  std::vector<Split> splits{};
  bool operator==(const Nest&) const = default;
};

/// "r:grid r:warp8 c:serial c:lane32"; a split of all that is left has no number.
std::string to_string(const Split&);
std::string to_string(const std::vector<Split>&);
std::string to_string(const Nest&);
/// Reads back what `to_string` writes; none where the text is not a list of splits.
std::optional<std::vector<Split>> parse_splits(std::string_view text);
/// The list without splits of one unit, which split nothing.
std::vector<Split> without_ones(std::vector<Split>);
/// The dim in which neighbouring lanes have neighbours: that of the last split of lanes.
char fastest_lane(const std::vector<Split>&);
/// The units of a dim's splits at a level, among those that have a number.
std::int64_t units_of(const std::vector<Split>&, char dim, Level);
/// The units of all splits at a level: blocks, warps per block, iterations of all loops.
Dim units(const Nest&, Level);
/// The elements of its dim from one unit of splits[i] to the next.
Dim stride(const Nest&, std::size_t i);
/// For a nest whose blocks take the first dim in turns (r:serial r:grid5), the nest with one block per turn.
Nest without_turns(Nest);
/// The position in a list of a split with its dim and level, from the outermost on; none: no list has one.
/// Lanes of both dims share a position, in any order.
std::optional<int> order_of(const Split&);
/// Why no kernel can have it; empty if one can.
std::string defect_of(const Nest&);

}  // namespace fuse::schedule
