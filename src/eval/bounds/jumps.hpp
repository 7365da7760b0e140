// Decisions: ops whose result jumps where an operand passes a value, such as a comparison, a rounding, the
// root of what may be below 0. Near that value two right devices may answer differently, since each errs in
// its own way. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "eval/bounds/reference_tensor.hpp"
#include "ir/graph/ir_graph.hpp"

namespace fuse::runtime::reference {

/// The operands of one op in one evaluation; what was replaced lies in `replaced`.
struct Operands {
  std::vector<const ReferenceTensor*> values{};
  std::map<std::size_t, ReferenceTensor> replaced{};
};

/// Whether the op decides anything by a floating operand.
bool decides(const ir::Graph& graph, const ir::Node& node);

/// An operand's element is undecided (docs/fusec.md: its decision is open) where the jump is nearer to its
/// exact value than 4 times the error that any of the evaluations has there, or 16 times for one evaluation.
/// In the first evaluation, op by op, it stays as it is. The next `steady` ones get the exact value, so that
/// they decide as the exact evaluation does; the others decide either way, at random. Returns whether any
/// element is undecided. `draw` numbers the op. No error takes a positive node to a jump at 0, unless it
/// underflows.
bool settle(const ir::Graph& graph, const ir::Node& node, const std::vector<bool>& positive,
            const std::vector<const ReferenceTensor*>& exact, std::vector<Operands>& evaluations,
            std::size_t steady, std::int64_t draw);

}  // namespace fuse::runtime::reference
