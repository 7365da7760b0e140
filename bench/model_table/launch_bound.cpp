// SPDX-License-Identifier: Apache-2.0
#include "model_table/launch_bound.hpp"

#include <algorithm>
#include <variant>
#include <vector>

namespace fuse::bench {
namespace {

enum class Made : std::uint8_t { by_no_step, by_kernel, by_gemm };

std::vector<Made> makers_of(const Compiled& compiled) {
  std::vector<Made> made(compiled.graph.nodes.size(), Made::by_no_step);
  const auto mark = [&](bool gemms) {
    for (const schedule::Step& step : compiled.plan.steps) {
      const bool gemm = std::holds_alternative<schedule::GemmStep>(step.work);
      const bool kernel = std::holds_alternative<schedule::KernelStep>(step.work);
      if (gemms ? !gemm : !kernel) continue;
      for (const ir::NodeId id : step.nodes) made[id] = gemms ? Made::by_gemm : Made::by_kernel;
    }
  };
  mark(false);
  mark(true);
  return made;
}

/// The most runs on a path that ends here: where the last op that is no view is in a run, and where it is
/// not.
struct Runs {
  std::int64_t inside = -1, outside = -1;  // -1: there is no such path
};

}  // namespace

StepCounts step_counts(const schedule::Plan& plan) {
  StepCounts counts;
  for (const schedule::Step& step : plan.steps) {
    const bool gemm = std::holds_alternative<schedule::GemmStep>(step.work);
    const bool kernel = std::holds_alternative<schedule::KernelStep>(step.work);
    ++(gemm ? counts.gemms : kernel ? counts.kernels : counts.copies);
  }
  return counts;
}

std::int64_t forced_launches(const Compiled& compiled) {
  const std::vector<Made> made = makers_of(compiled);
  std::vector<Runs> runs(compiled.graph.nodes.size());
  std::int64_t most = 0;
  for (ir::NodeId id = 0; id < runs.size(); ++id) {
    Runs before{.outside = compiled.graph.nodes[id].operands.empty() ? 0 : -1};
    for (const ir::NodeId operand : compiled.graph.nodes[id].operands) {
      before.inside = std::max(before.inside, runs[operand].inside);
      before.outside = std::max(before.outside, runs[operand].outside);
    }
    switch (made[id]) {
      case Made::by_no_step:
        runs[id] = before;
        break;
      case Made::by_kernel:
        runs[id].inside = std::max(before.inside, before.outside + 1);
        break;
      case Made::by_gemm:
        runs[id].outside = std::max(before.inside, before.outside);
        break;
    }
    most = std::max({most, runs[id].inside, runs[id].outside});
  }
  return most;
}

}  // namespace fuse::bench
