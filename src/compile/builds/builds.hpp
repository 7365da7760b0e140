// Builds: one graph compiled several times, each for a region of its dims, where which ops share a kernel,
// which GEMMs are merged, or what needs a transpose depends on the dims (BladeDISC, 5.2.1; docs/versions.md).
// Versions (schedule/versions) choose between kernels of one cut; builds, between cuts.
//
// Before:  attention of [B, T, heads * 64], one cut for B = 8 and T = 128
// After:   test 0: B <= 1  yes: build 1  no: build 0     with B = 1 no transposes of heads
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "compile/pipeline/pipeline.hpp"
#include "ir/graph/ir_graph.hpp"
#include "schedule/versions/versions.hpp"
#include "target/target.hpp"

namespace fuse {

/// The regions of the graph's dims for which other cuts are better, and under what each is compiled. The
/// first is compiled for all dims and the declared hints; it is taken wherever no other one is. Pure: same
/// arguments, same regions. Nothing is lowered. One where the options say how a kernel is cut or chosen.
schedule::Versions build_regions(const ir::Graph&, const Target&, const PipelineOptions&);

/// What a graph was compiled to. `each` has one build or several, as `regions.each`.
struct CompiledBuilds {
  schedule::Versions regions{};
  std::vector<Compiled> each{};
};

/// run_pipeline for each region of the dims.
CompiledBuilds run_builds(const ir::Graph&, const Target&, const PipelineOptions& = {});

/// "build 1 of 2, for B <= 1; 17% of the cells"
std::string build_text(const schedule::Versions& regions, std::size_t number);

}  // namespace fuse
