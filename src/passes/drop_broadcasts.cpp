// SPDX-License-Identifier: Apache-2.0
#include "passes/drop_broadcasts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/facts.hpp"
#include "base/quoting.hpp"

namespace fuse::ir {
namespace {

class Dropper {
 public:
  explicit Dropper(const Graph& graph)
      : result_(graph), kept_(graph.nodes.size()), is_output_(graph.nodes.size()), equal_(graph) {
    for (const Output& output : graph.outputs) is_output_[output.node] = true;
  }

  Graph run() {
    for (NodeId id = 0; id < result_.nodes.size(); ++id) {
      Node& node = result_.nodes[id];
      for (NodeId& operand : node.operands) operand = kept_[operand];
      if (info(node.op).relation == Relation::expand) decide(node);
      kept_[id] = repeats_nothing(node, is_output_[id]) ? node.operands[0] : id;
    }
    renumber_outputs(result_, kept_);
    return std::move(result_);
  }

 private:
  /// A view of operand 0 in row-major order, of the same extents: dims that a broadcast adds are none.
  bool repeats_nothing(const Node& node, bool is_output) {
    const Relation relation = info(node.op).relation;
    if (relation != Relation::broadcast && relation != Relation::reshape) return false;
    const std::vector<Dim>& from = result_[node.operands[0]].type.dims;
    const std::vector<Dim>& to = node.type.dims;
    if (is_output) return from == to;  // its type, to the letter, is the graph's signature
    return from.size() == to.size() && std::equal(from.begin(), from.end(), to.begin(),
                                                  [&](const Dim& a, const Dim& b) { return equal_(a, b); });
  }

  /// Of each extent the facts say whether it repeats: what expands becomes a broadcast, which may repeat
  /// nothing.
  void decide(Node& node) {
    const std::vector<Dim>& from = result_[node.operands[0]].type.dims;
    DimsAttr all;
    for (std::size_t i = 0; i < from.size(); ++i) {
      all.dims.push_back(static_cast<std::int64_t>(i));
      if (!from[i].is(1) && !equal_(from[i], node.type.dims[i])) refuse(node, from[i], node.type.dims[i]);
    }
    node.op = Op::broadcast_in_dim;
    node.attr = std::move(all);
  }

  [[noreturn]] void refuse(const Node& node, const Dim& own, const Dim& whole) const {
    throw Error(
        {.code = ErrorCode::unsupported,
         .message = fmt::format("{} is 1 or {}, and one build cannot have both", in_quotes(own.to_string()),
                                in_quotes(whole.to_string())),
         .op = std::string(to_string(node.op)),
         .shapes = {to_string(result_[node.operands[0]].type), to_string(node.type)},
         .location = result_.location(node),
         .hint = fmt::format("a compilation that takes or records decisions, and an exploration, have "
                             "one build: give the graph equal({0}, {1}) or equal({0}, 1) for them",
                             own.to_string(), whole.to_string())});
  }

  Graph result_;
  std::vector<NodeId> kept_;
  std::vector<bool> is_output_;
  analysis::EqualExtents equal_;
};

}  // namespace

Graph drop_broadcasts(const Graph& graph) { return Dropper(graph).run(); }

}  // namespace fuse::ir
