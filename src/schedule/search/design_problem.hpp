// The designs of one phase of a kernel whose other phases stay as they are, as a problem for best_first.hpp:
// the cost is that of the whole kernel. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "ir/graph/ir_graph.hpp"
#include "schedule/regional/slices.hpp"
#include "schedule/search/best_first.hpp"
#include "schedule/search/kernel_designs.hpp"
#include "schedule/search/search_chooser.hpp"
#include "schedule/segments/segment.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

/// Keeps references to the graph, the segment and the target.
class DesignProblem {
 public:
  DesignProblem(const ir::Graph&, const Segment&, KernelChoices others, std::size_t phase, const Target&,
                const SearchOptions&);

  std::size_t variables() const { return designs_.variables(); }
  std::size_t options(const Prefix& prefix) const { return designs_.options(prefix); }
  double bound(const Prefix&) const;
  /// Legality is asked for last: it takes as long as several costs.
  std::optional<double> cost(const Prefix& design, double below) const;
  KernelChoices choices(const Prefix& design) const;
  const KernelDesigns& designs() const { return designs_; }

 private:
  double seconds_of_kernel(const KernelChoices&) const;

  const ir::Graph& graph_;
  const Segment& segment_;
  const KernelChoices others_;
  const std::size_t phase_;
  const Target& target_;
  const KernelDesigns designs_;
  const std::optional<std::string> order_;  ///< the reduction order to keep
  std::optional<Slices> slices_{};
  double floor_ = 0;  ///< seconds of the kernel, whatever the phase's design is
  double rest_ = 0;   ///< seconds of what is added to those of the phase
};

}  // namespace fuse::schedule
