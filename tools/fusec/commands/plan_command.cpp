// fusec plan: how a graph is cut, scheduled and run. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/access.hpp"
#include "fusec/commands.hpp"
#include "fusec/compiled_graph.hpp"
#include "fusec/print/plan_dot.hpp"
#include "fusec/print/plan_picture.hpp"

namespace fuse::fusec {
namespace {

std::string summary_line(const CompiledGraph& compiled) {
  std::size_t gemms = 0;
  for (const schedule::Step& step : compiled.stages.plan.steps) {
    gemms += std::holds_alternative<schedule::GemmStep>(step.work);
  }
  int barriers = 0;
  for (const codegen::KernelInfo& kernel : compiled.stages.source.kernels) barriers += barrier_count(kernel);
  const std::size_t setup = compiled.stages.plan.setup.size();
  return fmt::format("kernels: {}  gemms: {}{}  barriers: {}\n", compiled.stages.source.kernels.size(), gemms,
                     setup == 0 ? "" : fmt::format("  setup: {}", setup), barriers);
}

std::string kernel_table(const CompiledGraph& compiled) {
  const runtime::Binding binding = compiled.binding();
  const std::vector<KernelOrigin> origins = kernel_origins(compiled.stages);
  std::vector<std::vector<std::string>> rows = {
      {"kernel", "segment", "grid", "blocks", "threads", "index", "shared", "barriers", "nest"}};
  for (std::size_t i = 0; i < origins.size(); ++i) {
    const codegen::KernelInfo& kernel = compiled.stages.source.kernels[i];
    const schedule::KernelSchedule& launch = *origins[i].launch;
    const std::size_t others = origins[i].segments - 1;
    rows.push_back(
        {kernel.name,
         fmt::format("{}{}", origins[i].segment, others == 0 ? "" : fmt::format(" and {} more", others)),
         launch.grid.to_string(), std::to_string(binding.value(launch.grid)),
         std::to_string(kernel.block_threads), std::string(to_string(compiled.stages.kernels[i].index_type)),
         std::to_string(kernel.shared_bytes), std::to_string(barrier_count(kernel)), loops_text(launch)});
  }
  return table(rows);
}

std::string kernel_text(const CompiledGraph& compiled) {
  std::string text;
  for (const kernel::Kernel& kernel : compiled.stages.kernels) text += kernel::print(kernel) + '\n';
  return text;
}

/// Of equal segments the first one's.
std::string schedules_text(const Compiled& stages) {
  std::string text;
  const schedule::Schedule* last = nullptr;
  for (const KernelOrigin& origin : kernel_origins(stages)) {
    if (origin.schedule == last) continue;  // its second launch
    last = origin.schedule;
    text += schedule::print(stages.graph, *last);
    if (origin.segments > 1) text += fmt::format("  shared by {} segments\n", origin.segments);
  }
  return text;
}

/// Which builds there are, and which of them this is.
std::string builds_text(const CompiledGraph& compiled) {
  std::string text = fmt::format("one of {} builds by the dims: this is build {}\n",
                                 compiled.regions.each.size(), compiled.build);
  text += to_string(compiled.regions.table, "  ", "build");
  for (std::size_t i = 0; i < compiled.regions.each.size(); ++i)
    text += "  " + build_text(compiled.regions, i) + '\n';
  return text;
}

}  // namespace

std::string build_line(const CompiledGraph& compiled) {
  return compiled.regions.each.size() > 1 ? build_text(compiled.regions, compiled.build) + '\n'
                                          : std::string();
}

std::string plan_text(const CompiledGraph& compiled) {
  const Compiled& stages = compiled.stages;
  std::string text = fmt::format("graph {} for {}, blocks at dims: {}\n\n", compiled.source.name,
                                 compiled.target.name, to_string(compiled.dims));
  for (const ir::Guard& guard : stages.guards) text += "guard " + guard.to_string() + '\n';
  if (!stages.guards.empty()) text += '\n';
  if (compiled.regions.each.size() > 1) text += builds_text(compiled) + '\n';
  text += schedule::print(stages.graph, stages.partition) + '\n';
  if (const std::string line = decisions_line(stages); !line.empty()) text += line + '\n';
  text += schedules_text(stages);
  const runtime::Binding binding = compiled.binding();
  for (std::size_t i = 0; i < stages.versions.size(); ++i) {
    text +=
        fmt::format("versions of table {}, each a schedule above; these dims take version {}\n", i,
                    version_for(stages.plan.tables[i], [&](const Dim& dim) { return binding.value(dim); })) +
        versions_text(stages, i);
  }
  text += '\n' + schedule::print(stages.plan) + '\n';
  if (!stages.kernels.empty()) text += kernel_table(compiled) + '\n';
  return text + summary_line(compiled);
}

CompiledGraph compile_graph(const GraphOptions& options, bool record) {
  const Graph graph = load_graph(options.file);
  const Target target = target_profile(options.profile);
  PipelineOptions how = pipeline_options(options.compile);
  how.record = record;
  check_drop_barrier(ir_of(graph), target, how);
  CompiledGraph result;
  result.target = target;
  result.source = ir_of(graph);
  result.partition = how.partition;
  result.dims = resolve_dims(result.source, options.dims);
  result.regions = build_regions(result.source, target, how);
  const runtime::Binding binding = result.binding();
  result.build = version_for(result.regions.table, [&](const Dim& dim) { return binding.value(dim); });
  result.stages = run_pipeline(graph_of(result.source, result.regions.each[result.build]), target, how);
  return result;
}

std::vector<KernelOrigin> kernel_origins(const Compiled& compiled) {
  std::vector<KernelOrigin> origins(compiled.kernels.size());
  for (std::size_t number = 0; number < compiled.schedules.size(); ++number) {
    const schedule::Schedule& schedule = compiled.schedules[number];
    for (std::size_t i = 0; i < schedule.kernels.size(); ++i) {
      KernelOrigin& origin = origins[compiled.first_kernel[number] + i];
      if (origin.segments++ == 0) origin = {&schedule, &schedule.kernels[i], compiled.segment_of[number], 1};
    }
  }
  return origins;
}

std::vector<bool> constant_nodes(const ir::Graph& graph) {
  std::vector<bool> result;
  for (const ir::Node& node : graph.nodes) {
    const ir::OpInfo& row = info(node.op);
    const bool moves = row.has(ir::Trait::source) || row.has(ir::Trait::movement);
    result.push_back(
        moves && !ir::is_given(node) &&
        std::all_of(node.operands.begin(), node.operands.end(), [&](ir::NodeId o) { return result[o]; }));
  }
  return result;
}

namespace {

/// The text that the options ask for instead of the plan, and where it goes.
struct Instead {
  const char* option;
  const std::string& file;  ///< "-": the standard output
  std::string (*text)(const CompiledGraph&);
  bool one_way = true;  ///< of the one way to run for all dims
};

std::string decisions_text(const CompiledGraph& compiled) {
  return schedule::print(decisions_of(compiled.stages, compiled.target));
}

int write_instead(const Instead& instead, const PlanOptions& options) {
  const bool to_stdout = instead.file == "-";
  if (!to_stdout) try_file(instead.option, instead.file, {{"the graph", options.graph.file}});
  GraphOptions graph = options.graph;
  if (instead.one_way) graph.compile.versions = 1;
  const std::string text = instead.text(compile_graph(graph, true));
  if (to_stdout) {
    fmt::print("{}", text);
  } else {
    write_file(instead.file, text);
    print_line("wrote " + instead.file);
  }
  return 0;
}

}  // namespace

int execute(const PlanOptions& options) {
  const auto dot = [](const CompiledGraph& compiled) { return plan_dot(compiled.stages); };
  if (!options.dot.empty()) return write_instead({"--dot", options.dot, dot}, options);
  if (!options.picture.empty()) return write_instead({"--picture", options.picture, plan_picture}, options);
  if (!options.decisions.empty())
    return write_instead({"--decisions", options.decisions, decisions_text, false}, options);
  const CompiledGraph compiled = compile_graph(options.graph);
  if (options.kernels) fmt::print("{}", kernel_text(compiled));
  fmt::print("{}", options.json ? plan_json(compiled) : plan_text(compiled));
  return 0;
}

}  // namespace fuse::fusec
