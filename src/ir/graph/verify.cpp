// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/verify.hpp"

#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "base/access.hpp"
#include "ir/dims/disproof.hpp"
#include "ir/graph/infer.hpp"

namespace fuse::ir {
namespace {

class Verifier {
 public:
  Verifier(const Graph& graph, ErrorKind kind) : graph_(graph), kind_(kind) {}

  void run() {
    check_scopes();
    check_symbols();
    check_assumptions();
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) check_node(id);
    check_outputs();
  }

 private:
  [[noreturn]] void fail(ErrorCode code, std::string message, std::string hint) const {
    throw Error(
        {.kind = kind_, .code = code, .message = "graph: " + std::move(message), .hint = std::move(hint)});
  }

  [[noreturn]] void fail(ErrorCode code, NodeId id, std::string message, std::string hint) const {
    const Node& node = graph_[id];
    ErrorInfo error{.kind = kind_,
                    .code = code,
                    .message = graph_.value_name(id) + ": " + std::move(message),
                    .op = std::string(to_string(node.op)),
                    .hint = std::move(hint)};
    for (const NodeId operand : node.operands) {
      if (operand < graph_.nodes.size()) error.shapes.push_back(to_string(graph_[operand].type));
    }
    if (node.location < graph_.locations.size()) error.location = graph_.location(node);
    throw Error(std::move(error));
  }

  void check_scopes() const {
    if (graph_.locations.empty() || graph_.locations[0] != SourceLocation{}) {
      fail(ErrorCode::invalid_argument, "location 0 is not the unknown location", "keep it first");
    }
    if (graph_.scopes.empty() || !graph_.scopes[0].name.empty() || graph_.scopes[0].parent != 0) {
      fail(ErrorCode::invalid_argument, "scope 0 is not the root", "keep it first");
    }
    for (ScopeId id = 0; id < graph_.scopes.size(); ++id) {
      const Scope& scope = graph_.scopes[id];
      if (id != 0 && scope.name.empty()) {
        fail(ErrorCode::invalid_argument, fmt::format("scope {} has no name", id), "name it");
      }
      if (id != 0 && scope.parent >= id) {
        fail(ErrorCode::cycle, fmt::format("scope {} '{}' stands before its parent", id, scope.name),
             "parents stand before their children");
      }
      if (scope.location >= graph_.locations.size()) {
        fail(ErrorCode::invalid_argument, fmt::format("the location of scope {} does not exist", id),
             "add it to the locations");
      }
    }
  }

  void check_symbols() {
    for (const Symbol& symbol : graph_.symbols) {
      if (symbol.name.empty()) fail(ErrorCode::invalid_argument, "a dim has no name", "name it");
      const DimRange& range = symbol.range;
      if (range.min < 0 || range.max < range.min ||
          (range.hint != 0 && (range.hint < range.min || range.hint > range.max))) {
        fail(ErrorCode::invalid_argument,
             fmt::format("dim '{}' has range [{}, {}] and hint {}", symbol.name, range.min, range.max,
                         range.hint),
             "0 <= min <= max; the hint is 0 or in the range");
      }
      if (!symbols_.emplace(symbol.name, Dim::symbol(symbol.name, range)).second) {
        fail(ErrorCode::duplicate_name, fmt::format("the name '{}' is taken by another dim", symbol.name),
             "dims have different names");
      }
    }
  }

  /// What is wrong with the symbols of an expression, and what mends it; empty when nothing is.
  std::pair<std::string, std::string> undeclared(const Dim& dim) {
    if (dim.is_constant() || !checked_.insert(poly_of(dim)).second) return {};
    for (const Dim& used : dim.symbols()) {
      const auto own = symbols_.find(used.name());
      if (own == symbols_.end()) {
        return {fmt::format("dim '{}' is not declared in this graph", used.name()), "add it to the symbols"};
      }
      if (own->second != used) {
        return {fmt::format("dim '{}' has another range in this graph", used.name()),
                "use the dim that the graph declares"};
      }
    }
    return {};
  }

  void check_declared(const Dim& dim, NodeId id) {
    auto [message, hint] = undeclared(dim);
    if (!message.empty()) fail(ErrorCode::wrong_graph, id, std::move(message), std::move(hint));
  }

