// SPDX-License-Identifier: Apache-2.0
#include "fusec/values/value_runs.hpp"

#include <fmt/format.h>

#include <fuse/session.hpp>
#include <utility>

#include "base/access.hpp"
#include "compile/compile.hpp"
#include "eval/evaluate.hpp"
#include "ir/graph/kept_values.hpp"

namespace fuse::fusec {

ValueRuns::ValueRuns(const ir::Graph& graph, const Inputs& inputs, const Device& device, Rewrite rewrite)
    : graph_(graph),
      inputs_(inputs),
      device_(device),
      rewrite_(std::move(rewrite)),
      all_(ir::with_kept(graph, values())),
      checker_(all_, inputs.values, [&](std::string_view name) { return inputs.dims.find(name)->second; }) {}

std::vector<ir::NodeId> ValueRuns::values() const {
  std::vector<ir::NodeId> nodes;
  for (const ir::NodeId id : ir::live_values(graph_)) {
    if (!ir::is_given(graph_[id])) nodes.push_back(id);
  }
  return nodes;
}

std::map<ir::NodeId, runtime::HostTensor> ValueRuns::run(const std::vector<ir::NodeId>& nodes,
                                                         const PipelineOptions& options) const {
  ir::Graph graph = ir::with_kept(graph_, nodes);
  if (rewrite_) graph = rewrite_(graph);
  Compiled compiled = run_pipeline(graph, backend_of(device_)->target(), options);
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

Verdict ValueRuns::check(ir::NodeId node, const runtime::HostTensor& value) {
  if (ir::is_given(graph_[node])) return {true, "given", 0};  // an output that is an input
  return checker_.check(ir::kept_name(graph_, node), value);
}

std::optional<WrongValue> ValueRuns::first_wrong(const std::vector<ir::NodeId>& kept,
                                                 const PipelineOptions& options) {
  for (const auto& [node, value] : run(kept, options)) {
    const Verdict verdict = check(node, value);
    if (!verdict.ok) return WrongValue{node, kept, verdict.text};
  }
  return std::nullopt;
}

std::optional<WrongValue> ValueRuns::first_wrong_of_all(const PipelineOptions& options,
                                                        const std::function<void(std::string)>& now) {
  std::optional<WrongValue> output = first_wrong({}, options);
  if (!output) return output;
  const std::vector<ir::NodeId> all = values();
  // What does not compile or run with values kept tells nothing.
  const auto attempt = [&](const std::vector<ir::NodeId>& kept) -> std::optional<WrongValue> {
    try {
      return first_wrong(kept, options);
    } catch (const Error&) {
      return std::nullopt;
    }
  };
  if (now) now(fmt::format("keeping all {} values", all.size()));
  if (auto wrong = attempt(all)) return wrong;
  for (const ir::NodeId node : all) {
    if (node >= output->node) break;
    if (now) now("keeping " + graph_.value_name(node));
    if (auto wrong = attempt({node}); wrong && wrong->node == node) return wrong;
  }
  return output;
}

std::string ValueRuns::describe(ir::NodeId node) const {
  const SourceLocation& at = graph_.location(graph_[node]);
  return ir::describe_value(graph_, node) + (at.line == 0 ? "" : fmt::format(" at {}:{}", at.file, at.line));
}

}  // namespace fuse::fusec
