// Movement: the ends of a range move as the element does.
// SPDX-License-Identifier: Apache-2.0
#include "fuzz/judge/error_rules.hpp"

namespace fuse::fuzz {
namespace {

/// Operands from here on say where elements come from.
std::size_t first_index(const ir::Node& node) {
  switch (info(node.op).relation) {
    case ir::Relation::gather:
    case ir::Relation::dynamic_slice:
      return 1;
    case ir::Relation::update:
      return 2;
    default:
      return node.operands.size();
  }
}

/// Of each result element: whether the position it is taken from has a choice.
std::vector<bool> unknown_positions(const Rule& rule, const ReferenceTensor& centre) {
  std::vector<bool> unknown(centre.element_count());
  const std::size_t first = first_index(rule.node);
  for (std::size_t k = first; k < rule.operands.size(); ++k) {
    const Enclosure& index = rule.operand(k);
    if (index.exact()) continue;
    const auto low = index.low->integer(), high = index.high->integer();
    std::size_t inner = 1;
    if (const auto* axis = std::get_if<ir::AxisAttr>(&rule.node.attr)) {
      const std::vector<std::int64_t>& shape = rule.operand(0).centre.shape();
      for (auto d = static_cast<std::size_t>(axis->axis) + 1; d < shape.size(); ++d) {
        inner *= static_cast<std::size_t>(shape[d]);
      }
    }
    for (std::size_t i = 0; i < unknown.size(); ++i) {
      const std::size_t at = low.size() == 1 ? 0 : i / inner % low.size();
      if (low[at] != high[at]) unknown[i] = true;
    }
  }
  return unknown;
}

}  // namespace

Enclosure enclose_movement(const Rule& rule) {
  ReferenceTensor centre = rule.centre();
  if (rule.operands_exact()) return {std::move(centre), std::nullopt, std::nullopt};
  std::vector<const ReferenceTensor*> least, greatest;
  const std::size_t first = first_index(rule.node);
  for (std::size_t k = 0; k < rule.operands.size(); ++k) {
    const Enclosure& operand = rule.operand(k);
    least.push_back(k < first ? &operand.least() : &operand.centre);
    greatest.push_back(k < first ? &operand.greatest() : &operand.centre);
  }
  const ReferenceTensor low = rule.apply(least, rule.dtype()), high = rule.apply(greatest, rule.dtype());
  const std::vector<bool> unknown = unknown_positions(rule, centre);
  return runtime::with_storage(rule.dtype(), [&]<class T>() {
    Ends<T> ends(centre);
    for (std::size_t i = 0; i < unknown.size(); ++i) {
      unknown[i] ? ends.any(i) : ends.put(i, low.elements<T>()[i], high.elements<T>()[i]);
    }
    return std::move(ends).take(std::move(centre));
  });
}

}  // namespace fuse::fuzz
