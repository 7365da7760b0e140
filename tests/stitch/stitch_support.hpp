// What the tests of stitched kernels share. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/access.hpp"
#include "compile/pipeline/experiments.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "compile/traffic.hpp"
#include "support/catch.hpp"
#include "support/counted_run.hpp"

namespace fuse::test {

/// By one way to run for all dims: of it the tests say what it is.
inline Compiled compiled(const Graph& graph, const char* profile, CompileOptions options = {}) {
  options.versions = 1;
  return run_pipeline(ir_of(graph), target_profile(profile), pipeline_options(options));
}

/// Why an H200 cannot run the plan's first kernel by its choices after `change`; empty if it can.
template <class F>
std::string misfit_after(const Compiled& made, const F& change) {
  schedule::KernelChoices choices = made.schedules.at(0).choices;
  change(choices);
  return schedule::misfit(made.graph, made.partition.segments.at(0), choices, target_profile("h200"));
}

/// Of values of 1 MB and more, in one run.
inline runtime::Traffic large_traffic(const Graph& graph) {
  const Device device = Device::emulated({.checked = true, .optimization = 0});
  const Executable executable = compile(graph, device);
  Session session(executable);
  const std::vector<runtime::KernelCounts> counts = counted_run(executable, session);
  return runtime::traffic_of(stages_of(executable), ir_of(graph), {}, counts).large_values;
}

/// Checks that without any one of their barriers the kernels that run fault. How many barriers there are.
inline int check_barriers(const Graph& graph, const char* profile, const CompileOptions& options) {
  const Device device = Device::emulated({.profile = profile, .checked = true, .optimization = 0});
  const Compiled whole = compiled(graph, profile, options);
  const std::vector<std::size_t> uses = kernel_uses(whole);
  int barrier = 0, planted = 0;
  for (std::size_t k = 0; k < whole.source.kernels.size(); ++k) {
    for (const codegen::OpLine& line : whole.source.kernels[k].lines) {
      if (!line.barrier) continue;
      CompileOptions without = options;
      without.versions = 1;
      change_experiments(without).fault = "barrier." + std::to_string(barrier++);
      if (uses[k] == 0) continue;  // parts of a kernel that the device has slots for
      ++planted;
      INFO("line " << line.line << " of " << whole.source.kernels[k].name);
      CHECK_THROWS_AS(output_bytes(graph, device, without), Error);
    }
  }
  return planted;
}

}  // namespace fuse::test
