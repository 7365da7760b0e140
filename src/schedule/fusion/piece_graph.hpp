// Which piece makes what others read: what passes that put pieces together ask.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/fusion/partition.hpp"
#include "schedule/segments/argument_limit.hpp"

namespace fuse::schedule {

using PieceId = std::size_t;

/// A value that a piece reads.
struct Read {
  ir::NodeId input = 0;
  PieceId maker = 0;  ///< the piece that makes it, or a part of its memory
  bool whole = true;  ///< the piece makes the value itself
};

struct PieceGraph {
  PieceGraph(const ir::Graph&, const Partition&);

  static constexpr PieceId nobody = ~PieceId{0};
  std::vector<PieceId> maker{};                   ///< of each node: the piece that stores it, or nobody
  std::vector<std::vector<Read>> reads{};         ///< of each piece: what other pieces make
  std::vector<std::vector<PieceId>> producers{};  ///< of each piece: those that make what it reads, ascending
  std::vector<std::vector<PieceId>> read_by{};    ///< of each piece: those that read what it makes
  std::vector<bool> returned{};                   ///< of each piece: it makes an output, or part of one
  std::vector<std::vector<SymbolId>> symbols{};   ///< of each piece: those that its kernel mentions

  /// For analysis::ClusterGraph: pieces as nodes, each with its producers.
  std::vector<std::vector<ir::NodeId>> order() const;
};

}  // namespace fuse::schedule
