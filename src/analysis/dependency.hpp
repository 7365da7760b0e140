// Dependency along paths of the graph, and what stands on every path: element relations composed from op to
// op, dominators and post-dominators. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "analysis/element.hpp"

namespace fuse::analysis {

/// The relation of the last node's elements with the first's along one path; each node is an operand of the
/// next. An operand that stands twice counts twice.
ElementRelation relation_along(const ir::Graph&, std::span<const ir::NodeId> path);

/// The relation over all paths from `from` to `to` whose other nodes are among `inside`. Multiplicity::none
/// where there is none.
ElementRelation relation_within(const ir::Graph&, ir::NodeId from, ir::NodeId to,
                                std::span<const ir::NodeId> inside);

/// The tree of dominators, or of post-dominators, of a DAG. The root is no node: it stands before all nodes
/// without operands, or after all outputs and all nodes without users.
class Dominators {
 public:
  static constexpr ir::NodeId root = ~ir::NodeId{0};

  /// next[n]: the nodes through which paths from n to the root go on; n stands before them, or after them, by
  /// number. `ends`: paths also end at n.
  static Dominators of(const std::vector<std::vector<ir::NodeId>>& next, const std::vector<bool>& ends);

  /// The nearest other node on every path between the node and the root.
  ir::NodeId immediate(ir::NodeId node) const {
    return parent_[node] == parent_.size() - 1 ? root : parent_[node];
  }
  /// `above` is on every path between `node` and the root; every node dominates itself.
  bool dominates(ir::NodeId above, ir::NodeId node) const;
  /// The nearest node that dominates all of them; it may be one of them. The root for none.
  ir::NodeId common(std::span<const ir::NodeId> nodes) const;

 private:
  ir::NodeId meet(ir::NodeId a, ir::NodeId b) const;
  std::vector<ir::NodeId> parent_, jump_;  ///< for each node and, last, for the root: up by one, and by many
  std::vector<std::uint32_t> depth_;
};

/// The dominators; above a node is what all paths to it from sources go through.
Dominators dominators(const ir::Graph&);
/// The post-dominators; above a node is what all paths from it to outputs (and to nodes that nothing reads)
/// go through.
Dominators post_dominators(const ir::Graph&);

/// A value that several nodes read.
struct Fork {
  ir::NodeId node = 0;
  std::vector<ir::NodeId> consumers{};
  ir::NodeId join = Dominators::root;  ///< the nearest node through which all paths from the consumers go
  bool operator==(const Fork&) const = default;
};
/// The forks in node order.
std::vector<Fork> forks(const ir::Graph&, const Dominators& post);

}  // namespace fuse::analysis
