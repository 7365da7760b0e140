// What the tests of the graph's IR share: graphs made node by node, type rules and errors as text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph/infer.hpp"
#include "ir/graph/ir_graph.hpp"
#include "ir/text/print.hpp"
#include "support/catch.hpp"

namespace fuse::ir_test {

using namespace fuse::ir;

/// The text of the Error that `action` throws.
template <class F>
std::string thrown(F action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// The text of the error in a graph's text, which is called f.fuse.
inline std::string parse_error(const std::string& text) {
  return thrown([&] { parse(text, "f.fuse"); });
}

template <class F>
ErrorCode thrown_code(F action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::ok;
}

/// The inferred type, or the text of the error.
inline std::string rule(Op op, const std::vector<Type>& operands, const Attr& attr = NoAttr{},
                        std::optional<Type> declared = {}) {
  std::string text;
  const std::string error = thrown([&] {
    text = to_string(infer_type(op, operands, attr, declared ? &*declared : nullptr, {"m.cpp", 7}));
  });
  if (!text.empty()) return text;
  return error.starts_with("m.cpp:7: ") ? error.substr(9) : "without a line: " + error;
}

/// A graph made without the builder.
struct Maker {
  ir::Graph graph;

  Dim dim(std::string name, DimRange range = {}) {
    graph.symbols.push_back({name, range});
    return Dim::symbol(std::move(name), range);
  }
  ScopeId scope(std::string name, ScopeId parent = 0, LocationId location = 0) {
    graph.scopes.push_back({std::move(name), parent, location});
    return static_cast<ScopeId>(graph.scopes.size() - 1);
  }
  LocationId location(std::string file, std::uint32_t line) {
    graph.locations.emplace_back(std::move(file), line);
    return static_cast<LocationId>(graph.locations.size() - 1);
  }
  NodeId add(Op op, std::vector<NodeId> operands, Attr attr = NoAttr{}, std::optional<Type> declared = {},
             ScopeId in = 0, LocationId at = 0) {
    std::vector<Type> types;
    for (const NodeId operand : operands) types.push_back(graph[operand].type);
    Type type = infer_type(op, types, attr, declared ? &*declared : nullptr, {});
    graph.nodes.push_back({op, std::move(attr), std::move(operands), std::move(type), in, at});
    return static_cast<NodeId>(graph.nodes.size() - 1);
  }
  NodeId input(std::string name, Type type, Op op = Op::input) {
    return add(op, {}, NameAttr{std::move(name)}, std::move(type));
  }
  void output(std::string name, NodeId node) { graph.outputs.push_back({std::move(name), node}); }
};

}  // namespace fuse::ir_test
