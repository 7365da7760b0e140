// Random valid graphs, driven by the op table: which op on which dtype is legal is asked of infer_type, what
// an op needs of its operands follows from its row, and only attributes have a maker of their own. A graph is
// evaluated while it grows: an op whose result is NaN, infinite or mostly undecided is tried on other
// operands, then dropped, unless the program is one of special values. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "fuzz/grow/generated_program.hpp"

namespace fuse::fuzz {

/// The same case for the same seed, always. With `floats`, ops are made of that floating dtype alone (what
/// they ask for besides may be of another).
/// With `shapes`, extents are symbols wherever they can be, and it runs for up to so many values of them.
Case generate(std::uint64_t seed, std::optional<DType> floats = std::nullopt, int shapes = 0);

/// Such a case whose kernels have versions, as the chooser would have them.
Case generate_dynamic(std::uint64_t seed, int shapes = 5);

/// The dtype by which coverage counts a node: of the operand where it decides (element-wise ops, reductions,
/// contractions), else of the result.
DType counted_dtype(const ir::Graph&, const ir::Node&);
/// Whether an op may be made with that counted dtype.
bool is_legal(ir::Op, DType);

inline const std::vector<DType>& dtypes() {
  static const std::vector<DType> all = {
#define FUSE_DTYPE(name, ...) DType::name,
#include <fuse/dtypes.def>
  };
  return all;
}

}  // namespace fuse::fuzz
