// The parts of the prelude of the cpu device's kernels, in the order in which they are emitted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace fuse::codegen {

extern const std::string_view cpu_parts;       ///< parts of a warp: vectors of the machine
extern const std::string_view cpu_wide_parts;  ///< parts of 8-byte types: pairs of vectors
extern const std::string_view cpu_lanes;       ///< 32 lanes of a type, masks, operators
extern const std::string_view cpu_indices;     ///< indices that differ by lane
extern const std::string_view cpu_memory;      ///< loads and stores
extern const std::string_view cpu_functions;   ///< the functions of the op table, and conversions
extern const std::string_view cpu_exchanges;   ///< exchanges between the lanes of a warp

}  // namespace fuse::codegen
