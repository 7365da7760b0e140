// SPDX-License-Identifier: Apache-2.0
#include "compile/builds/builds.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/access.hpp"

namespace fuse {
namespace {

/// Whether some setup reads a parameter whose extents have symbols: then the packed memory depends on the
/// dims, and builds cannot share it. `whole`: the plan for all dims, whose inputs and parameters have the
/// numbers of those of every build.
bool packs_symbolic(const schedule::Plan& whole, const std::vector<Compiled>& builds) {
  const auto is_symbolic = [&](schedule::ValueId id) {
    const schedule::PlanValue& value = whole.values[id];
    return value.kind == schedule::PlanValue::Kind::parameter && !product(value.dims).is_constant();
  };
  return std::any_of(builds.begin(), builds.end(), [&](const Compiled& build) {
    const std::vector<schedule::ValueId> roots = schedule::roots(build.plan);
    return std::any_of(build.plan.setup.begin(), build.plan.setup.end(), [&](const schedule::Step& step) {
      return std::any_of(step.reads.begin(), step.reads.end(), [&](schedule::ValueId id) {
        return roots[id] < whole.values.size() && is_symbolic(roots[id]);
      });
    });
  });
}

}  // namespace

CompiledBuilds run_builds(const ir::Graph& graph, const Target& target, const PipelineOptions& options) {
  CompiledBuilds builds{.regions = build_regions(graph, target, options)};
  for (const schedule::Version& region : builds.regions.each) {
    const bool everywhere = builds.each.empty();
    builds.each.push_back(
        run_pipeline(everywhere ? graph : schedule::graph_of(graph, region), target, options));
  }
  if (!packs_symbolic(builds.each.front().plan, builds.each)) return builds;
  builds.regions = {.each = {{}}};
  builds.each.resize(1);
  return builds;
}

std::string build_text(const schedule::Versions& regions, std::size_t number) {
  const schedule::Version& region = regions.each.at(number);
  std::string when;
  for (const DimRelation& condition : region.conditions)
    when += (when.empty() ? "for " : ", ") + condition.to_string();
  return fmt::format("build {} of {}, {}; {:.0f}% of the cells", number, regions.each.size(),
                     when.empty() ? "for all other dims" : when, 100 * region.share);
}

}  // namespace fuse
