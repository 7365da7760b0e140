// Views: values that lie inside another's memory, so that no step copies them (Astra, section 4.4: contiguity
// as a constraint on sets of tensors).
//
// Before:  segment kernel {%3} slice of %2, for a GEMM
// After:   %3 lies in %2 at 2048: the GEMM reads it there
//
// Before:  segment kernel {%7} concat of the GEMMs %5 and %6
// After:   %5 lies in %7 at 0, %6 at 4096: they write it there
//
// A slice is a view where its elements are one block of its operand's, in memory anyway. A concat is
// assembled where its operands lie back to back and steps of their own make them. Both need multiples of 16
// bytes, the alignment of every buffer. A transpose of a GEMM's result is made by the GEMM, where its calls
// can place what they make (gemm_strides.hpp). What GEMMs alone read may lie in another value's memory in
// strides, so that they read a part of a cache, or heads side by side, where these are (strided_access.hpp).
//
// Views are chosen once it is known what GEMMs, user kernels and outputs need in memory, and before it is
// decided what kernels compute twice: a kernel that reads a view reads the whole, so the slice is free.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/facts.hpp"
#include "ir/graph/ir_graph.hpp"
#include "ir/graph/question.hpp"
#include "schedule/views/gemm_strides.hpp"

namespace fuse::schedule {

/// Where a value lies. The whole may be a view itself.
struct View {
  ir::NodeId whole = 0;
  Dim offset{};       ///< elements
  bool part = false;  ///< part of an assembled concat, so a step writes it; otherwise none does
  /// How it lies, where it is no block, and GEMMs alone read it in memory. Empty: it is a block.
  std::vector<StridedDim> strides{};
  std::optional<GemmLayout>
      layout{};  ///< layout of a GEMM's result in its transposed form: scattered, not one block
  /// Whether the elements lie back to back.
  bool is_block() const { return strides.empty() && !layout; }
};

/// A slice, a concat or a transpose of a GEMM's result that needs memory, and what became of it.
struct ViewChoice {
  ir::NodeId value = 0;
  std::string refused{};  ///< why a step copies it; empty: none does
  bool taken() const { return refused.empty(); }
};

struct Views {
  std::map<ir::NodeId, View> of{};  ///< slices, concats of them, and the parts of what is assembled
  /// Concats and transposes that no step makes, with the values whose steps do, in order.
  std::map<ir::NodeId, std::vector<ir::NodeId>> assembled{};
  std::map<ir::NodeId, GemmLayouts> gemms{};  ///< per matmul that reads operands in strides, how
  std::vector<ViewChoice> choices{};  ///< in graph order, slices first, transposes and strided values last

  /// The value has memory of its own after all.
  void drop(const ir::Graph&, ir::NodeId);
};

/// What is known about the memory of each node when views are chosen.
struct MemoryUse {
  const std::vector<ir::NodeId>& storage;  ///< the node whose buffer holds it (through reshapes)
  std::vector<bool> stored{};              ///< in memory: given, or a step makes it
  std::vector<bool> operand{};             ///< stored only because a GEMM or a user's kernel reads it
  std::vector<bool> in_place{};            ///< written over another value (in_place.hpp)
  std::vector<bool> dense{};               ///< a user's kernel or an epilogue reads it as it is
  std::vector<bool> has_epilogue{};        ///< a matmul whose GEMM computes the op after it, too
};

struct ViewRules {
  double launch_bytes = 0;  ///< the traffic that costs as much as a launch
  const ir::Decide& decide;
};

/// `computed`: receives the one operand of an assembled concat that had no step of its own; it becomes the
/// kernel that the concat was. It is linear in nodes and edges.
Views choose_views(const ir::Graph&, const MemoryUse&, const analysis::Facts&, const ViewRules&,
                   std::vector<ir::NodeId>& computed);

/// The values that steps write in the memory in which `stored`, the holder of some value's buffer, lies.
std::vector<ir::NodeId> written_values(const Views&, ir::NodeId stored);

/// "view %3 slice in %2 at element 512", "copy %4 slice: ..", one line per choice.
std::string print(const ir::Graph&, const Views&);

}  // namespace fuse::schedule
