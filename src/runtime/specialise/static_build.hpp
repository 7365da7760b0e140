// A static build: a graph compiled for one set of dims, with numbers in place of its symbols.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/dim_values.hpp>
#include <fuse/executable.hpp>
#include <fuse/explore.hpp>

#include "compile/builds/builds.hpp"

namespace fuse::runtime {

/// `usual` is the same graph, compiled for all dims. With Bits::keep its kernels for these dims have the same
/// loops here, so that they add in the same order. Throws invalid_argument where that cannot be, and what
/// compile throws.
Executable static_build(const Graph&, const DimValues&, const CompiledBuilds& usual, const Device&,
                        const CompileOptions&, Bits);

}  // namespace fuse::runtime
