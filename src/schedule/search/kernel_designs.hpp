// The designs of a phase, for best_first.hpp: which nest it has, and what stands beside it. docs/search.md
// has a table of the variables. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/nest/choices.hpp"
#include "schedule/search/best_first.hpp"
#include "schedule/search/design_facts.hpp"
#include "schedule/search/design_options.hpp"
#include "schedule/search/partial_design.hpp"
#include "schedule/segments/segment.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

/// Keeps references to the graph and the target.
class KernelDesigns {
 public:
  KernelDesigns(const ir::Graph&, const Phase& cut, const Target&, DesignNumbers, DesignRules = {});

  std::size_t variables() const { return design_variables; }
  std::size_t options(const Prefix& prefix) const { return options_of(partial(prefix)).size(); }
  /// The least seconds of any completion as a kernel of its own (design_bound.hpp).
  double bound(const Prefix&) const;
  Choices choices(const Prefix& design) const;

 private:
  PartialDesign partial(const Prefix&) const;
  std::vector<DesignOption> options_of(const PartialDesign&) const;  ///< of the next variable

  const ir::Graph& graph_;
  const Target& target_;
  const DesignNumbers numbers_;
  const DesignRules rules_;
  std::vector<DesignFacts> runs_{};  // by rewrite
};

}  // namespace fuse::schedule
