// Attributes of ops: one struct per kind, named by the op's row in ops.def.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <fuse/custom.hpp>
#include <fuse/dim.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/graph/op.hpp"

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

/// reductions and reverse (sorted), broadcast_in_dim, transpose
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

/// pad: elements added before and after each dim
struct PadAttr {
  std::vector<Dim> low, high;
  bool operator==(const PadAttr&) const = default;
};

/// dynamic_slice: the extents of the result
struct SizesAttr {
  std::vector<Dim> sizes;
  bool operator==(const SizesAttr&) const = default;
};

/// cumulative_sum: `exclusive` leaves out the element itself; `reverse` runs from the end
struct ScanAttr {
  std::int64_t axis = 0;
  bool exclusive = false, reverse = false;
  bool operator==(const ScanAttr&) const = default;
};

/// matmul: the last two dims of an operand are swapped
struct MatmulAttr {
  bool transpose_a = false, transpose_b = false;
  bool operator==(const MatmulAttr&) const = default;
};

/// contraction: batch and contracted dims of each operand, in pairs; the other dims are free
struct ContractionAttr {
  std::vector<std::int64_t> batch_a, batch_b, contract_a, contract_b;
  bool operator==(const ContractionAttr&) const = default;
};

/// random_uniform: draws with different streams are independent; the builder numbers them, rewrites keep the
/// number
struct RandomAttr {
  std::int64_t stream = 0;
  bool operator==(const RandomAttr&) const = default;
};

/// custom_call: the user's kernel. Two calls are equal when the text and the launch are.
struct CustomAttr {
  std::string name;    ///< the kernel's name in the text
  std::string source;  ///< the dialect: FUSE_KERNEL(n) name(global<const T> operand.., global<T> result, long
                       ///< long extent..) {..}
  std::int64_t threads = 256;
  std::int64_t shared_bytes = 0;
  Dim grid = 1;
  std::vector<Dim> extents;
  /// What the reference device runs; it is not part of the text form.
  std::shared_ptr<const CustomReference> reference;
  bool grid_barrier = false;
  /// The fallback launches, the kernel cut at its barriers: texts of NAME_0, NAME_1, ...
  std::vector<std::string> parts{};
  std::string part_name(std::size_t part) const { return name + '_' + std::to_string(part); }
  bool operator==(const CustomAttr& other) const {
    return name == other.name && source == other.source && threads == other.threads &&
           shared_bytes == other.shared_bytes && grid == other.grid && extents == other.extents &&
           grid_barrier == other.grid_barrier && parts == other.parts;
  }
};

/// dim_size
struct DimAttr {
  Dim dim;
  bool operator==(const DimAttr&) const = default;
};

using Attr = std::variant<NoAttr, NameAttr, ConstantAttr, DimsAttr, AxisAttr, SliceAttr, MatmulAttr, DimAttr,
                          PadAttr, SizesAttr, ScanAttr, ContractionAttr, RandomAttr, CustomAttr>;

/// An attribute of the op's kind, to be filled.
Attr empty_attribute(Op);

/// The names of the members of an attribute.
struct AttributeNames {
  std::vector<std::string_view> needed, optional{};
};
AttributeNames attribute_names(const Attr&);
/// "it has the attributes starts, limits and strides", for a hint.
std::string attributes_text(const Attr&);

/// Every dim expression that an attribute holds.
std::vector<Dim> dims_of(const Attr&);

}  // namespace fuse::ir
