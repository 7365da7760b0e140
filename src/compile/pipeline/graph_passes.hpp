// The passes over graphs in their order (docs/passes.md). SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compile/pipeline/pipeline.hpp"
#include "compile/pipeline/stopwatch.hpp"
#include "ir/graph/ir_graph.hpp"
#include "ir/graph/question.hpp"

namespace fuse {

/// Runs the passes that the options want, and plants their fault where it is a wrong rewrite. Throws
/// invalid_argument for a fault that fits nothing.
ir::Graph run_graph_passes(ir::Graph, const PipelineOptions&, const ir::Decide&, Stopwatch&);

}  // namespace fuse
