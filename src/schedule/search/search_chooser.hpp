// The chooser that searches (Dali, 2.1): what another chooser chose, or a design that costs less by the cost
// model, found within a fixed number of examined designs. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "ir/graph/ir_graph.hpp"
#include "schedule/choosers/chooser.hpp"
#include "schedule/search/design_facts.hpp"
#include "schedule/search/design_key.hpp"
#include "schedule/segments/segment.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

/// What a search of one kernel found; docs/search.md says how to read it.
struct SearchReport {
  std::size_t loops = 0;            ///< of all assignments (loops.hpp)
  std::size_t classes = 0;          ///< what is left of them after coupling (couple.hpp)
  std::int64_t designs_before = 1;  ///< ways to bind the loops
  std::int64_t designs_after = 1;   ///< ways to bind the classes
  std::int64_t examined = 0;        ///< designs whose cost was asked for
  std::int64_t expanded = 0;        ///< prefixes whose options were listed
  std::int64_t pruned = 0;          ///< prefixes that the bound left out
  /// No design is cheaper. For a kernel of several phases: no design of one phase is, beside the others.
  bool proven = false;
  bool of_phases = false;      ///< the kernel has several phases, which were searched one after another
  double default_seconds = 0;  ///< of the choices that the search began with
  double seconds = 0;          ///< of those that it ends with
};

struct SearchResult {
  std::optional<KernelChoices> choices{};  ///< none: one kernel cannot run the segment
  SearchReport report{};
};

/// What was searched before: two functions, so that whoever holds it takes care of threads (design_memo.hpp).
/// It is for one chooser to begin with.
struct DesignStore {
  std::function<std::optional<SearchResult>(const DesignKey&)> find{};
  std::function<void(const DesignKey&, const SearchResult&)> keep{};
};

struct SearchOptions {
  std::int64_t most_examined = 64;    ///< designs of a kernel whose cost is asked for
  std::int64_t most_expanded = 1024;  ///< prefixes of a kernel whose options are listed
  /// Values are added in the order of the choices that the search begins with (reduction_order.hpp).
  bool keep_order = false;
  bool grid_barriers = true;  ///< kernels may wait for all of their blocks
  /// A design that is cheaper by no more than this share is no better.
  double slack = 1e-9;
  std::optional<DesignNumbers> numbers{};  ///< to try; none: usual_numbers of each phase
  DesignStore store{};
  std::function<void(const SearchReport&)> report{};  ///< called for each kernel, by the thread that asks
};

/// The least that the search finds for a kernel, never more than what `first` costs.
SearchResult search_designs(const ir::Graph&, const Segment&, const KernelChoices& first, const Target&,
                            const SearchOptions&);

/// Begins with what `otherwise` chooses. It is a pure function as far as the store is.
Chooser searched(SearchOptions, Chooser otherwise);

}  // namespace fuse::schedule
