// SPDX-License-Identifier: Apache-2.0
#include "ir/verify.hpp"

#include <fmt/format.h>

#include <set>

#include "ir/infer.hpp"

namespace fuse::ir {
namespace {

class Verifier {
 public:
  Verifier(const Graph& graph, ErrorKind kind) : graph_(graph), kind_(kind) {}

  void run() const {
    check_tables();
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) check_node(id);
    std::set<std::string_view> names;
    for (const Output& output : graph_.outputs) {
      if (output.name.empty()) fail(ErrorCode::invalid_argument, "an output has no name");
      if (!names.insert(output.name).second)
        fail(ErrorCode::duplicate_name, "two outputs are called '" + output.name + "'");
      if (output.node >= graph_.nodes.size())
        fail(ErrorCode::unknown_name, "output '" + output.name + "' does not exist");
    }
  }

 private:
  [[noreturn]] void fail(ErrorCode code, std::string message, const Node* node = nullptr) const {
    ErrorInfo error{.kind = kind_, .code = code, .message = std::move(message)};
    if (node) {
      error.op = std::string(to_string(node->op));
      if (node->location < graph_.locations.size()) error.location = graph_.location(*node);
    }
    throw Error(std::move(error));
  }

  void check_tables() const {
    std::set<std::string_view> names;
    for (const Symbol& symbol : graph_.symbols) {
      if (symbol.name.empty()) fail(ErrorCode::invalid_argument, "a dim has no name");
      if (!names.insert(symbol.name).second)
        fail(ErrorCode::duplicate_name, "two dims are called '" + symbol.name + "'");
      const DimRange& r = symbol.range;
      if (r.min < 0 || r.max < r.min || (r.hint != 0 && (r.hint < r.min || r.hint > r.max))) {
        fail(ErrorCode::invalid_extent,
             fmt::format("dim '{}' has range [{}, {}] and hint {}", symbol.name, r.min, r.max, r.hint));
      }
    }
    if (graph_.scopes.empty() || graph_.locations.empty())
      fail(ErrorCode::internal, "a graph without a root scope or location");
    for (ScopeId id = 1; id < graph_.scopes.size(); ++id) {
      if (graph_.scopes[id].parent >= id) fail(ErrorCode::cycle, "a scope stands before its parent");
      if (graph_.scopes[id].location >= graph_.locations.size())
        fail(ErrorCode::internal, "a scope's line does not exist");
    }
  }

  void check_symbols(const Dim& dim, const Node& node) const {
    for (const Dim& used : dim.symbols()) {
      bool declared = false;
      for (const Symbol& symbol : graph_.symbols) {
        declared = declared || (symbol.name == used.name() && Dim::symbol(symbol.name, symbol.range) == used);
      }
      if (!declared)
        fail(ErrorCode::wrong_graph, fmt::format("dim '{}' was not declared in this graph", used.name()),
             &node);
    }
  }

  void check_node(NodeId id) const {
    const Node& node = graph_.nodes[id];
    if (node.scope >= graph_.scopes.size() || node.location >= graph_.locations.size()) {
      fail(ErrorCode::internal, graph_.value_name(id) + " has a scope or line that does not exist");
    }
    std::vector<Type> operands;
    for (NodeId operand : node.operands) {
      if (operand >= id)
        fail(ErrorCode::cycle, graph_.value_name(id) + " uses a value that comes after it", &node);
      operands.push_back(graph_.nodes[operand].type);
    }
    for (const Dim& dim : node.type.dims) check_symbols(dim, node);
    if (const auto* dim = std::get_if<DimAttr>(&node.attr)) check_symbols(dim->dim, node);
    if (const auto* slice = std::get_if<SliceAttr>(&node.attr)) {
      for (const Dim& dim : slice->starts) check_symbols(dim, node);
      for (const Dim& dim : slice->limits) check_symbols(dim, node);
    }
    if (const auto* named = std::get_if<NameAttr>(&node.attr)) {
      if (named->name.empty()) fail(ErrorCode::invalid_argument, "an input or parameter has no name", &node);
      if (!signature_.insert(named->name).second) {
        fail(ErrorCode::duplicate_name, "two inputs or parameters are called '" + named->name + "'", &node);
      }
    }
    try {
      infer_type(node.op, operands, node.attr, &node.type, graph_.location(node));
    } catch (const Error& error) {
      ErrorInfo info = error.info();
      info.kind = kind_;
      throw Error(std::move(info));
    }
  }

  const Graph& graph_;
  const ErrorKind kind_;
  mutable std::set<std::string_view> signature_;
};

}  // namespace

void verify(const Graph& graph, ErrorKind kind) { Verifier(graph, kind).run(); }

}  // namespace fuse::ir
