// The functions of vectors that kernels of the CPU device call. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace fuse::codegen {

/// C++17 text: static functions of whole parts (part_exp, part_tanh, ...). What stands before it defines
/// FUSE_VECTOR_BYTES (64, 32 or 16), part_lanes, f32p, i32p and u32p, and declares the functions of libm.
/// Built with -ffp-contract=off: a fused multiplication and addition is only ever written out.
/// tests/proofs_cpu/ shows the errors of all floats.
extern const std::string_view cpu_math;

}  // namespace fuse::codegen
