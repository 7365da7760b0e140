// Slices: phases whose blocks pass values on to themselves alone (AStitch's block locality, 4.3). All phases
// begin with the same outer dims; a slice is what they do at one position of these. A block that does the
// same slices of each phase needs a block barrier between phases, and no other block.
//
// Before:  softmax of [B, T] (rows B)    sum of [B, T, D] over T (results B x D), which reads it
// After:   B slices: one row of the softmax, then D results
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/segments/segment.hpp"

namespace fuse::schedule {

struct Slices {
  Dim count{};                 ///< how many there are
  std::vector<Dim> results{};  ///< the rows, or elements, of each phase in a slice
};

/// The most slices for which no phase reads another's value outside of its own slice. There is at least one,
/// which one block would do; none is returned for phases whose loops have no dims in common.
std::optional<Slices> slices_of(const ir::Graph&, const std::vector<Phase>&);

/// The elements of a value in a slice; none where the value does not begin with the slices.
std::optional<Dim> elements_in_slice(const std::vector<Dim>& dims, const Dim& count);

/// A value that phases of a regional kernel pass on in the shared memory of their block.
struct BlockValue {
  ir::NodeId value = 0;
  std::size_t phase = 0;      ///< the phase that makes it
  Dim of_block{};             ///< its elements in the slices of a block, or in its tile with the halo
  std::int64_t elements = 0;  ///< the most of these: those of the array
};
/// The values of a regional segment that its blocks pass on, by the choices' slices or tile.
std::vector<BlockValue> block_values(const ir::Graph&, const Segment&, const KernelChoices&);

}  // namespace fuse::schedule
