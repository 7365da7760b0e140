// Kernels that tests search: each is a graph cut by the compiler into one kernel of one phase, on one
// profile. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/fuse.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "support/nest_segments.hpp"

namespace fuse::test {

struct SearchedKernel {
  std::string name{};
  ir::Graph graph{};
  schedule::Segment segment{};
  Target target{};
};

/// The kernels of a graph on a profile.
inline std::vector<SearchedKernel> kernels_of(const std::string& name, const Graph& g, const char* profile) {
  std::vector<SearchedKernel> kernels;
  const Target target = target_profile(profile);
  const Compiled made = run_pipeline(ir_of(g), target, {});
  for (const schedule::Segment& segment : made.partition.segments) {
    if (segment.kind != schedule::Segment::Kind::kernel) continue;
    kernels.push_back(
        {name + " on " + profile + ", " + made.graph.value_name(segment.root), made.graph, segment, target});
  }
  return kernels;
}

/// The phases of nest_segments, and some in f16, of these extents.
inline std::vector<SearchedKernel> phase_kernels(std::int64_t rows, std::int64_t columns,
                                                 const char* profile) {
  std::vector<NestPhase> phases = nest_segments(rows, columns);
  const auto add = [&](const char* name, const auto& fill) {
    Graph g(name);
    fill(g, g.input("x", f16, {rows, columns}));
    phases.push_back({name, std::move(g)});
  };
  add("softmax f16", [](Graph& g, const Tensor& x) { g.output("y", softmax(x)); });
  add("row sum f16", [](Graph& g, const Tensor& x) { g.output("y", sum(x, {1})); });
  add("column sum f16", [](Graph& g, const Tensor& x) { g.output("y", sum(x, {0})); });
  add("elements f16", [](Graph& g, const Tensor& x) { g.output("y", exp(x) + x); });
  std::vector<SearchedKernel> kernels;
  for (const NestPhase& phase : phases) {
    for (SearchedKernel& each : kernels_of(phase.name, phase.graph, profile)) {
      if (each.segment.phases.size() == 1) kernels.push_back(std::move(each));
    }
  }
  return kernels;
}

}  // namespace fuse::test
