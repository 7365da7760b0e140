// GemmLayout: where a GEMM puts its matrices when its result is wanted with the dims in another order, as
// attention wants its heads side by side. A call of the library takes one stride between rows and one between
// the matrices of its batch; a batch of two strides takes several calls, or a step that transposes.
//
// Before:  segment gemm {%5} batch H, m S, n D      segment kernel {%6} transpose of %5 to [S, H, D]
// After:   segment gemm {%5} writes into %6: rows H * D apart, H matrices D apart
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "analysis/facts.hpp"
#include "ir/graph/ir_graph.hpp"
#include "plan/gemm_layout.hpp"

namespace fuse::schedule {

struct GemmLayoutChoice {
  std::optional<GemmLayout> layout{};
  std::string refused{};  ///< why a step transposes; where a layout is given: since it costs less
};

/// The choice for a transpose of a matmul's result. Several calls are taken where they are expected to cost
/// less than the step that transposes: a read and a write of the result, and one launch, which is worth
/// `launch_bytes` of traffic.
GemmLayoutChoice output_layout_of(const ir::Graph&, ir::NodeId transpose, const analysis::Facts&,
                                  double launch_bytes);

}  // namespace fuse::schedule
