// Attributes of ops: one struct a kind, named by the op's row in ops.def.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <fuse/dim.hpp>
#include <string>
#include <variant>
#include <vector>

namespace fuse::ir {

struct NoAttr {
  bool operator==(const NoAttr&) const = default;
};

/// input, parameter
struct NameAttr {
  std::string name;
  bool operator==(const NameAttr&) const = default;
};

/// constant: `real` for floating types (already rounded to the type), `integer` for the others (bool: 0 or
/// 1).
struct ConstantAttr {
  double real = 0;
  std::int64_t integer = 0;
  /// By bits: -0 differs from 0 and a NaN equals itself, so CSE neither merges nor splits wrongly.
  bool operator==(const ConstantAttr& other) const {
    return std::bit_cast<std::uint64_t>(real) == std::bit_cast<std::uint64_t>(other.real) &&
           integer == other.integer;
  }
};

/// reductions (sorted), broadcast_in_dim, transpose
struct DimsAttr {
  std::vector<std::int64_t> dims;
  bool operator==(const DimsAttr&) const = default;
};

/// iota, concat, gather
struct AxisAttr {
  std::int64_t axis = 0;
  bool operator==(const AxisAttr&) const = default;
};

/// slice: elements starts[i], starts[i] + strides[i], ... below limits[i]
struct SliceAttr {
  std::vector<Dim> starts, limits;
  std::vector<std::int64_t> strides;
  bool operator==(const SliceAttr&) const = default;
};

/// matmul: the last two dims of an operand are swapped
struct MatmulAttr {
  bool transpose_a = false, transpose_b = false;
  bool operator==(const MatmulAttr&) const = default;
};

/// dim_size
struct DimAttr {
  Dim dim;
  bool operator==(const DimAttr&) const = default;
};

using Attr = std::variant<NoAttr, NameAttr, ConstantAttr, DimsAttr, AxisAttr, SliceAttr, MatmulAttr, DimAttr>;

}  // namespace fuse::ir
