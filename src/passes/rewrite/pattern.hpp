// Pattern: a small expression over ops of the table that a node of a graph may match. Written as algebra:
//
//   const Pattern x = Pattern::value(0);
//   x * 1,  -x * -y,  select(!x, y, z),  transpose(transpose(x))
//
// The functions come from ops.def, so a pattern names an op as a graph does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir::algebra {

struct Pattern {
  enum class Kind : std::uint8_t {
    value,     ///< any value; the same one wherever the pattern repeats it
    constant,  ///< any constant (one value in every element)
    literal,   ///< the constant that has this value in its own type, bit for bit
    rest,      ///< the last operand: however many are left
    op,
  };
  Kind kind = Kind::rest;
  std::size_t slot = 0;  ///< value, constant: its position in Match::bound
  double literal = 0;
  Op op{};
  std::vector<Pattern> operands{};

  static constexpr std::size_t values = 4, slots = 6;
  static Pattern value(std::size_t i) { return {.kind = Kind::value, .slot = i}; }
  static Pattern constant(std::size_t i) { return {.kind = Kind::constant, .slot = values + i}; }
  static Pattern number(double v) { return {.kind = Kind::literal, .literal = v}; }
  static Pattern rest() { return {.kind = Kind::rest}; }
  static Pattern make(Op op, std::vector<Pattern> operands) {
    return {.kind = Kind::op, .op = op, .operands = std::move(operands)};
  }

  friend Pattern operator-(const Pattern& a) { return make(Op::neg, {a}); }
  friend Pattern operator!(const Pattern& a) { return make(Op::logical_not, {a}); }
  friend Pattern operator~(const Pattern& a) { return make(Op::bit_not, {a}); }
};

/// What an operator takes beside a pattern: another, or a number.
inline Pattern pattern(const Pattern& p) { return p; }
template <class T>
requires std::is_arithmetic_v<T> Pattern pattern(T number) {
  return Pattern::number(static_cast<double>(number));
}
template <class T>
inline constexpr bool is_operand = std::same_as<T, Pattern> || std::is_arithmetic_v<T>;
template <class A, class B>
inline constexpr bool are_operands = is_operand<A>&& is_operand<B> &&
                                     (std::same_as<A, Pattern> || std::same_as<B, Pattern>);

#define FUSE_PATTERN_OPERATOR(symbol, name)                                 \
  template <class A, class B, class = std::enable_if_t<are_operands<A, B>>> \
  Pattern operator symbol(const A& a, const B& b) {                         \
    return Pattern::make(Op::name, {pattern(a), pattern(b)});               \
  }
FUSE_PATTERN_OPERATOR(+, add)
FUSE_PATTERN_OPERATOR(-, sub)
FUSE_PATTERN_OPERATOR(*, mul)
FUSE_PATTERN_OPERATOR(/, div)
FUSE_PATTERN_OPERATOR(%, rem)
FUSE_PATTERN_OPERATOR(&, bit_and)
FUSE_PATTERN_OPERATOR(|, bit_or)
FUSE_PATTERN_OPERATOR(^, bit_xor)
FUSE_PATTERN_OPERATOR(&&, logical_and)
FUSE_PATTERN_OPERATOR(||, logical_or)
FUSE_PATTERN_OPERATOR(==, eq)
FUSE_PATTERN_OPERATOR(!=, ne)
FUSE_PATTERN_OPERATOR(<, lt)
FUSE_PATTERN_OPERATOR(<=, le)
FUSE_PATTERN_OPERATOR(>, gt)
FUSE_PATTERN_OPERATOR(>=, ge)
#undef FUSE_PATTERN_OPERATOR

#define FUSE_PATTERN_FUNCTION(name)                         \
  template <class... P>                                     \
  Pattern name(const P&... operands) {                      \
    return Pattern::make(Op::name, {pattern(operands)...}); \
  }
#define FUSE_ELEMENTWISE(name, arity, operands, result, ulp, traits, cuda, note) FUSE_PATTERN_FUNCTION(name)
#define FUSE_REDUCTION(name, operands, identity, combine, note) FUSE_PATTERN_FUNCTION(name)
#define FUSE_OP(name, arity, attribute, relation, traits, note) FUSE_PATTERN_FUNCTION(name)
#include <fuse/ops.def>
#undef FUSE_PATTERN_FUNCTION

/// "x * 1", "select(!x, y, z)": values are x y z w, constants c d.
std::string to_string(const Pattern&);

/// What matched a pattern.
struct Match {
  static constexpr NodeId unbound = ~NodeId{0};
  static constexpr std::size_t max_ops = 6;

  const Graph& graph;
  const std::vector<std::uint32_t>& uses;  ///< for each node of the graph, its uses as far as they are known
  std::array<NodeId, Pattern::slots> bound{};
  std::array<const Node*, max_ops> ops{};  ///< nodes that matched ops of the pattern: the root, then in order
  std::array<NodeId, max_ops> ids{};       ///< their ids; the root has none
  std::size_t op_count = 0;

  const Node& root() const { return *ops[0]; }
  const Node& op(std::size_t i) const { return *ops[i]; }
  const Node& value(std::size_t i) const { return graph[bound[i]]; }
  const ConstantAttr& constant(std::size_t i) const {
    return ir::attr<ConstantAttr>(graph[bound[Pattern::values + i]]);
  }
  /// The type of the root's first operand: what the root computes in.
  const Type& operand() const { return graph[root().operands[0]].type; }
  /// Nothing but the node that is rewritten uses the i-th op.
  bool only_use(std::size_t i) const { return uses[ids[i]] <= 1; }
};

/// Matches a node whose operands are of the graph, itself not yet in it. Operands of commutative ops match in
/// either order.
std::optional<Match> match(const Pattern&, const Graph&, const std::vector<std::uint32_t>& uses, const Node&);

/// What a number is as an element of a dtype: 1, 1.0 or true; wrapped for integers, of which none is
/// infinite.
std::optional<ConstantAttr> literal_of(double number, DType dtype);

}  // namespace fuse::ir::algebra
