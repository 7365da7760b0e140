// What kernels of one executable issue for each element, beside those of a build for each shape: counted in
// their SASS (bench/sass_table), nothing is measured. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "dynamic_shapes/dynamic_graphs.hpp"
#include "dynamic_shapes/shapes.hpp"

namespace fuse::bench {

/// Prints a table. Throws std::runtime_error or fuse::Error where nvdisasm, NVRTC or the GPU's clocks are
/// missing.
void print_instructions(const std::vector<DynamicGraph>&, const Settings&, const std::string& profile);

}  // namespace fuse::bench
