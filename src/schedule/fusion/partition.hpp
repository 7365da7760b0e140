// Partition: the graph cut into groups by the rules (group.hpp), each group into segments of one value
// (cut.hpp) that become a kernel or a GEMM, and segments stitched into one kernel again (stitch.hpp).
//
// Before:  softmax opened into max, sub, exp, sum, div
// After:   group 0 {max sub exp sum div}   segment 0 {max sub exp sum div}, stages max | sum | div
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/choosers/chooser.hpp"
#include "schedule/fusion/refusal.hpp"
#include "schedule/groups/group.hpp"
#include "schedule/search/search_chooser.hpp"
#include "schedule/segments/segment.hpp"
#include "schedule/views/in_place.hpp"
#include "schedule/views/views.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

/// Other people's ways to cut a graph, for comparison (docs/partition.md).
enum class Baseline : std::uint8_t {
  off,
  xla,     ///< element-wise ops into their consumers; reductions and costly broadcasts end a kernel
  tvm,     ///< injective ops into a reduction, which ends a kernel
  one_op,  ///< one kernel per op
};

/// How segments are stitched and laid over threads.
enum class SchemeRules : std::uint8_t {
  fuse,     ///< by the cost model
  astitch,  ///< AStitch's own: everything that it can in one kernel (astitch_choices.hpp)
};

struct PartitionOptions {
  GroupOptions groups{};
  Baseline baseline = Baseline::off;
  bool stitch = true;  ///< segments of a group become stages of one kernel
  /// What is not stitched becomes phases of one cooperative kernel: `gain` where that gains and `stitch` is
  /// on, `always` wherever it is possible.
  enum class Cooperative : std::uint8_t { never, gain, always } cooperative = Cooperative::gain;
  SchemeRules schemes = SchemeRules::fuse;
  bool search = false;        ///< the designs of kernels are searched; not for baselines
  bool grid_barriers = true;  ///< kernels may wait for all of their blocks; false: nothing is cooperative
  /// What is not stitched becomes phases of one kernel whose blocks pass values on to themselves alone, where
  /// that gains and `stitch` is on.
  bool regional = true;
  /// Kernels that read nothing of each other become one, where `stitch` is on and groups are composed side by
  /// side (APOLLO's Layer III).
  bool horizontal = true;
  bool operator==(const PartitionOptions&) const = default;
};

/// The chooser that these options ask for.
Chooser chooser_of(const PartitionOptions&, const DesignStore& = {});

struct Partition {
  Grouping grouping{};
  std::vector<Refusal> refusals{};
  std::vector<Segment> segments{};  ///< in an order that respects dependencies
  std::vector<ir::NodeId>
      storage{};               ///< per node: the node whose buffer holds it (through reshapes), or itself
  std::vector<bool> stored{};  ///< per node: an input, a parameter, a segment's root or an assembled concat
  Views views{};               ///< values that lie in others' memory
  InPlace in_place{};          ///< values that are written over others

  // These are compiled once, in the .cpp: in each file that includes this they take longer than the rest.
  Partition();
  Partition(const Partition&);
  Partition(Partition&&) noexcept;
  Partition& operator=(const Partition&);
  Partition& operator=(Partition&&) noexcept;
  ~Partition();
};

/// The graph has been verified. It is near linear in nodes and edges. `chooser` judges what is put into one
/// kernel; a segment that it judged has its choices. `decide` is asked wherever a cost decides.
Partition partition(const ir::Graph&, const PartitionOptions&, const Target&, const analysis::Facts&,
                    const Chooser& chooser, const ir::Decide& decide = {});
/// The partition by the chooser that the options ask for.
Partition partition(const ir::Graph&, const PartitionOptions& = {}, const Target& = {},
                    const analysis::Facts& facts = analysis::Facts());
/// The value whose memory a value is read in, through reshapes and views; a value in place is one of its own.
ir::NodeId memory_of(const Partition&, ir::NodeId);
std::string print(const ir::Graph&, const Partition&);
/// Throws an internal Error unless segments read only values in memory that are made before, and every output
/// has a buffer.
void verify(const ir::Graph&, const Partition&);

}  // namespace fuse::schedule
