// How a GEMM reads and writes matrices that do not lie back to back: heads beside each other, a part of a
// cache. A call of the library takes one stride between rows and one between the matrices of its batch, for
// each operand; a batch of two strides takes several calls, or a step that copies.
//
// Before:  segment gemm {%5} batch H, m S, n D      segment kernel {%6} transpose of %5 to [S, H, D]
// After:   segment gemm {%5} writes into %6: rows H * D apart, H matrices D apart
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/facts.hpp"
#include "ir/graph/ir_graph.hpp"
#include "plan/gemm_layout.hpp"
#include "schedule/views/strided_access.hpp"

namespace fuse::schedule {

/// How the operands and the result lie in memory; none: back to back.
struct GemmStrides {
  std::optional<std::vector<StridedDim>> a{}, b{}, c{};
};

/// An operand as the library is told of it.
struct OperandLayout {
  GemmLayout layout{};
  bool transposed = false;  ///< in place of the op's flag
};

/// For what has strides, how it lies. The three agree in matrices per call and in calls.
struct GemmLayouts {
  std::optional<OperandLayout> a{}, b{};
  std::optional<GemmLayout> c{};
  Dim calls = 1;
};

struct GemmLayoutsChoice {
  std::optional<GemmLayouts> layouts{};
  std::string refused{};  ///< why there are none
};

/// What the library can be told of a matmul with these strides.
GemmLayoutsChoice layouts_of(const ir::Graph&, ir::NodeId matmul, const GemmStrides&, const analysis::Facts&);

/// How the transpose's operand would lie in the transpose's memory.
std::vector<StridedDim> operand_in_transpose(const ir::Node& transpose);

/// Why `calls` of a GEMM cost more than a step that copies what it would read or write otherwise, of so many
/// bytes, and one launch, which is worth `launch_bytes` of traffic. Empty: they do not.
std::string dearer_than_step(const Dim& calls, double bytes, double launch_bytes);

}  // namespace fuse::schedule
