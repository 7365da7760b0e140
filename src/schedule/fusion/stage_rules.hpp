// Stage rules: what may be a stage of a kernel, in which form and after which pass (stitch.hpp).
//
// Before:  loops [B, (N)] of %5 reduce_sum; %7 div [B, N] reads %5; %9 reduce_sum of %7 over B
// After:   %7 element, pass 1   %9 outer_reduce, pass 1
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/fusion/partition.hpp"
#include "schedule/fusion/segment_graph.hpp"

namespace fuse::schedule {

/// The loops of a kernel: extents, and which of them, longer than 1, the dominant reduces.
struct Frame {
  std::vector<Dim> dims{};
  std::vector<bool> is_reduced{};
  bool reduces = false;
  bool inner = false;  ///< rows: the innermost long dim is reduced
};

/// The loops of a segment by itself.
Frame frame_of(const ir::Graph&, ir::NodeId root);

/// A segment as a stage.
struct Member {
  std::size_t segment = 0;
  ir::NodeId root = 0;  ///< root of the segment
  Stage::Form form = Stage::Form::element;
  int pass = 0;
};

/// The segment as a stage after `before`: every thread that computes a value of it has what it reads from
/// them. None where there is no such form.
std::optional<Member> place(const ir::Graph&, const Frame&, std::size_t id, const Segment&,
                            std::span<const Read> reads, std::span<const Member> before);

}  // namespace fuse::schedule
