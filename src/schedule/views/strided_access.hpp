// StridedAccess: a value whose elements lie in another's memory, each dim at one stride or a few, as GEMMs of
// a library can read it: a slice of the rows of a cache, heads that stand side by side, a matrix for several
// heads.
//
// Before:  %2 slice of %c f32[8, 4096, 64] to [8, N, 64], copied for a GEMM
// After:   %2 lies in %c, strides 262144, 64, 1
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/facts.hpp"
#include "ir/graph/ir_graph.hpp"

namespace fuse::schedule {

struct StridedAxis {
  Dim extent{};
  Dim stride{};  ///< in elements; 0 repeats
  bool operator==(const StridedAxis&) const = default;
};

/// The axes that make up a dim, outermost first; none for a dim of 1.
using StridedDim = std::vector<StridedAxis>;

struct StridedAccess {
  ir::NodeId whole = 0;  ///< the value in whose memory it lies, back to back
  Dim offset{};          ///< of its first element, in elements
  std::vector<StridedDim> dims{};
};

/// How the value lies in memory, if slices, transposes, broadcasts and reshapes lead from one in memory to
/// it. `in_memory`: whether a node has memory, back to back. The value itself is not asked about.
std::optional<StridedAccess> strided_access(const ir::Graph&, ir::NodeId value, const analysis::Facts&,
                                            const std::function<bool(ir::NodeId)>& in_memory);

/// The dims of a reshape to `to`; none where axes do not fit together.
std::optional<std::vector<StridedDim>> reshaped(const std::vector<StridedDim>& from,
                                                const std::vector<Dim>& to, const analysis::Facts&);

/// The dims of a value that lies back to back.
std::vector<StridedDim> dense(const std::vector<Dim>& dims);

/// "1024 x 0, 16, 1": the strides of dims, and of axes within one.
std::string strides_text(const std::vector<StridedDim>&);

}  // namespace fuse::schedule
