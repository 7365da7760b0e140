// The parts of the table, in the order in which they are emitted. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "codegen_cuda/primitives/primitives.hpp"

namespace fuse::codegen {

std::vector<Primitive> memory_primitives();
std::vector<Primitive> barrier_primitives();
std::vector<Primitive> arithmetic_primitives();
std::vector<Primitive> special_primitives();
std::vector<Primitive> division_primitives();
std::vector<Primitive> conversion_primitives();
std::vector<Primitive> pair_primitives();
std::vector<Primitive> random_primitives();
std::vector<Primitive> warp_primitives();

extern const std::string_view host_math;    ///< the functions of CUDA that C++ bodies call
extern const std::string_view host_device;  ///< how `struct fuse_device` starts; its members follow

}  // namespace fuse::codegen
