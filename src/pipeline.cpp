// SPDX-License-Identifier: Apache-2.0
#include "pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "codegen_cuda/custom.hpp"
#include "codegen_cuda/lower.hpp"
#include "codegen_cuda/print_cuda.hpp"
#include "ir/kernel/passes/name_divisions.hpp"
#include "ir/passes/align_layouts.hpp"
#include "ir/passes/canonical_dims.hpp"
#include "ir/passes/common_subexpressions.hpp"
#include "ir/passes/dead_code.hpp"
#include "ir/passes/drop_broadcasts.hpp"
#include "ir/passes/fold_constants.hpp"
#include "ir/passes/merge_gemms.hpp"
#include "ir/passes/open_contractions.hpp"
#include "ir/passes/simplify.hpp"
#include "ir/passes/split_concats.hpp"
#include "ir/verify.hpp"
#include "schedule/make_plan.hpp"

namespace fuse {
namespace {

struct GraphPass {
  const char* name;
  ir::Graph (*run)(const ir::Graph&, const PipelineOptions&);
  bool PipelineOptions::*wanted = nullptr;  ///< left out where the option is false
};

/// A pass that has no options.
template <ir::Graph (*pass)(const ir::Graph&)>
ir::Graph plain(const ir::Graph& graph, const PipelineOptions&) {
  return pass(graph);
}

ir::Graph simplify(const ir::Graph& graph, const PipelineOptions& options) {
  return ir::simplify(graph, {.relaxed_rounding = options.relaxed_rounding});
}

// In this order; only run_passes times, verifies and dumps them.
constexpr GraphPass graph_passes[] = {
    {"dead_code", plain<ir::dead_code>},
    {"canonical_dims", plain<ir::canonical_dims>},
    {"drop_broadcasts", plain<ir::drop_broadcasts>},
    {"open_contractions", plain<ir::open_contractions>},
    {"fold_constants", plain<ir::fold_constants>},
    {"common_subexpressions", plain<ir::common_subexpressions>},
    {"simplify", simplify},
    {"align_layouts", plain<ir::align_layouts>},
    {"common_subexpressions", plain<ir::common_subexpressions>},
    {"dead_code", plain<ir::dead_code>},
    {"merge_gemms", plain<ir::merge_gemms>, &PipelineOptions::merge_gemms},
    {"split_concats", plain<ir::split_concats>},
};

struct KernelPass {
  const char* name;
  kernel::Kernel (*run)(kernel::Kernel);
};

constexpr KernelPass kernel_passes[] = {
    {"name_divisions", kernel::name_divisions},
};

ir::Graph run_passes(ir::Graph graph, const PipelineOptions& options) {
  for (const GraphPass& pass : graph_passes) {
    if (pass.wanted && !(options.*pass.wanted)) continue;
    graph = pass.run(graph, options);
    if (options.verify) ir::verify(graph);
  }
  return graph;
}

/// "ln_layer_norm_0": the graph, the scope of what the kernel makes, and its number.
std::string kernel_name(const ir::Graph& graph, const schedule::Piece& piece, std::size_t number) {
  const ir::Node& root = graph[piece.root];
  const std::string scope = graph.scope_path(root.scope);
  const std::string what = scope.empty() ? std::string(to_string(root.op)) : scope;
  constexpr std::size_t longest = 120;
  std::string name = codegen::c_identifier(graph.name + '_' + what);
  if (name.size() > longest) name.resize(longest);
  return fmt::format("{}{}{}", name, name.back() == '_' ? "" : "_", number);
}

/// Another compiler's piece is one kernel: none of those compared splits a reduction over two launches.
schedule::Choices choices_of(const ir::Graph& graph, const schedule::Piece& piece, const Target& target,
                             const PipelineOptions& options) {
  if (options.choose) return options.choose(graph, piece, target);
  schedule::Choices choices = schedule::default_choices(graph, piece, target);
  if (options.partition.baseline != schedule::Baseline::off && choices.mapping == schedule::Mapping::split) {
    choices.mapping = schedule::Mapping::row_block;
    choices.parts = 1;
  }
  return choices;
}

schedule::PlannedKernel planned(const codegen::LoweredKernel& lowered) {
  schedule::PlannedKernel result{lowered.kernel.name, {}, lowered.extents};
  for (const codegen::Binding& binding : lowered.bindings) {
    if (const auto* scratch = std::get_if<codegen::Scratch>(&binding)) {
      result.buffers.push_back({true, 0, scratch->component});
    } else {
      result.buffers.push_back({false, std::get<ir::NodeId>(binding), 0});
    }
  }
  return result;
}

}  // namespace

PipelineOptions pipeline_options(const CompileOptions& options) {
  const auto check = [](const char* name, int value, int least, int most) {
    if (value >= least && value <= most) return;
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("compile: {} is {}", name, value),
                 .hint = fmt::format("{} to {}", least, most)});
  };
  check("layers", options.layers, 1, 3);
  check("max_inputs", options.max_inputs, 1, 400);
  PipelineOptions result{.relaxed_rounding = options.relaxed_rounding,
                         .drop_barrier = options.drop_barrier,
                         .merge_gemms = options.merge_gemms};
  schedule::PartitionOptions& partition = result.partition;
  partition.groups.layers = static_cast<std::uint8_t>((1 << options.layers) - 1);
  partition.groups.max_inputs = options.max_inputs;
  switch (options.cut) {
    case Cut::fuse:
      break;
    case Cut::apollo:
      partition.groups.rules = schedule::RuleSet::apollo;
      break;
    case Cut::xla:
      partition.baseline = schedule::Baseline::xla;
      break;
    case Cut::tvm:
      partition.baseline = schedule::Baseline::tvm;
      break;
    case Cut::one_op:
      partition.baseline = schedule::Baseline::none;
      break;
  }
  return result;
}

