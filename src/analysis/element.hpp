// Element-level dependency: how elements of a result depend on elements of an operand, dim by dim and as
// index maps, and the op classes that follow (APOLLO, section 3.3). See docs/dependency.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "analysis/index_map.hpp"

namespace fuse::analysis {

/// What one dim of the aligned iteration space says: f_l of the paper's relation (2), e_i and e_o its trips.
enum class DimMapping : std::uint8_t {
  bijective,   ///< e_i = e_o and the identity
  injective,   ///< e_i = 1, e_o != 1: repeated along the dim
  surjective,  ///< e_i != 1, e_o = 1: all of the dim goes into one
  general,     ///< anything else: permuted, shifted, part of the dim, chosen by data
};

/// The paper's classes; those it calls opaque are distinguished.
enum class OpClass : std::uint8_t {
  source,        ///< no operands
  element_wise,  ///< definition 1
  broadcast,     ///< definition 2
  reduction,     ///< definition 3
  transpose,     ///< a permutation of the dims
  view,          ///< the same elements in row-major order
  contraction,   ///< a sum of products of two operands
  opaque,        ///< definition 4
};

/// A dim of the aligned iteration space. Where an operand or a result has no such dim its number is -1 and
/// its extent 1.
struct AlignedDim {
  int operand = -1, result = -1;
  Dim operand_extent = 1, result_extent = 1;
  DimMapping relation = DimMapping::bijective;
};

struct ElementRelation {
  std::optional<IndexMap> map{};   ///< none where the operand's value is not used
  std::vector<AlignedDim> dims{};  ///< none where there is no map

  bool has(DimMapping) const;
  /// General in the paper's sense: a dim is general, or what is read is unknown, or the coordinates are part
  /// of the value.
  bool general() const;
};

/// The relation of a node with one of its operands.
ElementRelation element_relation(const ir::Graph&, ir::NodeId node, std::size_t operand);

/// The class by definitions 1 to 4. It says how elements depend, not what can be emitted: a reduction of a
/// dim of extent 1 is element-wise, as is a transposition that only moves such dims.
OpClass op_class(const ir::Graph&, ir::NodeId);

std::string_view to_string(DimMapping);
std::string_view to_string(OpClass);
/// "bijective (0 -> 0), surjective (1 -> -); (i0) -> (i0, k0) for k0 in [0, 8)"
std::string to_string(const ElementRelation&);

}  // namespace fuse::analysis
