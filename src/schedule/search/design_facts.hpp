// What the designs of a phase depend on, found once for each rewrite of its stages, and the numbers that its
// splits are tried with. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/mapping/row_cache.hpp"
#include "schedule/segments/segment.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

enum class DesignForm : std::uint8_t { rows, elements, tiles, scan };

/// A phase as one of its rewrites stages it. Symbols stand at their hints.
struct DesignFacts {
  Phase phase{};
  bool online = false, across = false;  ///< the rewrite
  DesignForm form = DesignForm::elements;
  bool columns = false;                   ///< blocks that take rows in turns keep columns
  bool adds_rows = false;                 ///< a row is reduced to a value
  bool walks_down = false;                ///< what is reduced lies apart in memory
  bool scans_inner = false;               ///< a scan runs along memory
  std::int64_t results = 0, reduced = 0;  ///< rows, or elements; and what each combines
  Dim row{};                              ///< the extent of `reduced`
  double moved = 0, inputs = 0;           ///< bytes
  std::int64_t narrowest = 1;             ///< bytes of an element of the narrowest input
  int widest = 1, widest_rows = 1;        ///< vectors along a row, and of rows side by side
  std::vector<std::int64_t> tiles{};  ///< of a transpose: their number by 1, 2, 4 .. elements side by side
  int rereads = 0;                    ///< passes that load rows again where nothing is cached
  int meetings = 0;                   ///< passes after which the threads of a row wait for each other
  bool works_again = false;           ///< there is more than one pass, so that arithmetic counts
  std::vector<CachedValue> cached{}, loaded{};
  /// Instructions of an element where nothing is cached, where all is, and where what was loaded is.
  double uncached_work = 0, cached_work = 0, loaded_work = 0;
  int column_words = 0;           ///< registers of the state of a column
  std::int64_t sections = 1;      ///< where several blocks share a row
  bool splits_stages = false;     ///< then each section is a launch that reads all inputs
  double scratch_of_part = 0;     ///< bytes that each block of a row, or of the columns, leaves
  std::int64_t loaded_bytes = 0;  ///< of an element of all values that shared memory would cache
};

DesignFacts design_facts(const ir::Graph&, const Phase& cut, bool online, bool across, const Target&);

/// The numbers that the variables of a design are tried with. One unit is no split.
struct DesignNumbers {
  std::vector<int> warps = {1};           ///< of rows, and walking a row
  std::vector<int> row_lanes = {1};       ///< lanes of a warp along the rows
  std::vector<int> vectors = {1};         ///< elements side by side
  std::vector<int> blocks_per_row = {1};  ///< blocks that share a row, and leave partial results
  std::vector<int> clusters{};            ///< blocks of a cluster, which share a row
  std::vector<int> turns = {0};           ///< blocks that take rows in turns; 0: one for each row
  std::vector<int> column_turns = {1};    ///< the same where columns are kept
  std::vector<int> waiting = {1};         ///< blocks of a multiprocessor that wait for each other
  std::vector<int> accumulators = {1};    ///< the cost model knows no difference
  bool row_to_row = false;                ///< also `ahead` and `invariants`, with the same cost
};

/// Those that fit the phase and the target.
DesignNumbers usual_numbers(const ir::Graph&, const Phase& cut, const Target&);

}  // namespace fuse::schedule
