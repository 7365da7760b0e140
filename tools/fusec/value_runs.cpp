// SPDX-License-Identifier: Apache-2.0
#include "value_runs.hpp"

#include <fmt/format.h>

#include "runtime/compile/compile.hpp"
#include "runtime/reference/evaluate.hpp"

namespace fuse::fusec {
namespace {

// No output of a user's has this name: it is none that the text form could print without quotes.
std::string name_of(ir::NodeId node) { return fmt::format("value {}", node); }

}  // namespace

std::vector<ir::NodeId> ValueRuns::values() const {
  std::vector<bool> live(graph_.nodes.size(), false);
  for (const ir::Output& output : graph_.outputs) live[output.node] = true;
  for (std::size_t id = graph_.nodes.size(); id-- > 0;) {
    if (!live[id]) continue;
    for (const ir::NodeId operand : graph_.nodes[id].operands) live[operand] = true;
  }
  std::vector<ir::NodeId> nodes;
  for (ir::NodeId id = 0; id < graph_.nodes.size(); ++id) {
    if (live[id] && !ir::is_given(graph_[id])) nodes.push_back(id);
  }
  return nodes;
}

ir::Graph ValueRuns::with_outputs(const std::vector<ir::NodeId>& nodes) const {
  ir::Graph graph = graph_;
  for (const ir::NodeId node : nodes) graph.outputs.push_back({.name = name_of(node), .node = node});
  return graph;
}

std::map<ir::NodeId, runtime::HostTensor> ValueRuns::run(const std::vector<ir::NodeId>& nodes,
                                                         const PipelineOptions& options) const {
  ir::Graph graph = with_outputs(nodes);
  Compiled compiled = run_pipeline(graph, device_.backend()->target(), options);
  const std::vector<ir::Output> outputs = graph.outputs;
  const Executable executable = runtime::make_executable(std::move(graph), std::move(compiled), device_);
  Session session(executable, inputs_.dims);
  for (const auto& [name, tensor] : inputs_.values) session.set(name, tensor.data);
  session.run();
  std::map<ir::NodeId, runtime::HostTensor> values;
  for (const ir::Output& output : outputs) {
    const std::size_t slot = executable.output_slot(output.name);
    values[output.node] = {executable.slots()[slot].dtype, session.prepared().shape(slot),
                           session.get(output.name)};
  }
  return values;
}

void ValueRuns::evaluate() {
  const ir::Graph all = with_outputs(values());
  const auto dim = [&](std::string_view name) { return inputs_.dims.find(name)->second; };
  exact_ = runtime::evaluate(all, inputs_.values, dim, runtime::Precision::exact);
  same_type_ = runtime::evaluate(all, inputs_.values, dim, runtime::Precision::same_type);
}

Verdict ValueRuns::check(ir::NodeId node, const runtime::HostTensor& value) {
  if (exact_.outputs.empty()) evaluate();
  const auto exact = exact_.outputs.find(name_of(node));
  if (exact == exact_.outputs.end()) return {true, "given", 0};  // an output that is an input
  return check_output(value, exact->second, same_type_.outputs.at(name_of(node)));
}

std::string ValueRuns::describe(ir::NodeId node) const {
  const SourceLocation& at = graph_.location(graph_[node]);
  const std::string scope = graph_.scope_path(graph_[node].scope);
  return fmt::format("{} = {} {}{}{}{}", graph_.value_name(node), to_string(graph_[node].op),
                     ir::to_string(graph_[node].type), scope.empty() ? "" : " in ", scope,
                     at.line == 0 ? "" : fmt::format(" at {}:{}", at.file, at.line));
}

}  // namespace fuse::fusec
