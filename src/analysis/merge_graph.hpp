// MergeGraph: nodes of a graph in sets that grow by merging, and whether a merge would make a cycle.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "analysis/order_maintenance.hpp"
#include "ir/graph/ir_graph.hpp"

namespace fuse::analysis {

/// A set is named by one of its nodes; functions take any of them. Sets and the edges between them
/// form a DAG at all times. Sets need not touch to be merged.
///
/// A topological order of the sets is kept. "Would a and b make a cycle" looks only at sets between
/// the two in that order, from both ends at once, one edge each in turn, and ends when one side has no more:
/// its sets then move to the other's far side when the two are merged. What the graph's own edges prove
/// by the intervals of two spanning forests is not searched for. Edges are lists of node numbers that are
/// cleaned as they are read.
class MergeGraph {
 public:
  using NodeId = ir::NodeId;

  /// A set for each node.
  explicit MergeGraph(const ir::Graph&);
  /// operands[n]: nodes below n.
  explicit MergeGraph(const std::vector<std::vector<NodeId>>& operands);

  /// The node that names the set of a node, until that set is merged.
  NodeId find(NodeId node) const { return set_of_[node]; }
  bool same(NodeId a, NodeId b) const { return set_of_[a] == set_of_[b]; }
  std::size_t set_count() const { return count_; }

  /// True when a third set is reached from one of the two and reaches the other.
  bool would_cycle(NodeId a, NodeId b);
  /// An internal error where it would make a cycle. Returns the name of what they became.
  NodeId merge(NodeId a, NodeId b);
  /// A path of one edge or more leads from a to b.
  bool reaches(NodeId a, NodeId b);

  /// The members, sorted.
  std::vector<NodeId> members(NodeId set) const;
  std::size_t member_count(NodeId set) const { return members_[set_of_[set]].size(); }
  /// The names of sets next to it, sorted.
  std::vector<NodeId> producers(NodeId set) const { return neighbours(backward, set); }
  std::vector<NodeId> consumers(NodeId set) const { return neighbours(forward, set); }
  /// Names of all sets, producers first, else by their first node: the same however they were merged.
  std::vector<NodeId> topological() const;

  /// Edges that searches have looked at, a measure of work that does not depend on the machine.
  std::uint64_t visited() const { return visited_; }

 private:
  enum Direction : std::size_t { forward, backward };
  enum class Step { more, met, exhausted };

  /// One side of a search.
  struct Side {
    Direction direction;
    NodeId start, goal;
    bool count_direct;  ///< the edge from start to goal is a path
    NodeId current = 0;
    std::size_t cursor = 0;
    std::uint64_t scan = 0;
    std::vector<NodeId> found{}, stack{};
    std::array<NodeId, 4> samples{};  ///< nodes next to the goal, on a path to it
    std::size_t sample_count = 0;
  };
  /// The last search that found nothing since sets were merged: what a merge of the two needs.
  struct Proof {
    NodeId first = 0, second = 0;  ///< in order
    Direction exhausted = forward;
    std::vector<NodeId> found{};
  };

  void build(std::size_t size);
  void number_forests();
  std::vector<NodeId> neighbours(Direction, NodeId set) const;
  /// Searches from first to second. True when they meet, which they cannot where second stands before.
  bool search(NodeId first, NodeId second, bool count_direct);
  Step step(Side& side, const Side& other);
  void start_scan(Side& side, NodeId set);
  void take_samples(Side& side);
  bool proven(const Side& side, NodeId node) const;
  /// Whether one of the forests has a path.
  bool tree_path(NodeId from, NodeId to) const;

  std::size_t count_ = 0;
  std::vector<NodeId> set_of_;                            ///< for each node, its set
  std::vector<std::vector<NodeId>> members_;              ///< for each name, the members
  std::array<std::vector<std::vector<NodeId>>, 2> next_;  ///< for each name, nodes in consumers, in producers
  MaintainedOrder order_;

  /// Preorder intervals of a spanning forest along consumers and of one along operands.
  std::array<std::vector<std::pair<NodeId, NodeId>>, 2> interval_;

  std::array<std::vector<std::uint64_t>, 2> mark_;  ///< the search that found it, by direction
  std::vector<std::uint64_t> scanned_;              ///< the list in which it was seen last
  std::uint64_t epoch_ = 0, scan_ = 0, visited_ = 0;
  Proof proof_;
};

}  // namespace fuse::analysis
