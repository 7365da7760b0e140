// How often a warp runs each loop and each condition of a kernel, by its kernel IR and the dims, and which
// lines of the CUDA text they are. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/executable.hpp>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/kernel.hpp"

namespace fuse::bench::sass {

/// The kernel itself, a serial loop, or a condition.
struct Region {
  enum class Kind : std::uint8_t { kernel, loop, condition };
  Kind kind = Kind::kernel;
  std::size_t parent = 0;
  int first_line = 0, last_line = 0;  ///< of the text, from its `for` or `if` to its `}`
  bool unrolled = false;              ///< a loop that the text asks to unroll
  // Means over the warps of the launch.
  double entries = 0;                    ///< that a warp comes to it
  double runs = 0;                       ///< that a warp runs its body
  std::map<std::int64_t, double> trips;  ///< of a loop: by the number of trips, how many entries have it
};

/// Of a buffer: bytes of a thread, the mean over the warps of the launch, and the regions that have the
/// accesses. A warp counts as a whole where one of its lanes runs.
struct Accessed {
  double loaded = 0, stored = 0;
  std::set<std::size_t> loaded_in{}, stored_in{};
};

/// regions[0] is the kernel; outer ones stand before inner ones.
struct Executions {
  std::vector<Region> regions;
  std::vector<Accessed> accessed;  ///< of each global buffer, in the order of the parameters
  std::int64_t warps = 0;          ///< of the launch

  /// The innermost region of a line; 0 for lines outside of the kernel.
  std::size_t region_of(int line) const;
  bool inside(std::size_t region, std::size_t outer) const;  ///< or the same
};

/// `text`: of the kernel, whose first line is `first_line`; `extents`: the values of its symbols. Throws
/// std::runtime_error where text and kernel IR differ in their loops and conditions.
Executions executions_of(const kernel::Kernel&, std::string_view text, int first_line,
                         const DimValues& extents, std::int64_t grid);

}  // namespace fuse::bench::sass
