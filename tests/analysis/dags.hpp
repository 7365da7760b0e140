// Operand lists of DAGs that a partition meets: what MergeGraph is made from.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace fuse::analysis_test {

using NodeId = std::uint32_t;
using Operands = std::vector<std::vector<NodeId>>;

inline Operands chain(NodeId count) {
  Operands dag(count);
  for (NodeId i = 1; i < count; ++i) dag[i] = {i - 1};
  return dag;
}

/// Layers of `heads` parallel branches with a skip around each layer, and a mask that every layer reads.
inline Operands transformer(NodeId layers, NodeId heads = 8, NodeId branch = 4) {
  Operands dag(2);  // x and the mask
  NodeId x = 0;
  const auto add = [&](std::vector<NodeId> operands) {
    dag.push_back(std::move(operands));
    return static_cast<NodeId>(dag.size() - 1);
  };
  for (NodeId layer = 0; layer < layers; ++layer) {
    const NodeId norm = add({x});
    std::vector<NodeId> ends;
    for (NodeId head = 0; head < heads; ++head) {
      NodeId at = add({norm, 1});
      for (NodeId i = 1; i < branch; ++i) at = add({at});
      ends.push_back(at);
    }
    const NodeId joined = add(std::move(ends));
    x = add({joined, x});
  }
  return dag;
}

/// Every node reads the `width` before it.
inline Operands dense_skips(NodeId count, NodeId width) {
  Operands dag(count);
  for (NodeId i = 1; i < count; ++i) {
    for (NodeId k = 1; k <= std::min(i, width); ++k) dag[i].push_back(i - k);
  }
  return dag;
}

/// A U: node i on the way down is read again on the way up.
inline Operands nested_skips(NodeId count) {
  Operands dag = chain(count);
  for (NodeId i = 0; i + 1 < count / 2; ++i) dag[count - 1 - i].push_back(i);
  return dag;
}

/// A node read by `width` branches of two nodes that one node joins, `times` in a row.
inline Operands fan(NodeId width, NodeId times) {
  Operands dag(1);
  for (NodeId t = 0; t < times; ++t) {
    const auto from = static_cast<NodeId>(dag.size() - 1);
    std::vector<NodeId> ends;
    for (NodeId i = 0; i < width; ++i) {
      dag.push_back({from});
      dag.push_back({static_cast<NodeId>(dag.size() - 1)});
      ends.push_back(static_cast<NodeId>(dag.size() - 1));
    }
    dag.push_back(std::move(ends));
  }
  return dag;
}

/// `degree` operands a node on average, from the `reach` nodes before it.
inline Operands random_dag(std::mt19937_64& random, NodeId count, NodeId degree, NodeId reach) {
  Operands dag(count);
  for (NodeId i = 1; i < count; ++i) {
    const NodeId operands = static_cast<NodeId>(random() % (2 * degree + 1));
    for (NodeId k = 0; k < operands; ++k)
      dag[i].push_back(i - 1 - static_cast<NodeId>(random() % std::min(i, reach)));
  }
  return dag;
}

inline std::size_t edge_count(const Operands& dag) {
  std::size_t count = 0;
  for (const auto& operands : dag) count += operands.size();
  return count;
}

}  // namespace fuse::analysis_test
