// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/ir_graph.hpp"

#include <algorithm>
#include <iterator>

namespace fuse::ir {

Graph::Graph() = default;
Graph::Graph(const Graph&) = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(const Graph&) = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

std::string to_string(const Type& type) {
  std::string text(fuse::to_string(type.dtype));
  text += '[';
  for (std::size_t i = 0; i < type.dims.size(); ++i) text += (i ? ", " : "") + type.dims[i].to_string();
  return text + ']';
}

DimRange quotient_range(const Symbol& symbol) {
  if (symbol.factor == 1) return symbol.range;
  const auto [min, max, hint] = symbol.range;
  const std::int64_t least = min / symbol.factor + (min % symbol.factor > 0), most = max / symbol.factor;
  return {.min = least, .max = most, .hint = std::clamp(hint / symbol.factor, least, most)};
}

std::string Graph::scope_path(ScopeId scope) const {
  std::string path;
  for (; scope != 0; scope = scopes[scope].parent) {
    path = path.empty() ? scopes[scope].name : scopes[scope].name + '.' + path;
  }
  return path;
}

std::string Graph::value_name(NodeId id) const {
  if (const auto* named = std::get_if<NameAttr>(&nodes[id].attr)) return '%' + named->name;
  return '%' + std::to_string(id);
}

std::vector<std::vector<NodeId>> users(const Graph& graph) {
  std::vector<std::vector<NodeId>> result(graph.nodes.size());
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    for (NodeId operand : graph.nodes[id].operands) {
      if (result[operand].empty() || result[operand].back() != id) result[operand].push_back(id);
    }
  }
  return result;
}

void renumber_outputs(Graph& graph, const std::vector<NodeId>& to) {
  for (Output& output : graph.outputs) {
    output.node = to[output.node];
    if (output.donated()) output.donor = to[output.donor];
  }
}

std::vector<Dim> without_ones(const std::vector<Dim>& dims) {
  std::vector<Dim> result;
  std::copy_if(dims.begin(), dims.end(), std::back_inserter(result), [](const Dim& d) { return !d.is(1); });
  return result;
}

}  // namespace fuse::ir
