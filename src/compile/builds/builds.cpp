// SPDX-License-Identifier: Apache-2.0
#include "compile/builds/builds.hpp"

#include <fmt/format.h>

#include "base/access.hpp"

namespace fuse {

CompiledBuilds run_builds(const ir::Graph& graph, const Target& target, const PipelineOptions& options) {
  CompiledBuilds builds{.regions = build_regions(graph, target, options)};
  for (const schedule::Version& region : builds.regions.each)
    builds.each.push_back(run_pipeline(schedule::graph_of(graph, region), target, options));
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
