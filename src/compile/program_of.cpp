// SPDX-License-Identifier: Apache-2.0
#include "compile/program_of.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "analysis/facts.hpp"
#include "base/quoting.hpp"
#include "compile/signature_of.hpp"

namespace fuse::runtime {
namespace {

constexpr std::size_t most_ops = 8;  // the most ops that a label names

/// Each once, in the order of the ops. A status has 509 bytes for all it says.
std::string lines_of(const ir::Graph& graph, const std::vector<ir::NodeId>& nodes) {
  constexpr std::size_t longest = 100;
  std::string text;
  std::set<ir::LocationId> seen;
  for (const ir::NodeId id : nodes) {
    const SourceLocation& at = graph.location(graph[id]);
    if (at.line == 0 || !seen.insert(graph[id].location).second) continue;
    const std::string line = fmt::format("{}{}:{}", text.empty() ? "" : ", ", at.file, at.line);
    if (text.size() + line.size() > longest) return text + (text.empty() ? "" : ", ...");
    text += line;
  }
  return text;
}

StepOrigin origin_of(const Compiled& compiled, const schedule::Step& step) {
  const ir::Graph& graph = compiled.graph;
  StepOrigin origin{.ops = describe_ops(graph, step.nodes, most_ops), .lines = {}, .op = {}, .type = {}};
  if (step.nodes.empty()) return origin;
  origin.lines = lines_of(graph, step.nodes);
  const ir::Node& last = graph[step.nodes.back()];
  const std::vector<schedule::GroupId>& groups = compiled.partition.grouping.of;
  if (step.nodes.back() < groups.size()) origin.group = groups[step.nodes.back()];
  origin.op = std::string(to_string(last.op));
  origin.type = ir::to_string(last.type);
  origin.location = graph.location(last);
  return origin;
}

/// The plan's extents are canonical, the user's as they were written.
void check_extents_agree(const ir::Graph& graph, const Program& program) {
  std::optional<analysis::Facts> facts;
  const auto same = [&](const Dim& mine, const Dim& planned) {
    if (mine == planned) return true;
    if (!facts) facts = analysis::facts_of(graph);
    return facts->equal(mine, planned);
  };
  const std::vector<Slot>& slots = program.signature.slots;
  for (std::size_t i = 0; i < std::min(slots.size(), program.plan.values.size()); ++i) {
    const std::vector<Dim>&mine = slots[i].dims, &planned = program.plan.values[i].dims;
    if (std::equal(mine.begin(), mine.end(), planned.begin(), planned.end(), same)) continue;
    throw Error(
        {.kind = ErrorKind::internal,
         .code = ErrorCode::internal,
         .message = fmt::format("value {} of the plan has other extents than '{}'", i, slots[i].name)});
  }
}

/// The text of a kernel, without its name.
std::string kernel_text(const codegen::Source& source, std::uint32_t kernel) {
  if (source.starts.empty()) return fmt::format("{}", kernel);  // one of a text that is not cut
  const std::size_t begin = source.starts.at(kernel);
  const std::size_t end = kernel + 1 < source.starts.size() ? source.starts[kernel + 1] : source.body.size();
  std::string text = source.body.substr(begin, end - begin);
  const std::string& name = source.kernels.at(kernel).name;
  for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos;) text.erase(at, name.size());
  return text;
}

/// Program::setup.
std::string setup_text(const schedule::Plan& plan, const codegen::Source& source) {
  if (plan.setup.empty()) return {};
  std::string text;
  std::vector<std::string> names(plan.values.size());
  const std::vector<bool> used = schedule::used_by_setup(plan);
  std::size_t count = 0;
  for (std::size_t id = 0; id < plan.values.size(); ++id) {
    if (!used[id]) continue;
    const schedule::PlanValue& value = plan.values[id];
    const bool given = value.kind == schedule::PlanValue::Kind::parameter;
    names[id] = given ? in_quotes(value.name) : fmt::format("{}", count++);
    text += fmt::format("{} {} {}", static_cast<int>(value.kind), names[id],
                        ir::to_string(ir::Type{value.dtype, value.dims}));
    if (value.inside)
      text += fmt::format(" in {} at {}", names[value.inside->whole], value.inside->offset_bytes.to_string());
    text += '\n';
  }
  for (const schedule::Step& step : plan.setup) {
    text += fmt::format("{}:", step.work.index());
    for (const std::vector<schedule::ValueId>* values : {&step.reads, &step.writes})
      for (const schedule::ValueId id : *values) text += ' ' + names[id];
    if (const auto* work = std::get_if<schedule::KernelStep>(&step.work)) {
      text += fmt::format(" grid {}", work->grid.to_string());
      for (const schedule::ValueId id : work->buffers) text += ' ' + names[id];
      for (const Dim& extent : work->extents) text += ' ' + extent.to_string();
      text += '\n' + kernel_text(source, work->kernel);
    } else if (const auto* gemm = std::get_if<schedule::GemmStep>(&step.work)) {
      text += fmt::format(" {} {}", gemm->transpose_a, gemm->transpose_b);
    }
    text += '\n';
  }
  return text;
}

}  // namespace

Program program_of(const ir::Graph& graph, const Compiled& compiled) {
  Program program{.signature = signature_of(graph, compiled.guards),
                  .plan = compiled.plan,
                  .streams = compiled.streams,
                  .run = compiled.run.value_or(schedule::RunDecision()),
                  .source_name = compiled.source.name,
                  .kernels = compiled.source.kernels,
                  .setup = setup_text(compiled.plan, compiled.source)};
  for (std::vector<schedule::Step>* steps : {&program.plan.setup, &program.plan.steps}) {
    for (schedule::Step& step : *steps) {
      step.origin = static_cast<std::uint32_t>(program.origins.size());
      program.origins.push_back(origin_of(compiled, step));
    }
  }
  for (const schedule::Group& group : compiled.partition.grouping.groups) {
    program.groups.push_back(describe_ops(compiled.graph, group.nodes, most_ops));
  }
  check_extents_agree(graph, program);
  return program;
}

std::string describe_ops(const ir::Graph& graph, const std::vector<ir::NodeId>& nodes, std::size_t most) {
  std::vector<std::pair<ir::ScopeId, std::string>> groups;
  std::size_t shown = 0;
  for (const ir::NodeId id : nodes) {
    if (shown == most) break;
    ++shown;
    const ir::Node& node = graph[id];
    if (groups.empty() || groups.back().first != node.scope) groups.emplace_back(node.scope, "");
    std::string& text = groups.back().second;
    text += (text.empty() ? "" : ", ") + std::string(to_string(node.op));
  }
  std::string text;
  for (const auto& [scope, ops] : groups) {
    text += (text.empty() ? "" : "; ") + ops;
    if (scope != 0) text += " in " + graph.scope_path(scope);
  }
  if (shown < nodes.size()) text += fmt::format("; and {} more", nodes.size() - shown);
  return text;
}

}  // namespace fuse::runtime
