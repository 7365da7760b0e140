// Section: what a phase does between two handoffs, where blocks leave parts of reductions in memory and other
// blocks read them. A launch is one section; the kernel that joins launches runs all, with grid barriers
// between.
//
// Before:  softmax, each row split over 4 blocks: stages max | sum | div
// After:   walks max, leaves max / combines max, walks sum, leaves sum / combines max, sum, walks div
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/nest/choices.hpp"
#include "schedule/segments/segment.hpp"

namespace fuse::schedule {

/// What launches leave for later ones.
struct ScratchArray {
  DType dtype = f32;
  Dim elements{};
  bool operator==(const ScratchArray&) const = default;
};

struct Section {
  /// Reductions whose totals it needs and whose parts earlier sections left, in stage order. A launch
  /// combines all of them. Behind a barrier, threads combine those of the section before, and hold the
  /// others.
  std::vector<Stage> combines{};
  std::vector<Stage> walks{};        ///< stages, in the phase's order
  std::vector<Stage> leaves{};       ///< of these: reductions whose parts blocks leave
  std::vector<ir::NodeId> stores{};  ///< results of the phase that it has whole, in stage order
  std::vector<ir::NodeId> inputs{};  ///< of the phase, that it reads
};

/// Whether it walks the rows. One that does not makes values of whole rows alone, for which one block is
/// enough.
bool walks_rows(const Section&);
/// What the stages of the phase, by these choices, do one behind the other. Never empty.
std::vector<Section> sections_of(const ir::Graph&, const Phase&, const Choices&);
/// The stages of a launch that combines parts. The parts of one result are a row to it.
std::vector<Stage> stages_over_partials(const Section&);
/// How many there are.
std::size_t section_count(const Phase&, const Choices&);
/// One array for each component of the state of each reduction that leaves parts.
std::vector<ScratchArray> scratch_of(const ir::Graph&, const Phase&, const Choices&);
/// The number of the first scratch array of a reduction that leaves parts. There is one for each component of
/// its state.
std::size_t scratch_place(const ir::Graph&, const Phase&, ir::NodeId reduction);

}  // namespace fuse::schedule
