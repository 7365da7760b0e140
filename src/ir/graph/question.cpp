// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/question.hpp"

#include <unordered_map>

#include "ir/graph/hash.hpp"

namespace fuse::ir {

std::string_view to_string(Question question) {
  switch (question) {
    case Question::merge:
      return "merge";
    case Question::compose:
      return "compose";
    case Question::epilogue:
      return "epilogue";
    case Question::view:
      return "view";
    case Question::store:
      return "store";
    case Question::stitch:
      return "stitch";
    case Question::cooperative:
      return "cooperative";
    case Question::wait:
      return "wait";
    case Question::regional:
      return "regional";
    case Question::tile:
      return "tile";
    case Question::horizontal:
      return "horizontal";
  }
  return "?";
}

std::uint64_t content_hash(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::unordered_map<NodeId, std::uint64_t> inside, outside;
  std::vector<NodeId> all;
  for (const NodeId id : nodes) {
    inside.emplace(id, inside.size());
    all.push_back(id);
    all.insert(all.end(), graph[id].operands.begin(), graph[id].operands.end());
  }
  const Hasher::SymbolNumbers numbers = number_symbols(graph, all);
  Hasher hasher(numbers);
  hasher.add(nodes.size());
  for (const NodeId id : nodes) {
    const Node& node = graph[id];
    hasher.add(static_cast<std::uint64_t>(node.op)).add(node.attr).add(node.type);
    for (const NodeId operand : node.operands) {
      const auto found = inside.find(operand);
      const bool known = found != inside.end();
      hasher.add(std::uint64_t{known});
      hasher.add(known ? found->second : outside.emplace(operand, outside.size()).first->second);
      if (!known) hasher.add(graph[operand].type);
    }
  }
  return hasher.value();
}

}  // namespace fuse::ir
