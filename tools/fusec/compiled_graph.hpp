// A graph compiled without a device, with values for its dims: what plan and emit show.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "commands.hpp"
#include "common.hpp"
#include "compile/builds/builds.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "compile/signature_of.hpp"
#include "runtime/execute/binding.hpp"

namespace fuse::fusec {

struct CompiledGraph {
  Target target;
  ir::Graph source;              ///< as it was read
  schedule::Versions regions{};  ///< the builds of the graph
  std::uint32_t build = 0;       ///< the one for the dims
  Compiled stages;               ///< of this build
  DimValues dims;
  schedule::PartitionOptions partition;

  runtime::Binding binding() const { return {runtime::signature_of(source, {}), dims}; }
};

/// `record`: for decisions_of.
CompiledGraph compile_graph(const GraphOptions& options, bool record = false);

/// The launch that a kernel is, and the first of the equal segments that run it.
struct KernelOrigin {
  const schedule::Schedule* schedule = nullptr;
  const schedule::KernelSchedule* launch = nullptr;
  std::size_t segment = 0;   ///< index in the partition
  std::size_t segments = 0;  ///< that share it
};
/// Of each kernel that a schedule gave; users' kernels stand behind them.
std::vector<KernelOrigin> kernel_origins(const Compiled& compiled);

/// Of each node: a constant, or what only moves constants. The pictures leave them out.
std::vector<bool> constant_nodes(const ir::Graph& graph);

/// "build 1 of 2, for B <= 1; 17% of the cells\n", where there are several.
std::string build_line(const CompiledGraph& compiled);

/// The plan as `fusec plan` prints it.
std::string plan_text(const CompiledGraph& compiled);

/// The plan as a JSON text; docs/fusec.md explains it.
std::string plan_json(const CompiledGraph& compiled);

}  // namespace fuse::fusec
