// SPDX-License-Identifier: Apache-2.0
#include "fuzz/coverage.hpp"

#include <fmt/format.h>

#include "fuzz/grow/generator.hpp"

namespace fuse::fuzz {

void Coverage::count(const ir::Graph& graph) {
  std::vector<bool> live(graph.nodes.size());
  for (const ir::Output& output : graph.outputs) live[output.node] = true;
  for (auto id = static_cast<ir::NodeId>(graph.nodes.size()); id-- > 0;) {
    if (!live[id]) continue;
    ++cells_[{graph[id].op, counted_dtype(graph, graph[id])}];
    for (const ir::NodeId operand : graph[id].operands) live[operand] = true;
  }
}

std::vector<std::string> Coverage::empty_cells() const {
  std::vector<std::string> empty;
  for (int i = 0; i < ir::op_count; ++i) {
    const auto op = static_cast<ir::Op>(i);
    for (const DType dtype : dtypes()) {
      if (is_legal(op, dtype) && !cells_.contains({op, dtype})) {
        empty.push_back(fmt::format("{} {}", ir::to_string(op), fuse::to_string(dtype)));
      }
    }
  }
  return empty;
}

std::string Coverage::table() const {
  std::string text = "| op |", rule = "| --- |";
  for (const DType dtype : dtypes()) {
    text += fmt::format(" {} |", fuse::to_string(dtype));
    rule += " ---: |";
  }
  text += '\n' + rule + '\n';
  for (int i = 0; i < ir::op_count; ++i) {
    const auto op = static_cast<ir::Op>(i);
    text += fmt::format("| {} |", ir::to_string(op));
    for (const DType dtype : dtypes()) {
      const auto found = cells_.find({op, dtype});
      text += found != cells_.end() ? fmt::format(" {} |", found->second)
              : is_legal(op, dtype) ? " 0 |"
                                    : " - |";
    }
    text += '\n';
  }
  return text;
}

}  // namespace fuse::fuzz
