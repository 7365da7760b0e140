// The designs of a phase as variables in an order, for best_first.hpp: which nest it has, and what stands
// beside it. docs/search.md has a table of the variables.
//
//   rewrite, blocks of a row, turns, warps of rows, warps walking, lanes, vector, handoff, cache, ...
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/nest/choices.hpp"
#include "schedule/search/best_first.hpp"
#include "schedule/search/design_facts.hpp"
#include "schedule/segments/segment.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

/// What a kernel asks of the designs of one of its phases.
struct DesignRules {
  bool grid_barriers = true;  ///< blocks may wait for each other
  bool one_launch = false;    ///< the phase is a range of blocks, or a part of each block
  int threads = 0;            ///< of a block, where phases have to have equal ones; 0: any
  int blocks = 0;             ///< of the kernel, where its phases run one after another; 0: it has one phase
  int registers = 0;          ///< Choices::registers of all designs
  std::optional<Choices> keep{};  ///< values are added in the order of these choices (reduction_order.hpp)
};

/// The values of the first variables; those of the others are as they begin.
struct PartialDesign {
  enum class Cache : std::uint8_t { none, registers, packed, shared };
  std::size_t fixed = 0;  ///< variables that have a value
  std::size_t rewrite = 0;
  int parts = 1;  ///< blocks that share a row
  bool cluster = false;
  int turns = 0;
  int row_warps = 1, walking_warps = 1;
  int row_lanes = 1;
  int vector = 1;
  bool vector_of_rows = false;
  int blocks = 0;
  Cache cache = Cache::none;
  int cache_size = 0;
  int accumulators = 1;
  bool ahead = false, invariants = false, columns_once = false;
};

class KernelDesigns {
 public:
  enum Variable : std::uint8_t {
    rewrite,        ///< stages as they are, `online_softmax`, `across`
    parts,          ///< blocks, or a cluster, that share a row
    turns,          ///< blocks that take rows in turns
    row_warps,      ///< warps that have rows of their own
    walking_warps,  ///< warps that share a row
    lanes,          ///< lanes of a warp along the rows; the others walk
    vector,         ///< elements side by side, and of which dim
    handoff,        ///< blocks that wait for each other; 0: launches
    cache,          ///< what passes need again: nowhere, in registers, packed, in shared memory
    accumulators,
    row_to_row,  ///< `ahead`, `invariants`, `columns_once`
    count,
  };
  static std::string_view name(Variable);

  KernelDesigns(const ir::Graph&, const Phase& cut, const Target&, DesignNumbers, DesignRules = {});

  std::size_t variables() const { return count; }
  std::size_t options(const Prefix& prefix) const { return options_of(partial(prefix)).size(); }
  /// The least seconds of any completion as a kernel of its own (design_bound.hpp).
  double bound(const Prefix&) const;
  Choices choices(const Prefix& design) const { return choices_of(partial(design)); }
  const std::vector<DesignFacts>& facts() const { return runs_; }

 private:
  /// A value of a variable: a number, and which of several things it counts.
  struct Option {
    int number = 1;
    int kind = 0;
  };
  PartialDesign partial(const Prefix&) const;
  std::vector<Option> options_of(const PartialDesign&) const;  ///< of the next variable
  std::vector<Option> all_options_of(const PartialDesign&) const;
  std::vector<Option> options_of_parts(const DesignFacts&) const;
  std::vector<Option> options_of_turns(const DesignFacts&, const PartialDesign&) const;
  std::vector<Option> options_of_row_warps(const DesignFacts&, const PartialDesign&) const;
  std::vector<Option> options_of_walking(const DesignFacts&, const PartialDesign&) const;
  std::vector<Option> options_of_lanes(const DesignFacts&, const PartialDesign&) const;
  std::vector<Option> options_of_vector(const DesignFacts&, const PartialDesign&) const;
  std::vector<Option> options_of_handoff(const DesignFacts&, const PartialDesign&) const;
  std::vector<Option> options_of_cache(const DesignFacts&, const PartialDesign&) const;
  std::vector<Option> options_of_row_to_row(const DesignFacts&, const PartialDesign&) const;
  /// Whether each block that takes rows in turns has some. The cost model may count those that have none.
  bool all_have_rows(const DesignFacts&, const PartialDesign&, int rows) const;
  /// Whether blocks that take rows in turns are as many as the device holds at a time. The cost model has all
  /// slots taken.
  bool fills_slots(const DesignFacts&, const PartialDesign&, int walking) const;
  bool keeps_order(const DesignFacts&, const PartialDesign&, const Option&) const;
  std::int64_t shared_elements(const DesignFacts&, const PartialDesign&) const;
  Choices choices_of(const PartialDesign&) const;
  int most_warps() const;

  const ir::Graph& graph_;
  const Target& target_;
  const DesignNumbers numbers_;
  const DesignRules rules_;
  std::vector<DesignFacts> runs_{};  // by rewrite
};

}  // namespace fuse::schedule
