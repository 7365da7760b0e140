// Partition: the graph cut into groups by the rules (group.hpp), each group into pieces of one value
// (pieces.hpp) that become a kernel or a GEMM, and pieces stitched into one kernel again (stitch.hpp).
//
// Before:  softmax opened into max, sub, exp, sum, div
// After:   group 0 {max sub exp sum div}   piece 0 {max sub exp sum div}, stages max | sum | div
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.hpp"
#include "schedule/group.hpp"
#include "schedule/target.hpp"
#include "schedule/views.hpp"

namespace fuse::schedule {

/// A value of a kernel piece that threads hold for later stages, or that is stored.
struct Stage {
  enum class Form : std::uint8_t {
    element,        ///< a value for each element of the loops
    row,            ///< a value for each row: the loops without what is reduced
    reduce,         ///< each row reduced to a value
    column_reduce,  ///< each column, across the rows, reduced to a value
    column,         ///< a value for each column, of those
  };
  ir::NodeId root = 0;
  Form form = Form::element;
  int pass = 0;  ///< reductions on the longest path to it, each of which has walked the whole row before
  /// reduce: of a sum of exponentials of distances below a maximum, that maximum, which the same walk finds
  /// (online_sums.hpp).
  std::optional<ir::NodeId> maximum{};
};

std::string_view to_string(Stage::Form);

struct Piece {
  enum class Kind : std::uint8_t { kernel, gemm, custom };
  Kind kind = Kind::kernel;
  ir::NodeId root = 0;               ///< the value it makes; of several stored ones, the last
  std::vector<ir::NodeId> nodes{};   ///< what it computes, in graph order, root last
  std::vector<ir::NodeId> inputs{};  ///< stored values it reads, in graph order
  /// The root is a dynamic_update_slice whose operand 0 lies in the memory that the result takes: only the
  /// update is written. No other piece reads that memory later.
  bool in_place = false;
  GroupId group = no_group;  ///< that its root belongs to
  std::string end{};  ///< why it ends there: "reduction", "output", "scan", "gemm", "custom", "gemm operand",
                      ///< "custom operand", "group", "costly broadcast", "concat operand", "shared",
                      ///< "size"
  std::vector<ir::NodeId> results{};  ///< values it stores, in graph order, root last; empty: the root
  std::vector<Stage> stages{};        ///< by pass, then in graph order; empty: the root alone
  /// Pieces that one kernel runs one behind the other, with grid barriers between (AStitch's global scheme):
  /// what one stores for another lies in memory. Empty: the piece itself is all that the kernel runs.
  std::vector<Piece> phases{};
};

std::vector<ir::NodeId> results_of(const Piece&);
/// Its phases, or the piece itself.
std::span<const Piece> phases_of(const Piece&);
std::vector<Stage> stages_of(const ir::Graph&, const Piece&);
/// Of a stage that walks rows: the value whose elements it stores or reduces.
ir::NodeId element_of(const ir::Graph&, const Stage&);
/// What a reducing stage makes of a row: the root, and its maximum.
std::vector<ir::NodeId> totals_of(const Stage&);
/// Types of the state that a partial result of it is: the accumulator, and its position for argmax and
/// argmin; beside a sum, its maximum, first.
std::vector<DType> reduction_state(const ir::Graph&, const Stage&);
/// The reduction whose loops all stages share; where there is none, the root.
ir::NodeId dominant(const ir::Graph&, const Piece&);
/// Whether blocks pass columns on to each other: what is made of columns takes a launch of its own.
bool has_columns(const Piece&);
inline bool is_column(Stage::Form form) {
  return form == Stage::Form::column_reduce || form == Stage::Form::column;
}
/// Whether it takes part in the loop over a row's elements.
inline bool walks(Stage::Form form) { return form != Stage::Form::row && form != Stage::Form::column; }
/// Of those over rows: what is made of columns comes behind all of them.
int last_pass(const std::vector<Stage>&);
/// "%1 reduce_max | %5 reduce_sum, %6 add": a bar between passes.
std::string stages_text(const ir::Graph&, const std::vector<Stage>&);

std::string_view to_string(Piece::Kind);

/// Other people's ways to cut a graph, for comparison (docs/partition.md).
enum class Baseline : std::uint8_t {
  off,
  xla,   ///< element-wise ops into their consumers; reductions and costly broadcasts end a kernel
  tvm,   ///< injective ops into a reduction, which ends a kernel
  none,  ///< a kernel an op
};

/// How pieces are stitched and laid over threads.
enum class SchemeRules : std::uint8_t {
  fuse,   ///< by the cost model
  paper,  ///< AStitch's own: everything that it can in one kernel (paper_choices.hpp)
};

struct PartitionOptions {
  GroupOptions groups{};
  Baseline baseline = Baseline::off;
  bool stitch = true;  ///< pieces of a group become stages of one kernel
  /// What is not stitched becomes phases of one kernel, with grid barriers between: where that gains, and
  /// stitched kernels alone; or wherever it is possible.
  enum class Join : std::uint8_t { never, gain, always } join = Join::gain;
  SchemeRules schemes = SchemeRules::fuse;
  bool operator==(const PartitionOptions&) const = default;
};

/// What the scheduler handed back: the group was split at these values.
struct Refusal {
  GroupId group = 0;
  Reason reason = Reason::scheme_unavailable;
  std::vector<ir::NodeId> at{};
  std::vector<std::pair<std::string, std::string>> numbers{};  ///< name, value
};

struct Partition {
  Grouping grouping{};
  std::vector<Refusal> refusals{};
  std::vector<Piece> pieces{};  ///< in an order that respects dependencies
  std::vector<ir::NodeId>
      storage{};               ///< of each node: the node whose buffer holds it (through reshapes), or itself
  std::vector<bool> stored{};  ///< of each node: inputs, parameters, roots of pieces and assembled concats
  Views views{};               ///< values that lie in others' memory

  // Made once, in the .cpp: in every file that includes this they take longer than the rest of it.
  Partition();
  Partition(const Partition&);
  Partition(Partition&&) noexcept;
  Partition& operator=(const Partition&);
  Partition& operator=(Partition&&) noexcept;
  ~Partition();
};

/// The graph has been verified. Near linear in nodes and edges.
Partition partition(const ir::Graph&, const PartitionOptions& = {}, const Target& = {},
                    const analysis::Facts& facts = analysis::Facts());
std::string print(const ir::Graph&, const Partition&);
/// Throws an internal Error unless pieces read only values in memory that are made before, and every output
/// has a buffer.
void verify(const ir::Graph&, const Partition&);

}  // namespace fuse::schedule
