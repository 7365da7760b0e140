// Partition: the graph cut into pieces, each of which becomes a kernel schedule or a GEMM.
//
// Before:  softmax opened into max, sub, exp, sum, div
// After:   piece 0 {max}  piece 1 {sub exp sum}  piece 2 {sub exp div}
//
// A first simple rule: element-wise ops, broadcasts, transposes, slices and gathers are computed inside their
// consumers; a piece ends at a reduction, an output, a GEMM or its operand, and at a value that several
// pieces would otherwise recompute from two or more large tensors. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.hpp"

namespace fuse::schedule {

struct Piece {
  enum class Kind : std::uint8_t { kernel, gemm, custom };
  Kind kind = Kind::kernel;
  ir::NodeId root = 0;               ///< the value it makes
  std::vector<ir::NodeId> nodes{};   ///< what it computes, in graph order, root last
  std::vector<ir::NodeId> inputs{};  ///< stored values it reads, in graph order
  /// The root is a dynamic_update_slice whose operand 0 lies in the memory that the result takes: only the
  /// update is written. No other piece reads that memory later.
  bool in_place = false;
  std::string end{};  ///< why it ends there: "reduction", "output", "scan", "gemm", "custom", "gemm operand",
                      ///< "custom operand", "shared", "size"
};

std::string_view to_string(Piece::Kind);

struct Partition {
  std::vector<Piece> pieces{};  ///< in an order that respects dependencies
  std::vector<ir::NodeId>
      storage{};               ///< of each node: the node whose buffer holds it (through reshapes), or itself
  std::vector<bool> stored{};  ///< of each node: inputs, parameters and roots of pieces
};

/// The graph has been verified. Linear in nodes and edges.
Partition partition(const ir::Graph&);
std::string print(const ir::Graph&, const Partition&);
/// Throws an internal Error unless pieces read only stored values made before, and every output is stored or
/// a view.
void verify(const ir::Graph&, const Partition&);

}  // namespace fuse::schedule
