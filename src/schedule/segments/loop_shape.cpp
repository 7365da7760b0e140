// SPDX-License-Identifier: Apache-2.0
#include "schedule/segments/loop_shape.hpp"

#include <algorithm>

namespace fuse::schedule {

LoopShape loop_shape(const ir::Graph& graph, const ir::Node& node) {
  const std::vector<Dim>& dims = graph[node.operands[0]].type.dims;
  std::vector<std::int64_t> reduced;
  if (const auto* scan = std::get_if<ir::ScanAttr>(&node.attr)) {
    reduced = {scan->axis};
  } else {
    reduced = ir::attr<ir::DimsAttr>(node).dims;
  }
  LoopShape shape;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const bool is_reduced =
        std::find(reduced.begin(), reduced.end(), static_cast<std::int64_t>(i)) != reduced.end();
    shape.is_reduced.push_back(is_reduced);
    (is_reduced ? shape.reduced : shape.kept).push_back(dims[i]);
    if (!dims[i].is(1)) shape.inner = is_reduced;
  }
  return shape;
}

std::optional<std::size_t> innermost(const std::vector<Dim>& dims) {
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (!dims[i].is(1)) return i;
  }
  return std::nullopt;
}

bool repeats_in_rows(const ir::Graph& graph, const ir::Node& node, const LoopShape& shape) {
  if (info(node.op).relation != ir::Relation::broadcast || node.type.dims.size() != shape.is_reduced.size())
    return false;
  const std::vector<std::int64_t>& map = ir::attr<ir::DimsAttr>(node).dims;
  const std::vector<Dim>& operand = graph[node.operands[0]].type.dims;
  bool varies = false;
  for (std::size_t i = 0; i < operand.size(); ++i) {
    if (operand[i].is(1)) continue;
    if (!shape.is_reduced[static_cast<std::size_t>(map[i])]) return false;
    varies = true;
  }
  return varies;
}

}  // namespace fuse::schedule