  void check_assumptions() {
    for (const Assumption& assumption : graph_.assumptions) {
      const std::string text = "the assumption " + assumption.relation.to_string();
      if (assumption.location >= graph_.locations.size()) {
        fail(ErrorCode::invalid_argument, text + " has a location that does not exist",
             "add it to the locations");
      }
      for (const Dim& dim : {assumption.relation.left, assumption.relation.right}) {
        auto [message, hint] = undeclared(dim);
        if (!message.empty()) fail(ErrorCode::wrong_graph, text + ": " + message, std::move(hint));
      }
      if (const std::string why = disproof(assumption.relation); !why.empty()) {
        fail(ErrorCode::contradiction, text + " cannot hold: " + why, "correct it or the ranges of its dims");
      }
    }
  }

  void check_name(NodeId id, const std::string& name) {
    if (name.empty()) fail(ErrorCode::invalid_argument, id, "the name is empty", "give it a name");
    if (symbols_.count(name) || !names_.insert(name).second) {
      fail(ErrorCode::duplicate_name, id,
           fmt::format("the name '{}' is taken by {}", name,
                       symbols_.count(name) ? "a dim" : "another input or parameter"),
           "inputs, parameters and dims of a graph have different names");
    }
  }

  void check_node(NodeId id) {
    const Node& node = graph_[id];
    if (node.scope >= graph_.scopes.size() || node.location >= graph_.locations.size()) {
      fail(ErrorCode::invalid_argument, id, "its scope or location does not exist", "add it to the graph");
    }
    operands_.clear();
    for (const NodeId operand : node.operands) {
      if (operand >= graph_.nodes.size()) {
        fail(ErrorCode::unknown_name, id, fmt::format("operand %{} does not exist", operand),
             "an operand is a node of the graph");
      }
      if (operand >= id) {
        fail(ErrorCode::cycle, id,
             fmt::format("operand {} is used before it is defined", graph_.value_name(operand)),
             "operands stand before their users");
      }
      operands_.push_back(graph_[operand].type);
    }
    for (const Dim& dim : node.type.dims) check_declared(dim, id);
    for (const Dim& dim : dims_of(node.attr)) check_declared(dim, id);
    try {
      needs_.clear();
      infer_type(node.op, operands_, node.attr, &node.type, graph_.location(node), &needs_);
    } catch (const Error& error) {
      ErrorInfo info = error.info();
      info.kind = kind_;
      info.message = graph_.value_name(id) + ": " + info.message;
      throw Error(std::move(info));
    }
    if (const auto* named = std::get_if<NameAttr>(&node.attr)) check_name(id, named->name);
  }

  void check_outputs() {
    std::unordered_set<std::string_view> names;
    for (const Output& output : graph_.outputs) {
      if (output.name.empty()) {
        fail(ErrorCode::invalid_argument, "an output has no name", "name it");
      }
      if (!names.insert(output.name).second) {
        fail(ErrorCode::duplicate_name, fmt::format("the name '{}' is taken by another output", output.name),
             "name each output differently");
      }
      if (output.node >= graph_.nodes.size()) {
        fail(ErrorCode::unknown_name,
             fmt::format("output '{}' is %{}, which does not exist", output.name, output.node),
             "an output is a node of the graph");
      }
      if (!output.donated()) continue;
      auto [code, message, hint] = donors_.add(graph_, output);
      if (code != ErrorCode::ok) fail(code, std::move(message), std::move(hint));
    }
  }

  const Graph& graph_;
  const ErrorKind kind_;
  std::unordered_map<std::string_view, Dim> symbols_;
  std::unordered_set<std::string_view> names_;  ///< the names of inputs and parameters
  Donors donors_;
  std::unordered_set<const detail::DimPoly*> checked_;  ///< expressions seen; the graph keeps them alive
  std::vector<Type> operands_;                          ///< the operand types of the node at hand
  std::vector<DimRelation> needs_;  ///< the needs of the node at hand; analysis::Facts proves or guards them
};

}  // namespace

Donors::Fault Donors::add(const Graph& graph, const Output& output) {
  if (output.donor >= graph.nodes.size() || graph[output.donor].op != Op::input) {
    return {ErrorCode::invalid_argument, fmt::format("the donor of output '{}' is no input", output.name),
            "only an input has memory to give"};
  }
  const Type &given = graph[output.donor].type, &made = graph[output.node].type;
  if (given != made) {
    return {ErrorCode::invalid_argument,
            fmt::format("output '{}' is {}, its donor {} is {}", output.name, to_string(made),
                        graph.value_name(output.donor), to_string(given)),
            "memory is given for a value of the same type"};
  }
  if (!taken_.insert(output.donor).second) {
    return {ErrorCode::duplicate_name,
            fmt::format("the donor of output '{}' is that of another output", output.name),
            "an input gives its memory once"};
  }
  return {};
}

void verify(const Graph& graph, ErrorKind kind) { Verifier(graph, kind).run(); }

}  // namespace fuse::ir
