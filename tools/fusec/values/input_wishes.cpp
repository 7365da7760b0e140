// SPDX-License-Identifier: Apache-2.0
#include "fusec/values/input_wishes.hpp"

#include <algorithm>
#include <iterator>

namespace fuse::fusec {
namespace {

using ir::Op;

/// An op that makes NaN, or an infinity, of an operand that is not positive.
struct Need {
  Op op;
  std::size_t operand;
};
constexpr Need needs[] = {{Op::log, 0}, {Op::log2, 0}, {Op::log1p, 0}, {Op::sqrt, 0},      {Op::rsqrt, 0},
                          {Op::pow, 0}, {Op::div, 1},  {Op::rem, 1},   {Op::reciprocal, 0}};

/// Element-wise ops whose result is positive where their operands are.
constexpr Op positive_of_positive[] = {Op::add,   Op::mul,  Op::div,   Op::pow,  Op::max,   Op::min,
                                       Op::clamp, Op::sqrt, Op::sign,  Op::ceil, Op::rsqrt, Op::reciprocal,
                                       Op::tanh,  Op::erf,  Op::expm1, Op::log1p};

bool passes_on(const ir::Node& node) {
  const ir::OpInfo& row = info(node.op);
  if (row.elementwise) {
    const bool square = node.op == Op::mul && node.operands[0] == node.operands[1];
    return !square && std::find(std::begin(positive_of_positive), std::end(positive_of_positive), node.op) !=
                          std::end(positive_of_positive);
  }
  if (row.relation == ir::Relation::reduce) {
    return row.combine == Op::add || row.combine == Op::mul || row.combine == Op::max ||
           row.combine == Op::min;
  }
  return row.has(ir::Trait::movement) || row.relation == ir::Relation::identity ||
         row.relation == ir::Relation::scan || row.relation == ir::Relation::contraction;
}

}  // namespace

std::vector<bool> wished_positive(const ir::Graph& graph) {
  std::vector<bool> wished(graph.nodes.size());
  for (ir::NodeId id = static_cast<ir::NodeId>(graph.nodes.size()); id-- > 0;) {
    const ir::Node& node = graph[id];
    for (const Need& need : needs) {
      if (need.op == node.op) wished[node.operands[need.operand]] = true;
    }
    if (!wished[id] || !passes_on(node)) continue;
    // Positions and conditions are operands too, of another type than the elements.
    for (const ir::NodeId operand : node.operands) {
      const DType from = graph[operand].type.dtype;
      if (is_floating(from) || from == node.type.dtype) wished[operand] = true;
    }
  }
  return wished;
}

}  // namespace fuse::fusec