Compiled run_pipeline(const ir::Graph& graph, const Target& target, const PipelineOptions& options) {
  ir::verify(graph, ErrorKind::user);
  Compiled result;
  result.guards = analysis::guards_of(graph);
  result.graph = run_passes(graph, options);
  const analysis::Facts facts = analysis::facts_of(result.graph);
  result.partition = schedule::partition(result.graph, options.partition, target);
  if (options.verify) {
    if (options.partition.baseline == schedule::Baseline::off) {
      schedule::verify(result.graph, result.partition.grouping, options.partition.groups, target);
    }
    schedule::verify(result.graph, result.partition);
  }

  std::vector<schedule::PlannedKernel> planned_kernels;
  for (const schedule::Piece& piece : result.partition.pieces) {
    if (piece.kind != schedule::Piece::Kind::kernel) continue;
    const schedule::Choices choices = choices_of(result.graph, piece, target, options);
    result.schedules.push_back(schedule::make_schedule(result.graph, piece, choices, target, facts));
    if (options.verify) schedule::verify(result.graph, result.schedules.back(), target);
    for (std::size_t i = 0; i < result.schedules.back().kernels.size(); ++i) {
      const std::string name = kernel_name(result.graph, piece, result.kernels.size());
      codegen::LoweredKernel lowered = codegen::lower(result.graph, result.schedules.back(), i, name);
      if (options.verify) kernel::verify(lowered.kernel, target.shared_per_block);
      for (const KernelPass& pass : kernel_passes) {
        lowered.kernel = pass.run(std::move(lowered.kernel));
        if (options.verify) kernel::verify(lowered.kernel, target.shared_per_block);
      }
      planned_kernels.push_back(planned(lowered));
      result.kernels.push_back(std::move(lowered.kernel));
    }
  }
  const std::vector<codegen::CustomText> customs =
      codegen::custom_texts(result.graph, result.partition, result.kernels);
  for (const codegen::CustomText& custom : customs) planned_kernels.push_back({custom.name, {}, {}});
  result.source =
      codegen::print_cuda(codegen::c_identifier(graph.name), result.kernels, customs, options.drop_barrier);
  result.plan = schedule::make_plan(result.graph, result.partition, result.schedules, planned_kernels);
  if (options.verify) schedule::verify(result.plan);
  return result;
}

}  // namespace fuse
