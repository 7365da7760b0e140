// Section: what a phase does between two handoffs, where blocks leave partial results of reductions in memory
// and other blocks read them. A launch is one section; a cooperative kernel runs all, with grid barriers
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
  /// Reductions whose totals it needs and whose partials earlier sections left, in stage order. A launch
  /// combines all of them. After a barrier, threads combine those of the section before, and still have the
  /// others.
  std::vector<Stage> combines{};
  std::vector<Stage> walks{};        ///< stages, in the phase's order
  std::vector<Stage> leaves{};       ///< the reductions among these whose partials blocks leave
  std::vector<ir::NodeId> stores{};  ///< results of the phase that are complete in it, in stage order
  std::vector<ir::NodeId> inputs{};  ///< inputs of the phase that it reads
};

/// Whether it walks the rows. One that does not makes values of whole rows alone, for which one block is
/// enough.
bool walks_rows(const Section&);
/// What the stages of the phase, by these choices, do one after the other. The list is never empty.
std::vector<Section> sections_of(const ir::Graph&, const Phase&, const Choices&);
/// The stages of a launch that combines partials. The partials of one result are a row to it.
std::vector<Stage> stages_over_partials(const Section&);
/// The number of sections.
std::size_t section_count(const Phase&, const Choices&);
/// One array for each component of the state of each reduction that leaves partials.
std::vector<ScratchArray> scratch_of(const ir::Graph&, const Phase&, const Choices&);
/// The index of the first scratch array of a reduction that leaves partials. There is one for each component
/// of its state.
std::size_t scratch_index(const ir::Graph&, const Phase&, ir::NodeId reduction);

}  // namespace fuse::schedule
