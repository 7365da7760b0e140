// Canonical form of a segment: what it computes, without names, scopes, lines and node ids. Segments of one
// form are scheduled, lowered, emitted and compiled once.
//
// Before:  segment 0 {%4 exp, %5 add} reads {%x %4}   segment 7 {%90 exp, %91 add} reads {%80 %g3}
// After:   0: exp in0   1: add 0 in1   f32[B, 64], of both: one kernel, with the buffers of each
//
// Forms that differ only in where slices of stored values begin are of one family, and may share a kernel
// (slice_starts.hpp). Symbols stay as they are: in one graph a name means one thing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/segments/segment.hpp"

namespace fuse::schedule {

struct CanonicalSegment {
  /// What an operand is: a node of the segment, an input, or nothing that the segment reads.
  enum class Source : std::uint32_t { node, input, unread };
  struct Operand {
    Source source = Source::unread;
    std::uint32_t index = 0;  ///< into nodes or inputs
    bool operator==(const Operand&) const = default;
  };
  Segment::Between between = Segment::Between::grid_barrier;
  std::vector<ir::NodeId> nodes{};   ///< operands first, in the order in which the root reaches them
  std::vector<ir::NodeId> inputs{};  ///< in the order in which the nodes read them
  std::vector<Operand> operands{};   ///< operands of all nodes, one after another
  enum class Stored : std::uint8_t { no, in_memory, in_block };
  std::vector<Stored> stored{};         ///< per node: where the segment stores it
  std::vector<std::uint32_t> same{};    ///< per input: the first that lies in the same buffer
  std::vector<std::uint32_t> phases{};  ///< per phase: the position of its root in `nodes`
  std::vector<bool> in_place{};         ///< per phase: it is an update in place
  std::vector<std::pair<std::uint32_t, std::uint32_t>>
      overwrites{};  ///< a node, and the input that it is written over
  /// A number at which a slice of an input, reshaped or not, begins in one dim.
  struct Start {
    std::uint32_t node = 0;  ///< position of the slice in `nodes`
    std::uint32_t axis = 0;
    /// In elements: in the innermost dim, accesses as wide as that may begin there. It is 1 in other dims:
    /// rows that lie apart by a multiple of an access begin at one.
    std::int64_t alignment = 1;
    bool operator==(const Start&) const = default;
  };
  std::vector<Start> starts{};
  std::uint64_t hash = 0;
};

/// The kernel segments of a partition by their form.
struct EqualSegments {
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  std::vector<CanonicalSegment> forms{};  ///< form per segment; empty for what is no kernel
  std::vector<std::uint32_t>
      form_of{};  ///< per segment: the number of its form, counted from 0 in segment order; none
  std::vector<std::uint32_t> first{};      ///< per form: its first segment
  std::vector<std::uint32_t> family_of{};  ///< per form: the first form of its family
};

/// Makes the form of one kernel segment after another, linear in its nodes. `storage`: Partition's. Graph and
/// storage outlive what is returned. It is not thread-safe.
std::function<CanonicalSegment(const Segment&)> canonical_forms(const ir::Graph&,
                                                                const std::vector<ir::NodeId>& storage);
/// It is linear in the nodes of all segments. Equal ones are found by hash and verified by comparing.
EqualSegments equal_segments(const ir::Graph&, const std::vector<Segment>&,
                             const std::vector<ir::NodeId>& storage);
/// The name of the form in any graph, on any machine: a hash of all that it is, without names. Symbols count
/// by their ranges and hints.
std::uint64_t content_key(const ir::Graph&, const CanonicalSegment&);
/// Whether one kernel computes both.
bool equal(const ir::Graph&, const CanonicalSegment&, const CanonicalSegment&);
/// Whether one kernel computes both, with CanonicalSegment::starts as arguments.
bool of_one_family(const ir::Graph&, const CanonicalSegment&, const CanonicalSegment&);
/// What stands in `to` where `node`, an input or a node of `from`, stands in `from`. The segments are of one
/// family.
ir::NodeId counterpart(const CanonicalSegment& from, const CanonicalSegment& to, ir::NodeId node);

}  // namespace fuse::schedule
