// Phase: what one nest of loops makes, and Segment: what the partition cuts the graph into, a kernel of one
// or more phases, a GEMM or a user's kernel.
//
// Before:  group {max sub exp sum div}
// After:   segment kernel, one phase: stages %3 reduce_max | %7 reduce_sum | %9 div
//
// A phase is complete when it is made: it has at least one stage and one result, and a kernel has at least
// one phase. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "plan/gemm_algorithm.hpp"
#include "plan/group_id.hpp"
#include "schedule/nest/choices.hpp"
#include "schedule/segments/loop_shape.hpp"

namespace fuse::schedule {

/// A value of a phase that threads keep for later stages, or that is stored.
struct Stage {
  enum class Form : std::uint8_t {
    element,       ///< a value for each element of the loops
    row,           ///< a value for each row, by the loops without what is reduced
    inner_reduce,  ///< each row reduced to a value
    outer_reduce,  ///< each column, across the rows, reduced to a value
    column,        ///< a value for each of those columns
  };
  ir::NodeId root = 0;
  Form form = Form::element;
  int pass = 0;  ///< number of reductions on the longest path to it; each walks the whole row before
  /// reduce: for a sum of exponentials of distances below a maximum, that maximum, which the same walk finds
  /// (online_softmax.hpp).
  std::optional<ir::NodeId> maximum{};
};

std::string_view to_string(Stage::Form);

/// A value of a phase that is written over one that it reads, element by element (docs/in-place.md).
struct Overwrite {
  ir::NodeId result = 0;
  ir::NodeId input = 0;
  bool operator==(const Overwrite&) const = default;
};

struct Phase {
  ir::NodeId root = 0;               ///< the last of the results
  std::vector<ir::NodeId> nodes{};   ///< what it computes, in graph order, root last
  std::vector<ir::NodeId> inputs{};  ///< stored values it reads, in graph order
  /// Values it stores, in graph order. What only later phases of a regional kernel read of them may lie in
  /// the shared memory of blocks; then it is no result of the segment.
  std::vector<ir::NodeId> results{};
  std::vector<Stage> stages{};  ///< by pass, then in graph order
  /// The root is a dynamic_update_slice whose operand 0 lies in the memory that the result takes: only the
  /// update is written. No segment reads operand 0 later.
  bool in_place = false;
  std::vector<Overwrite> overwrites{};
};

/// The phase that stores one value and caches none: its root is the only stage.
Phase phase_of(const ir::Graph&, ir::NodeId root, std::vector<ir::NodeId> nodes,
               std::vector<ir::NodeId> inputs);

/// How a kernel will run, and how long that takes by the cost model.
struct Chosen {
  KernelChoices choices{};
  double seconds = 0;
};

struct Segment {
  enum class Kind : std::uint8_t { kernel, gemm, custom };
  Kind kind = Kind::kernel;
  ir::NodeId root = 0;                ///< the last of the results
  std::vector<ir::NodeId> nodes{};    ///< what it computes, in graph order, root last
  std::vector<ir::NodeId> inputs{};   ///< stored values it reads, in graph order
  std::vector<ir::NodeId> results{};  ///< values it stores, in graph order
  GroupId group = no_group;           ///< the group that its root belongs to
  std::string end{};  ///< why it ends there: "reduction", "output", "scan", "gemm", "custom", "gemm operand",
                      ///< "custom operand", "group", "costly broadcast", "concat operand", "shared",
                      ///< "repeated", "size", "update"
  /// The phases of a kernel. What one phase stores for another lies in memory. A GEMM and a user's kernel
  /// have none.
  std::vector<Phase> phases{};
  /// How the phases of a kernel lie to each other.
  enum class Between : std::uint8_t {
    grid_barrier,   ///< one after another, each by all blocks (AStitch's global scheme)
    block_barrier,  ///< one after another in each block, which has a slice of each (AStitch's regional
                    ///< scheme)
    nothing,        ///< they read nothing of each other; each has a range of blocks (docs/horizontal.md)
  };
  Between between = Between::grid_barrier;
  /// What the chooser of a kernel decided; none before it was asked.
  std::optional<Chosen> chosen{};
  /// What the decisions say of a GEMM; none: the library's first.
  std::optional<GemmAlgorithm> algorithm{};

  bool in_place() const { return phases.size() == 1 && phases[0].in_place; }
  bool regional() const { return between == Between::block_barrier; }
  bool horizontal() const { return between == Between::nothing; }
};

/// A kernel of one phase.
Segment segment_of(Phase, GroupId, std::string end);

/// For a stage that walks rows, the value whose elements it stores or reduces.
ir::NodeId element_of(const ir::Graph&, const Stage&);
/// What a reducing stage makes from a row: the root, and its maximum.
std::vector<ir::NodeId> totals_of(const Stage&);
/// The types in the state of its partial results: the accumulator, and its position for argmax and argmin;
/// the maximum of an online sum comes first.
std::vector<DType> reduction_state(const ir::Graph&, const Stage&);
/// The reduction whose loops all stages share; where there is none, the root.
ir::NodeId dominant(const Phase&);
/// The loops of the dominant, which reduces or scans. Where all reductions are outer ones, the loops are
/// those of the rows: what is reduced counts as kept, since a row is what is kept.
LoopShape loop_shape(const ir::Graph&, const Phase&);
/// Whether blocks pass columns on to each other: what is made from columns takes a launch of its own.
bool has_columns(const Phase&);
inline bool is_column(Stage::Form form) {
  return form == Stage::Form::outer_reduce || form == Stage::Form::column;
}
/// Whether it takes part in the loop over a row's elements.
inline bool walks(Stage::Form form) { return form != Stage::Form::row && form != Stage::Form::column; }
/// The last pass over rows: what is made from columns comes after all of them.
int last_pass(const std::vector<Stage>&);
/// "%1 reduce_max | %5 reduce_sum, %6 add": a bar between passes.
std::string stages_text(const ir::Graph&, const std::vector<Stage>&);

std::string_view to_string(Segment::Kind);

}  // namespace fuse::schedule
