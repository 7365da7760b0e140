// Values that are written in the memory of others that nothing needs any more (docs/in-place.md). An output
// that takes an input's memory, a donor, is in place where its value is an update of what lies there: only
// the update is written.
//
// Before:  output now = %2 into %old, %2 = dynamic_update_slice %old, %fresh, %at
// After:   %2 takes the memory of %old: readers of %old come before its kernel, those of %2 read that memory
//
// Several updates may follow each other in one memory. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/merge_graph.hpp"
#include "ir/graph/ir_graph.hpp"
#include "ir/graph/question.hpp"

namespace fuse::schedule {

/// Updates of one memory, each of the one before, the first of the donor's contents.
struct UpdateChain {
  std::size_t output = 0;  ///< its number among the graph's outputs; its value is the last update
  ir::NodeId donor = 0;
  std::vector<ir::NodeId> updates{};

  /// Notes for each update what it overwrites.
  void add_to(std::map<ir::NodeId, ir::NodeId>& in_place) const;
};

/// An output that has a donor, and what became of it.
struct InPlaceChoice {
  std::size_t output = 0;  ///< its number among the graph's outputs
  std::string refused{};   ///< why its value is made aside and copied; empty: it is in place
  bool is_update = false;  ///< its value is made from the donor by updates alone
  bool taken() const { return refused.empty(); }
};

struct InPlace {
  /// For each value in place, the value whose memory it takes.
  std::map<ir::NodeId, ir::NodeId> of{};
  std::vector<InPlaceChoice> choices{};  ///< in the order of the outputs
  /// The value that memory belongs to: an input where the value or what it lies in is in place, else itself.
  ir::NodeId owner(ir::NodeId) const;
};

/// Finds the updates that can be in place, however kernels are cut.
class UpdateFinder {
 public:
  using NodeId = ir::NodeId;

  /// `storage`: per node, the node whose buffer holds it (through reshapes). Both outlive this.
  UpdateFinder(const ir::Graph&, const std::vector<NodeId>& storage);

  /// The chains that the graph allows: of what a chain overwrites nothing is an output, and nothing reads it
  /// that depends on the update. `choices` receives one entry for each output with a donor. It is near linear
  /// in nodes and edges.
  std::vector<UpdateChain> chains(const ir::Decide&, std::vector<InPlaceChoice>& choices);

  /// What has to be in memory before the updates: it is computed from what they overwrite, and they or what
  /// follows from them read it. `stored`: per node, whether it is in memory anyway.
  std::vector<NodeId> read_before(const UpdateChain&, const std::vector<bool>& stored);

 private:
  /// Follows the updates from the output to the donor, and notes whether they lead there. Returns why they
  /// cannot be in place.
  std::string follow(UpdateChain&, bool& is_update_of_donor);
  void prepare();
  /// What the chain's update number `update` writes over.
  static NodeId overwritten(const UpdateChain&, std::size_t update);
  /// The nodes that read the value, through reshapes.
  std::vector<NodeId> readers(NodeId value) const;
  bool reads_as_data(NodeId update, NodeId value) const;

  const ir::Graph& graph_;
  const std::vector<NodeId>& storage_;
  std::vector<std::vector<NodeId>> users_;     // once there is a candidate, as is the next
  std::optional<analysis::MergeGraph> order_;  // answers what depends on what
};

/// "in place %5 in %old", "copy %5 into %old: ..", one line per output with a donor.
std::string print(const ir::Graph&, const InPlace&);

}  // namespace fuse::schedule
