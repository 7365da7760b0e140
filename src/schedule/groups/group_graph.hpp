// GroupGraph: groups while they grow. It judges pairs by the table of rules and merges them; group() drives
// it in the order of the paper, and explain asks it of finished groups. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/merge_graph.hpp"
#include "schedule/groups/group.hpp"
#include "schedule/segments/argument_limit.hpp"

namespace fuse::schedule {

class GroupGraph {
 public:
  using Id = ir::NodeId;  ///< id of a group: one of its nodes

  /// Starts with every op by itself.
  GroupGraph(const ir::Graph&, const GroupOptions&, const Target&);
  /// Starts with the groups as they are.
  GroupGraph(const ir::Graph&, const Grouping&, const GroupOptions&, const Target&);

  const ir::Graph& graph() const { return graph_; }
  Id find(ir::NodeId id) const { return merge_graph_.find(id); }
  /// Inputs, parameters and free nodes are in no group.
  bool grouped(ir::NodeId id) const { return !outside_[id]; }
  bool free(ir::NodeId id) const { return free_[id]; }
  GroupClass type(Id id) const { return state_[id].type; }
  const Loops& loops(Id id) const { return state_[id].loops; }
  const std::vector<ir::NodeId>& input_values(Id id) const { return state_[id].inputs; }
  std::vector<ir::NodeId> output_values(Id id) const;
  const analysis::MergeGraph& merge_graph() const { return merge_graph_; }
  /// GEMMs and users' kernels on the longest chains before and after the group, as the graph has them: what
  /// merges put off later is not counted.
  struct Calls {
    int before = 0, after = 0;
  };
  Calls calls(Id id) const { return state_[id].calls; }

  /// Judges by one row of the table. `explain` asks for numbers and for what would change the verdict.
  Verdict judge(Id producer, Id consumer, const Rule& rule, bool explain = false);
  /// Judges by the first row that admits the pair; else it is the verdict of the first row for its classes.
  Verdict judge(Id producer, Id consumer, bool explain = false);
  /// Whether groups that do not read each other may be one kernel, by limits and cycles.
  Verdict judge_parallel(Id a, Id b);
  Id merge(Id a, Id b, GroupClass type);

  Grouping result() const;

 private:
  struct State {
    GroupClass type = GroupClass::element_wise;
    Loops loops{};
    std::vector<ir::NodeId> inputs{};  // sorted
    std::vector<SymbolId> symbols{};   // symbols that its kernel mentions, sorted
    std::size_t outputs = 0;
    std::vector<ir::NodeId> views{};
    Calls calls{};
  };

  template <class F>
  void each_edge(Id producer, Id consumer, F&& f) const;
  std::vector<ir::NodeId> merged_inputs(Id a, Id b) const;
  std::size_t merged_outputs(Id a, Id b) const;
  void leave_out_free_nodes();
  void start();
  Loops loops_of(ir::NodeId) const;
  bool check_limits(Id a, Id b, Verdict&) const;
  bool is_epilogue(Id producer, Id consumer) const;
  void count_calls();
  bool lengthens_chain(Id a, Id b) const;

  const ir::Graph& graph_;
  GroupOptions options_;
  const Target& target_;
  analysis::MergeGraph merge_graph_;
  std::vector<std::vector<ir::NodeId>> users_;
  std::vector<bool> free_, outside_, returned_, in_memory_;
  std::vector<std::uint32_t> other_users_;  // per node: users in other groups, and 1 where it is returned
  std::vector<State> state_;                // state per group
};

}  // namespace fuse::schedule
