// SPDX-License-Identifier: Apache-2.0
#include "passes/plant_rewrite.hpp"

#include <charconv>

#include "ir/graph/op.hpp"

namespace fuse::ir {

std::string to_string(const WrongRewrite& wrong) {
  return "rewrite." + wrong.pass + '.' + std::to_string(wrong.site);
}

std::optional<WrongRewrite> parse_wrong_rewrite(std::string_view text) {
  constexpr std::string_view start = "rewrite.";
  const std::size_t dot = text.rfind('.');
  if (!text.starts_with(start) || dot < start.size()) return std::nullopt;
  WrongRewrite wrong{.pass = std::string(text.substr(start.size(), dot - start.size()))};
  const std::string_view digits = text.substr(dot + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), wrong.site);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return wrong;
}

bool plant_rewrite(Graph& graph, std::size_t site) {
  for (Node& node : graph.nodes) {
    if (info(node.op).relation != Relation::identity || node.operands.size() != 2) continue;
    const NodeId first = node.operands[0], second = node.operands[1];
    if (first == second || !(graph[first].type == graph[second].type) || site-- > 0) continue;
    node.operands[1] = first;
    return true;
  }
  return false;
}

}  // namespace fuse::ir
