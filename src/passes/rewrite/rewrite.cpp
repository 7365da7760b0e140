// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/rewrite.hpp"

#include <array>

#include "passes/fold_constants.hpp"
#include "passes/rewrite/uses.hpp"

namespace fuse::ir::algebra {
namespace {

constexpr int max_steps = 64;  // rules applied for one node of the graph

class Rewriter {
 public:
  Rewriter(const Graph& graph, const std::vector<const Rule*>& rules) : graph_(graph), result_(graph) {
    result_.nodes.clear();
    result_.nodes.reserve(graph.nodes.size());
    for (const Rule* rule : rules) rules_of_[static_cast<std::size_t>(rule->from.op)].push_back(rule);
  }

  Graph run() {
    const std::vector<std::uint32_t> uses = use_counts(graph_);
    std::vector<NodeId> to(graph_.nodes.size());
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      Node node = graph_[id];
      for (NodeId& operand : node.operands) operand = to[operand];
      steps_ = 0;
      to[id] = insert(std::move(node));
      uses_[to[id]] += uses[id];
    }
    renumber_outputs(result_, to);
    return std::move(result_);
  }

 private:
  NodeId append(Node node) {
    result_.nodes.push_back(std::move(node));
    uses_.push_back(0);
    return static_cast<NodeId>(result_.nodes.size() - 1);
  }

  NodeId append_constant(const Node& like, const ConstantAttr& value, Type type) {
    Node node{.op = Op::constant, .attr = value, .operands = {}, .type = std::move(type)};
    node.scope = like.scope;
    node.location = like.location;
    return append(std::move(node));
  }

  /// Recursion, here and in build, is over rules that a rule's result makes applicable: at most max_steps
  /// deep.
  NodeId insert(Node node) {
    if (const auto value = folded(result_, node)) return append_constant(node, *value, node.type);
    if (steps_ < max_steps) {
      for (const Rule* rule : rules_of_[static_cast<std::size_t>(node.op)]) {
        if (const auto made = apply(*rule, node)) return *made;
      }
    }
    return append(std::move(node));
  }

  std::optional<NodeId> apply(const Rule& rule, const Node& node) {
    const std::optional<Match> found = match(rule.from, result_, uses_, node);
    if (!found || (rule.where.holds && !rule.where.holds(*found))) return std::nullopt;
    std::optional<Attr> attr = NoAttr{};
    if (rule.attributes.make) attr = rule.attributes.make(*found);
    if (!attr) return std::nullopt;
    if (rule.to.kind == Pattern::Kind::value && result_[found->bound[rule.to.slot]].type != node.type) {
      return std::nullopt;
    }
    ++steps_;
    // The match refers to nodes that move when the graph grows; what it bound does not.
    return build(rule.to, found->bound, *attr, node, node.type);
  }

  /// `type` is that of the value to build; for an op inside another its dtype is a first guess, that of the
  /// outer one's operands.
  NodeId build(const Pattern& to, const std::array<NodeId, Pattern::slots>& bound, const Attr& attr,
               const Node& root, const Type& type) {
    switch (to.kind) {
      case Pattern::Kind::value:
        return bound[to.slot];
      case Pattern::Kind::constant: {
        const Node& constant = result_[bound[to.slot]];
        if (constant.type.dims == type.dims) return bound[to.slot];
        return append_constant(root, ir::attr<ConstantAttr>(constant), {constant.type.dtype, type.dims});
      }
      case Pattern::Kind::literal:
        return append_constant(root, literal_of(to.literal, type.dtype).value(), type);
      case Pattern::Kind::op:
      case Pattern::Kind::rest:
        break;
    }
    const Attr own = empty_attribute(to.op);
    Node node{
        .op = to.op, .attr = std::holds_alternative<NoAttr>(own) ? own : attr, .operands = {}, .type = type};
    node.scope = root.scope;
    node.location = root.location;
    for (const Pattern& operand : to.operands) {
      node.operands.push_back(
          build(operand, bound, attr, root, {operand_dtype(to, bound, type.dtype), type.dims}));
    }
    return insert(std::move(node));
  }

  /// The dtype of the op's operands: that of the first value among them, else what the result has.
  DType operand_dtype(const Pattern& op, const std::array<NodeId, Pattern::slots>& bound,
                      DType result) const {
    if (info(op.op).result != ResultClass::boolean) return result;
    for (const Pattern& operand : op.operands) {
      if (operand.kind != Pattern::Kind::literal) return result_[bound[operand.slot]].type.dtype;
    }
    return result;
  }

  const Graph& graph_;
  Graph result_;
  std::vector<std::uint32_t> uses_;  ///< uses of the result's nodes by the graph's nodes so far
  std::array<std::vector<const Rule*>, op_count> rules_of_;
  int steps_ = 0;
};

}  // namespace

Graph rewrite(const Graph& graph, const std::vector<const Rule*>& rules) {
  return Rewriter(graph, rules).run();
}

}  // namespace fuse::ir::algebra
