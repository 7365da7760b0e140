// Graphs of the list as cases for the oracle of generated programs. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/access.hpp"
#include "fuzz/judge/execute.hpp"
#include "support/stitch_graphs.hpp"

namespace fuse::test {

inline fuzz::Case case_of(const Graph& graph, const fuzz::RunOptions& options) {
  fuzz::Program program{.graph = ir_of(graph), .inputs = {}, .inputs_seed = 11, .bindings = {{}}};
  double classes = 0;
  for (const ir::Node& node : program.graph.nodes) {
    const auto* name = std::get_if<ir::NameAttr>(&node.attr);
    if (name && name->name == "x") classes = static_cast<double>(node.type.dims.back().min());
  }
  for (const ir::Node& node : program.graph.nodes) {
    const auto* name = std::get_if<ir::NameAttr>(&node.attr);
    if (!name) continue;
    fuzz::InputStyle style{.low = -1, .high = 3};  // sums are far from 0
    if (name->name == "label") style = {fuzz::InputStyle::Kind::whole, -1, classes - 1};  // -1: none
    if (name->name == "v") style = {fuzz::InputStyle::Kind::uniform, 0.25, 2};  // Adam divides by its root
    program.inputs[name->name] = style;
  }
  return {std::move(program), options};
}

}  // namespace fuse::test
