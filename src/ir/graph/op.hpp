// Op, and what the table says about each: queried by trait and relation, never by lists of names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/dtype.hpp>
#include <optional>
#include <string_view>

namespace fuse::ir {

enum class Op : std::uint8_t {
#define FUSE_ELEMENTWISE(name, arity, operands, result, ulp, traits, cuda, note) name,
#define FUSE_REDUCTION(name, operands, identity, combine, note) name,
#define FUSE_OP(name, arity, attribute, relation, traits, note) name,
#include <fuse/ops.def>
};

inline constexpr int op_count = 0
#define FUSE_ELEMENTWISE(name, arity, operands, result, ulp, traits, cuda, note) +1
#define FUSE_REDUCTION(name, operands, identity, combine, note) +1
#define FUSE_OP(name, arity, attribute, relation, traits, note) +1
#include <fuse/ops.def>
    ;

/// How an element of the result depends on elements of an operand (APOLLO, definitions 1-4, refined).
enum class Relation : std::uint8_t {
  none,           ///< no operands
  identity,       ///< the element at the same coordinates
  broadcast,      ///< one element, used by many
  expand,         ///< the element at the same coordinates, or one used by many, as the dims say
  reduce,         ///< many elements along `dims`
  permute,        ///< one element, coordinates permuted
  reshape,        ///< one element, coordinates of the flattened index
  slice,          ///< one element, coordinates shifted and scaled
  concat,         ///< one element of one of the operands
  reverse,        ///< one element, coordinates counted from the end
  pad,            ///< one element, coordinates shifted, or the scalar outside
  gather,         ///< one element whose coordinate is data
  dynamic_slice,  ///< one element, coordinates shifted by data
  update,         ///< one element of one of the first two operands, chosen by data
  scan,           ///< the elements before it along one dim
  contraction,    ///< a row and a column
  random,         ///< the scalars, and its own position
  custom,         ///< unknown
};

enum class Trait : std::uint8_t {
  none = 0,
  costly = 1,
  commutative = 2,
  source = 4,
  movement = 8,
  pairs = 16,
  commutative_pairs = commutative | pairs
};

enum class OperandClass : std::uint8_t { number, real, integer, logical, equality };
/// Half types are converted before they meet an op of the table.
constexpr bool takes(OperandClass operands, DType dtype) {
  switch (operands) {
    case OperandClass::number:
      return is_integer(dtype) || (is_floating(dtype) && !is_half(dtype));
    case OperandClass::real:
      return is_floating(dtype) && !is_half(dtype);
    case OperandClass::integer:
      return is_integer(dtype);
    case OperandClass::logical:
      return dtype == DType::boolean;
    case OperandClass::equality:
      return !is_half(dtype);
  }
  return false;
}

enum class ResultClass : std::uint8_t { same, boolean };
/// The value a reduction starts from; `none`: its state is a pair (value, index).
enum class Identity : std::uint8_t { zero, one, lowest, highest, none };

/// One row of the table.
struct OpInfo {
  Op op;
  std::string_view name;
  int arity;  ///< -1: one or more
  Relation relation;
  Trait traits;
  bool elementwise = false;                        ///< a FUSE_ELEMENTWISE row
  OperandClass operands = OperandClass::equality;  ///< element-wise rows and reductions
  ResultClass result = ResultClass::same;          ///< element-wise rows
  int ulp = 0;                                     ///< element-wise rows
  std::string_view cuda{};                         ///< element-wise rows
  Identity identity = Identity::none;              ///< reductions
  Op combine = Op{};                               ///< reductions
  std::string_view note{};

  bool has(Trait trait) const { return (static_cast<unsigned>(traits) & static_cast<unsigned>(trait)) != 0; }
};

const OpInfo& info(Op op);
std::optional<Op> parse_op(std::string_view name);
inline std::string_view to_string(Op op) { return info(op).name; }

}  // namespace fuse::ir
