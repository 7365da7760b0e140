// plant_fault: a kernel with one thing wrong, to see that the checked device or the oracle finds it.
//
// Before:  for c in [lane, 1024) by 32 { .. }  store shared[warp]  barrier block  load shared[lane]
// After:   barrier.0: without the barrier   extent.0+1: for c in [lane, 1025)
//
// Runs after all passes and checks: its result goes through none of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/kernel.hpp"

namespace fuse::kernel {

/// Sites are numbered by kind, through all kernels of a source.
struct PlantedFault {
  enum class Kind : std::uint8_t {
    barrier,  ///< a barrier of a block, of the grid or of a cluster is left out
    extent,   ///< the end of a serial loop, or the bound of a condition, is off by one
    overlap,  ///< two arrays of a block's shared memory, or of a thread, begin at one location
    fence,    ///< at a barrier of blocks only the threads of each block wait for each other
  };
  Kind kind = Kind::barrier;
  std::size_t site = 0;
  int by = 0;  ///< extent: 1 or -1
  bool operator==(const PlantedFault&) const = default;
};

/// "barrier.3", "extent.12+1", "extent.12-1", "overlap.0", "fence.0".
std::string to_string(const PlantedFault&);
std::optional<PlantedFault> parse_fault(std::string_view);

struct FaultSite {
  PlantedFault fault{};
  std::size_t kernel = 0;
  std::string what{};  ///< "while row < 1024", "h7 over h16"
};
/// Every fault that can be planted, by kind. Left out is what changes nothing: a bound that an enclosing one
/// implies or that ends a loop whose further elements are skipped, and arrays that are never in use together.
std::vector<FaultSite> fault_sites(const std::vector<Kernel>&);
/// False where there is no such site.
bool plant_fault(std::vector<Kernel>&, const PlantedFault&);

}  // namespace fuse::kernel
