// The control flow of a function of SASS: basic blocks, what dominates what, natural loops.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sass_table/sass/disassembly.hpp"

namespace fuse::bench::sass {

constexpr std::size_t no_loop = ~std::size_t{0};

struct Block {
  std::size_t first = 0, last = 0;  ///< instructions [first, last)
  std::vector<std::size_t> next{}, before{};
  std::string callee{};        ///< of a CALL, which ends the block
  bool slow = false;           ///< is on no path but those of slow routines
  std::string routine{};       ///< of a slow block: which; empty: nothing leads to it at all
  std::size_t loop = no_loop;  ///< the innermost
  std::size_t group = 0;       ///< runs exactly as often as the other blocks of the group
};

struct Loop {
  std::size_t header = 0;
  std::vector<std::size_t> blocks;   ///< inner loops' too
  std::vector<std::size_t> latches;  ///< blocks that jump back
  std::size_t parent = no_loop;      ///< an index into Flow::loops
};

struct Flow {
  std::vector<Block> blocks;  ///< in the order of the code; 0 is the entry
  std::vector<Loop> loops;    ///< outer ones before inner ones
  /// Of each block that is not slow: the nearest that every path to it passes; of 0: itself.
  std::vector<std::size_t> dominator;
  std::size_t groups = 0;

  bool inside(std::size_t loop, std::size_t outer) const;  ///< or the same; no_loop has all inside
};

/// The routine of blocks that only a warp with threads at different instructions runs.
inline constexpr const char* diverged_warps = "what a diverged warp does";

/// Whether a function of this name is what a rare operand takes: "..._slowpath", "power_slow".
bool is_slow_name(const std::string& name);

/// Throws std::runtime_error for control flow that it does not understand.
Flow flow_of(const Function&);

}  // namespace fuse::bench::sass
