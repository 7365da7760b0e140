// Which segment makes what others read: what passes that put segments together ask.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/fusion/partition.hpp"
#include "schedule/segments/argument_limit.hpp"

namespace fuse::schedule {

using SegmentId = std::size_t;

/// A value that a segment reads.
struct Read {
  ir::NodeId input = 0;
  SegmentId maker = 0;  ///< the segment that makes it, or a part of its memory
  bool whole = true;    ///< the segment makes the value itself
};

struct SegmentGraph {
  SegmentGraph(const ir::Graph&, const Partition&);

  static constexpr SegmentId nobody = ~SegmentId{0};
  std::vector<SegmentId> maker{};                   ///< per node: the segment that stores it, or nobody
  std::vector<std::vector<Read>> reads{};           ///< per segment: what it reads from other segments
  std::vector<std::vector<SegmentId>> producers{};  ///< per segment: those that make what it reads, ascending
  std::vector<std::vector<SegmentId>> read_by{};    ///< per segment: those that read what it makes
  std::vector<std::vector<SegmentId>>
      overwrites{};                              ///< per segment: those that make or read what it writes over
  std::vector<bool> returned{};                  ///< per segment: it makes an output, or part of one
  std::vector<std::vector<SymbolId>> symbols{};  ///< per segment: symbols that its kernel mentions

  /// The graph for analysis::MergeGraph: segments as nodes, each with what has to run before it: its
  /// producers, and for what it overwrites, the maker and the readers of that.
  std::vector<std::vector<ir::NodeId>> order() const;

 private:
  void order_overwrites(const Partition&);
};

}  // namespace fuse::schedule
