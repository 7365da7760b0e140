// What the GEMM can take over from a matmul's only user without a change of bits.
//
// Before:
//   %3 = matmul %x, %w : f32[B, 64]
//   %4 = broadcast_in_dim %bias {dims = [1]} : f32[B, 64]
//   %5 = add %3, %4 : f32[B, 64]
// After:
//   one GEMM makes %5: kind bias, operand %bias
//
// The accumulator is f32 (f64), and an epilogue computes in it. So it is taken where the matmul's result has
// that type: a rounding to f16 or bf16 between the two would be lost. It is taken where it saves traffic: the
// user's result needs memory anyway, so that a kernel that reads the GEMM's result and writes this one is
// removed. A kernel that reads the user's result computes it for free. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "plan/epilogue_kind.hpp"

namespace fuse::schedule {

struct GemmEpilogue {
  EpilogueKind kind = EpilogueKind::none;
  ir::NodeId result = 0;   ///< the user, which the GEMM makes
  ir::NodeId operand = 0;  ///< bias: the vector; add: the tensor; needs memory. scale: unused
  double scale = 1;
};

/// `users`: ir::users, `in_memory`: ir::memory_values. It takes constant time.
std::optional<GemmEpilogue> gemm_epilogue(const ir::Graph& graph, ir::NodeId matmul,
                                          const std::vector<std::vector<ir::NodeId>>& users,
                                          const std::vector<bool>& in_memory);

}  // namespace fuse::schedule
