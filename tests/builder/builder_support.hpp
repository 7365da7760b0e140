// What the builder tests share: the text of an error, and a graph in one short line an op.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/graph.hpp>
#include <source_location>
#include <string>
#include <type_traits>

#include "base/access.hpp"
#include "ir/graph/ir_graph.hpp"
#include "support/catch.hpp"

namespace fuse::test {

/// "file_test.cpp:12: " for the line it is written on.
inline std::string here(std::source_location at = std::source_location::current()) {
  const SourceLocation location(at);
  return location.file + ":" + std::to_string(location.line) + ": ";
}

/// The whole text of the Error that `action` throws. An action that takes a string sets it to here(), on the
/// line that must be blamed; the text then starts with "HERE: ".
template <class F>
std::string error_of(F action) {
  std::string at;
  try {
    if constexpr (std::is_invocable_v<F, std::string&>) {
      action(at);
    } else {
      action();
    }
  } catch (const Error& error) {
    const std::string text = error.what();
    return !at.empty() && text.starts_with(at) ? "HERE: " + text.substr(at.size()) : text;
  }
  return "no error";
}

template <class F>
ErrorCode code_of(F action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::ok;
}

/// The nodes from `first` on, as "mul(%0, %2) f32[4]", joined with "; ".
inline std::string trace(const Graph& graph, std::size_t first) {
  std::string text;
  for (std::size_t id = first; id < ir_of(graph).nodes.size(); ++id) {
    const ir::Node& node = ir_of(graph).nodes[id];
    if (!text.empty()) text += "; ";
    text += std::string(to_string(node.op)) + "(";
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      text += (i ? ", %" : "%") + std::to_string(node.operands[i]);
    }
    text += ") " + ir::to_string(node.type);
  }
  return text;
}

inline const ir::Node& last_node(const Graph& graph) { return ir_of(graph).nodes.back(); }

}  // namespace fuse::test
