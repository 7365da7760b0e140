// The key of a compilation: all that decides what is made, as text. Two equal keys are one program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/executable.hpp>
#include <string>

#include "ir/graph/ir_graph.hpp"
#include "runtime/device/backend.hpp"

namespace fuse::runtime {

/// Sources of this build of fuse, what the device is, how its kernels are built, the options that change what
/// is made, planted faults, and the graph with its lines, which errors name. Not in it is the version of
/// cuBLASLt: nothing that it decides is kept, prepare asks it anew.
std::string cache_key(const ir::Graph& graph, const Backend& backend, const CompileOptions& options);

}  // namespace fuse::runtime
