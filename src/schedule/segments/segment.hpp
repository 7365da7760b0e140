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

/// A value of a phase that threads hold for later stages, or that is stored.
struct Stage {
  enum class Form : std::uint8_t {
    element,       ///< a value for each element of the loops
    row,           ///< a value for each row: the loops without what is reduced
    inner_reduce,  ///< each row reduced to a value
    outer_reduce,  ///< each column, across the rows, reduced to a value
    column,        ///< a value for each column, of those
  };
  ir::NodeId root = 0;
  Form form = Form::element;
  int pass = 0;  ///< reductions on the longest path to it, each of which has walked the whole row before
  /// reduce: of a sum of exponentials of distances below a maximum, that maximum, which the same walk finds
  /// (online_softmax.hpp).
  std::optional<ir::NodeId> maximum{};
};

std::string_view to_string(Stage::Form);

struct Phase {
  ir::NodeId root = 0;                ///< the last of the results
  std::vector<ir::NodeId> nodes{};    ///< what it computes, in graph order, root last
  std::vector<ir::NodeId> inputs{};   ///< stored values it reads, in graph order
  std::vector<ir::NodeId> results{};  ///< values it stores, in graph order
  std::vector<Stage> stages{};        ///< by pass, then in graph order
  /// The root is a dynamic_update_slice whose operand 0 lies in the memory that the result takes: only the
  /// update is written. No other segment reads that memory later.
  bool in_place = false;
};

/// The phase that stores one value and holds none: its root is the only stage.
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
  GroupId group = no_group;           ///< that its root belongs to
  std::string end{};  ///< why it ends there: "reduction", "output", "scan", "gemm", "custom", "gemm operand",
                      ///< "custom operand", "group", "costly broadcast", "concat operand", "shared",
                      ///< "size"
  /// Of a kernel: what it runs one after another, with grid barriers between (AStitch's global scheme). What
  /// one phase stores for another lies in memory. A GEMM and a user's kernel have none.
  std::vector<Phase> phases{};
  /// Of a kernel: what its chooser decided. None before it was asked.
  std::optional<Chosen> chosen{};
  /// Of a GEMM: what decisions say. None: the library's first.
  std::optional<GemmAlgorithm> algorithm{};

  bool in_place() const { return phases.size() == 1 && phases[0].in_place; }
};

/// A kernel of one phase.
Segment segment_of(Phase, GroupId, std::string end);

/// Of a stage that walks rows: the value whose elements it stores or reduces.
ir::NodeId element_of(const ir::Graph&, const Stage&);
/// What a reducing stage makes of a row: the root, and its maximum.
std::vector<ir::NodeId> totals_of(const Stage&);
/// Types of the state that a partial result of it is: the accumulator, and its position for argmax and
/// argmin; beside a sum, its maximum, first.
std::vector<DType> reduction_state(const ir::Graph&, const Stage&);
/// The reduction whose loops all stages share; where there is none, the root.
ir::NodeId dominant(const Phase&);
/// Of the loops of the dominant, which reduces or scans. Where nothing but columns is reduced, they are those
/// of the rows: what is reduced counts as kept, since a row is what is kept.
LoopShape loop_shape(const ir::Graph&, const Phase&);
/// Whether blocks pass columns on to each other: what is made of columns takes a launch of its own.
bool has_columns(const Phase&);
inline bool is_column(Stage::Form form) {
  return form == Stage::Form::outer_reduce || form == Stage::Form::column;
}
/// Whether it takes part in the loop over a row's elements.
inline bool walks(Stage::Form form) { return form != Stage::Form::row && form != Stage::Form::column; }
/// Of those over rows: what is made of columns comes behind all of them.
int last_pass(const std::vector<Stage>&);
/// "%1 reduce_max | %5 reduce_sum, %6 add": a bar between passes.
std::string stages_text(const ir::Graph&, const std::vector<Stage>&);

std::string_view to_string(Segment::Kind);

}  // namespace fuse::schedule
