// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/pattern.hpp"

#include <fmt/format.h>

#include <cmath>

namespace fuse::ir::algebra {
namespace {

using Kind = Pattern::Kind;

int commutative_ops(const Pattern& pattern) {
  int count = pattern.kind == Kind::op && info(pattern.op).has(Trait::commutative);
  for (const Pattern& operand : pattern.operands) count += commutative_ops(operand);
  return count;
}

/// One attempt: the i-th commutative op of the pattern, in order, has its operands swapped where bit i of
/// `swapped` is set. Recursion is over the pattern, which is small.
class Attempt {
 public:
  Attempt(Match& match, unsigned swapped) : match_(match), swapped_(swapped) {}

  bool op(const Pattern& pattern, const Node& node, NodeId id) {
    if (pattern.op != node.op) return false;
    const bool open = !pattern.operands.empty() && pattern.operands.back().kind == Kind::rest;
    const std::size_t count = pattern.operands.size() - open;
    if (open ? node.operands.size() < count : node.operands.size() != count) return false;
    match_.ids[match_.op_count] = id;
    match_.ops[match_.op_count++] = &node;
    bool swap = false;
    if (info(pattern.op).has(Trait::commutative)) swap = (swapped_ >> next_commutative_++ & 1) != 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (!operand(pattern.operands[i], node.operands[swap ? count - 1 - i : i])) return false;
    }
    return true;
  }

 private:
  bool operand(const Pattern& pattern, NodeId id) {
    const Node& node = match_.graph[id];
    if (pattern.kind == Kind::op) return op(pattern, node, id);
    const auto* constant = std::get_if<ConstantAttr>(&node.attr);
    if (pattern.kind == Kind::literal) {
      const auto literal = literal_of(pattern.literal, node.type.dtype);
      return constant && literal && *constant == *literal;
    }
    if (pattern.kind == Kind::constant && !constant) return false;
    NodeId& bound = match_.bound[pattern.slot];
    if (bound == Match::unbound) bound = id;
    return bound == id;
  }

  Match& match_;
  unsigned swapped_;
  int next_commutative_ = 0;
};

bool is_infix(std::string_view spelling) {
  return spelling.find_first_of("(0123456789") == std::string_view::npos &&
         spelling.find("$a") == spelling.rfind("$a") && !spelling.empty();
}

}  // namespace

std::optional<ConstantAttr> literal_of(double number, DType dtype) {
  if (is_floating(dtype)) return ConstantAttr{.real = number, .integer = 0};
  if (!std::isfinite(number)) return std::nullopt;
  const auto value = static_cast<std::int64_t>(number);
  return ConstantAttr{.real = 0, .integer = dtype == u8 ? static_cast<std::uint8_t>(value) : value};
}

std::optional<Match> match(const Pattern& pattern, const Graph& graph, const std::vector<std::uint32_t>& uses,
                           const Node& node) {
  const unsigned orders = 1U << commutative_ops(pattern);
  for (unsigned swapped = 0; swapped < orders; ++swapped) {
    Match result{.graph = graph, .uses = uses};
    result.bound.fill(Match::unbound);
    if (Attempt(result, swapped).op(pattern, node, Match::unbound)) return result;
  }
  return std::nullopt;
}

std::string to_string(const Pattern& pattern) {
  switch (pattern.kind) {
    case Kind::value:
    case Kind::constant:
      return std::string(1, "xyzwcd"[pattern.slot]);
    case Kind::literal:
      return fmt::format("{}", pattern.literal);
    case Kind::rest:
      return "..";
    case Kind::op:
      break;
  }
  const OpInfo& row = info(pattern.op);
  std::string text;
  if (!is_infix(row.cuda)) {
    for (const Pattern& operand : pattern.operands) text += (text.empty() ? "" : ", ") + to_string(operand);
    return fmt::format("{}({})", row.name, text);
  }
  for (std::size_t i = 0; i < row.cuda.size(); ++i) {
    if (row.cuda[i] != '$') {
      text += row.cuda[i];
      continue;
    }
    const Pattern& operand = pattern.operands[static_cast<std::size_t>(row.cuda[++i] - 'a')];
    const bool nested = operand.operands.size() > 1 && is_infix(info(operand.op).cuda);
    text += nested ? '(' + to_string(operand) + ')' : to_string(operand);
  }
  return text;
}

}  // namespace fuse::ir::algebra
