// SPDX-License-Identifier: Apache-2.0
#include "schedule/search/design_options.hpp"

#include <algorithm>
#include <limits>

#include "schedule/mapping/costly_columns.hpp"
#include "schedule/mapping/row_cache.hpp"
#include "schedule/mapping/schedule.hpp"
#include "schedule/search/design_bound.hpp"
#include "target/residency.hpp"

namespace fuse::schedule {
namespace {

int most_warps(const DesignContext& context) {
  return (context.rules.threads > 0 ? context.rules.threads : context.target.max_threads_per_block) / 32;
}

std::vector<DesignOption> options_of_parts(const DesignContext& context, const DesignFacts& facts) {
  std::vector<DesignOption> options = {{1, 0}};
  if (facts.form != DesignForm::rows || facts.columns || context.rules.one_launch) return options;
  for (const int blocks : context.numbers.blocks_per_row) {
    if (blocks > 1 && (context.rules.blocks == 0 || blocks <= context.rules.blocks))
      options.push_back({blocks, 0});
  }
  if (context.rules.blocks > 0) return options;
  for (const int blocks : context.numbers.clusters) {
    if (blocks > 1 && blocks <= context.target.max_cluster) options.push_back({blocks, 1});
  }
  return options;
}

std::vector<DesignOption> options_of_turns(const DesignContext& context, const DesignFacts& facts,
                                           const PartialDesign& design) {
  std::vector<DesignOption> options;
  if (facts.columns) {
    for (const int blocks : context.numbers.column_turns) options.push_back({blocks});
    return options;
  }
  const bool one =
      context.rules.blocks > 0 || context.rules.one_launch || facts.phase.in_place || design.leaves_parts();
  if (one) return {{0}};
  for (const int blocks : context.numbers.turns) options.push_back({blocks});
  return options;
}

/// Whether each block that takes rows in turns has some. The cost model may count those that have none.
bool all_have_rows(const DesignFacts& facts, const PartialDesign& design, int rows) {
  if (facts.form != DesignForm::rows || facts.columns || design.turns == 0) return true;
  return facts.results / rows >= design.turns;
}

/// Whether blocks that take rows in turns are as many as the device holds at a time: the cost model has all
/// slots taken.
bool fills_slots(const DesignContext& context, const DesignFacts& facts, const PartialDesign& design,
                 int walking) {
  constexpr int registers = 64;  // what the estimate of cached rows takes for granted
  if (facts.columns || design.turns == 0) return true;
  const Residency block{.blocks = 1, .threads = 32 * design.row_warps * walking, .registers = registers};
  return std::int64_t{design.turns} * design.parts >=
         std::int64_t{context.target.sms} * blocks_per_sm(block, context.target);
}

std::vector<DesignOption> options_of_row_warps(const DesignContext& context, const DesignFacts& facts,
                                               const PartialDesign& design) {
  std::vector<DesignOption> options;
  if (context.rules.threads > 0 && facts.form != DesignForm::rows) return {{most_warps(context)}};
  for (const int warps : context.numbers.warps) {
    if (warps > most_warps(context) || (context.rules.threads > 0 && most_warps(context) % warps != 0))
      continue;
    if (all_have_rows(facts, design, warps)) options.push_back({warps});
  }
  return options;
}

std::vector<DesignOption> options_of_walking(const DesignContext& context, const DesignFacts& facts,
                                             const PartialDesign& design) {
  if (facts.form != DesignForm::rows) return {{1}};
  if (context.rules.threads > 0) return {{most_warps(context) / design.row_warps}};
  std::vector<DesignOption> options;
  for (const int warps : context.numbers.warps) {
    const bool fits = warps * design.row_warps <= most_warps(context);
    if (fits && fills_slots(context, facts, design, warps)) options.push_back({warps});
  }
  return options;
}

std::vector<DesignOption> options_of_lanes(const DesignContext& context, const DesignFacts& facts,
                                           const PartialDesign& design) {
  if (facts.form == DesignForm::elements || facts.form == DesignForm::tiles) return {{1}};
  // Threads that walk a row each would load elements that lie apart, which no estimate accounts for.
  if (facts.form == DesignForm::scan) return {{facts.scans_inner ? 1 : 32}};
  if (facts.columns || (!facts.walks_down && design.walking_warps > 1)) return {{1}};
  std::vector<DesignOption> options;
  const std::int64_t most = facts.walks_down ? 32 : 16;
  for (const int each : context.numbers.row_lanes) {
    const bool useful = each == 1 || (each <= most && each / 2 < facts.results);
    if (useful && all_have_rows(facts, design, each * design.row_warps)) options.push_back({each});
  }
  return options;
}

std::vector<DesignOption> options_of_vector(const DesignContext& context, const DesignFacts& facts,
                                            const PartialDesign& design) {
  constexpr std::int64_t lanes_of_line = 8, sector = 32;
  std::vector<DesignOption> options;
  if (facts.form == DesignForm::scan) return {{1}};
  const std::int64_t of_row = 32 / design.row_lanes;
  for (const int elements : context.numbers.vectors) {
    // Lanes of a row that do not fill what memory moves at a time, which no estimate accounts for.
    const bool fills = of_row >= lanes_of_line || of_row * elements * facts.narrowest >= sector ||
                       of_row * elements >= facts.reduced;
    if (facts.form == DesignForm::rows && !facts.walks_down && !fills) continue;
    if (elements <= facts.widest) options.push_back({elements, facts.form == DesignForm::elements ? 1 : 0});
  }
  for (const int elements : context.numbers.vectors) {
    // The estimate takes all blocks of these for busy, also those that have no turn.
    const bool of_rows = facts.form == DesignForm::rows && design.turns == 0;
    if (of_rows && elements > 1 && elements <= facts.widest_rows) options.push_back({elements, 1});
  }
  return options;
}

std::vector<DesignOption> options_of_handoff(const DesignContext& context, const DesignFacts& facts,
                                             const PartialDesign& design) {
  const bool hands_off = facts.columns || design.leaves_parts();
  if (!hands_off) return {{0}};
  if (context.rules.blocks > 0) return {{context.rules.blocks}};
  std::vector<DesignOption> options = {{0}};
  if (!context.rules.grid_barriers || is_cpu(context.target)) return options;
  if (facts.columns) {
    options.push_back({design.turns});
    return options;
  }
  const std::int64_t groups = blocks_at_most(facts, design, design.row_warps) / design.parts;
  for (const int an_sm : context.numbers.waiting) {
    const std::int64_t at_once = std::int64_t{an_sm} * context.target.sms / design.parts;
    const auto blocks = static_cast<int>(
        design.parts * std::clamp<std::int64_t>(at_once, 1, std::max<std::int64_t>(1, groups)));
    if (options.back().number != blocks) options.push_back({blocks});
  }
  return options;
}

/// As much of a row as leaves slots for half of the threads; on a CPU, as a block has room for.
std::int64_t shared_elements(const DesignContext& context, const DesignFacts& facts,
                             const PartialDesign& design) {
  const Choices choices = choices_of(facts, design, context.rules.registers);
  const std::int64_t bytes = facts.loaded_bytes * rows_at_once(choices);
  const std::int64_t part =
      context.target.shared_per_sm * choices.block_threads() / (context.target.max_threads_per_sm / 2);
  const std::int64_t share =
      part / context.target.shared_unit * context.target.shared_unit - context.target.shared_reserved;
  const std::int64_t room = is_cpu(context.target) ? context.target.shared_per_block
                                                   : std::min(context.target.shared_per_block, share);
  const std::int64_t left = room - shared_bytes(context.graph, facts.phase, choices);
  const std::int64_t whole = step_elements(choices), step = whole / design.parts;
  const std::int64_t steps = std::min(left / bytes / step, (facts.row.max() - 1) / whole + 1);
  return std::clamp<std::int64_t>(steps * step, 0, std::numeric_limits<int>::max());
}

std::vector<DesignOption> options_of_cache(const DesignContext& context, const DesignFacts& facts,
                                           const PartialDesign& design) {
  using Cache = PartialDesign::Cache;
  std::vector<DesignOption> options;
  const auto add = [&](Cache cache, int number) { options.push_back({number, static_cast<int>(cache)}); };
  const bool apart = design.leaves_parts();
  const bool launches = apart && design.blocks == 0;  // nothing is cached from launch to launch
  if (facts.form == DesignForm::rows && !facts.cached.empty() && !launches) {
    const int most = cache_limit(facts, design, context.target);
    const std::int64_t trips =
        elements_per_thread(facts.row, choices_of(facts, design, context.rules.registers));
    const auto fits = [&](bool packed) {
      const std::int64_t registers =
          cache_registers(context.graph, packed ? facts.loaded : facts.cached, trips, packed);
      return trips > 0 && registers + trips * facts.column_words <= most;
    };
    if (fits(false)) add(Cache::registers, most);
    if (!facts.loaded.empty() && fits(true)) add(Cache::packed, most);
  }
  if (facts.form == DesignForm::rows && !facts.loaded.empty() && !apart && !facts.columns) {
    const std::int64_t elements = shared_elements(context, facts, design);
    if (elements > 0) add(Cache::shared, static_cast<int>(elements));
  }
  add(Cache::none, 0);
  return options;
}

std::vector<DesignOption> options_of_accumulators(const DesignContext& context, const DesignFacts& facts,
                                                  const PartialDesign& design) {
  const bool several = facts.adds_rows && !design.vector_of_rows;
  std::vector<DesignOption> options;
  for (const int number : context.numbers.accumulators) {
    if (number == 1 || (several && design.vector % number == 0)) options.push_back({number});
  }
  return options;
}

std::vector<DesignOption> options_of_row_to_row(const DesignContext& context, const DesignFacts& facts,
                                                const PartialDesign& design) {
  constexpr std::int64_t enough_rows = 4;  // of a block
  std::vector<DesignOption> options = {{1, 0}};
  if (facts.form != DesignForm::rows) return options;
  if (design.parts == 1 && !costly_columns(context.graph, facts.phase).empty()) {
    const bool pays = facts.results / enough_rows >= blocks_at_most(facts, design, design.row_warps);
    options.insert(pays ? options.begin() : options.end(), {1, PartialDesign::once});
  }
  if (!context.numbers.row_to_row || design.turns == 0 || facts.columns) return options;
  for (const int kind : {1, 2, 3}) options.push_back({1, kind});
  return options;
}

/// Whether a value lets the phase add in the order of the choices that are kept. It leaves out early what
/// reduction_order.hpp would tell apart in the end.
bool keeps_order(const DesignContext& context, const DesignFacts& facts, const PartialDesign& design,
                 const DesignOption& option) {
  const Choices& keep = *context.rules.keep;
  const auto kept = [&](char dim, Level level) { return units_of(keep.splits, dim, level) == option.number; };
  switch (design.next()) {
    case DesignVariable::parts:
      return !facts.adds_rows ||
             units_of(keep.splits, 'c', Level::grid) * units_of(keep.splits, 'c', Level::cluster) ==
                 option.number;
    case DesignVariable::turns:
      return !facts.columns || kept('r', Level::grid);
    case DesignVariable::row_warps:
      return !facts.columns || kept('r', Level::warp);
    case DesignVariable::walking_warps:
      return !facts.adds_rows || kept('c', Level::warp);
    case DesignVariable::lanes:
      return !facts.adds_rows || units_of(keep.splits, 'c', Level::lane) * option.number == 32;
    case DesignVariable::vector:
      return !facts.adds_rows || option.kind == 1 || kept('c', Level::vector);
    case DesignVariable::accumulators:
      return !facts.adds_rows || keep.accumulators == option.number;
    default:
      return true;
  }
}

std::vector<DesignOption> all_options(const DesignContext& context, const DesignFacts& facts,
                                      const PartialDesign& design) {
  switch (design.next()) {
    case DesignVariable::rewrite:
      break;
    case DesignVariable::parts:
      return options_of_parts(context, facts);
    case DesignVariable::turns:
      return options_of_turns(context, facts, design);
    case DesignVariable::row_warps:
      return options_of_row_warps(context, facts, design);
    case DesignVariable::walking_warps:
      return options_of_walking(context, facts, design);
    case DesignVariable::lanes:
      return options_of_lanes(context, facts, design);
    case DesignVariable::vector:
      return options_of_vector(context, facts, design);
    case DesignVariable::handoff:
      return options_of_handoff(context, facts, design);
    case DesignVariable::cache:
      return options_of_cache(context, facts, design);
    case DesignVariable::accumulators:
      return options_of_accumulators(context, facts, design);
    case DesignVariable::row_to_row:
      return options_of_row_to_row(context, facts, design);
  }
  return {};
}

}  // namespace

std::vector<DesignOption> options_of_next(const DesignContext& context, const DesignFacts& facts,
                                          const PartialDesign& design) {
  std::vector<DesignOption> options = all_options(context, facts, design);
  if (context.rules.keep) {
    std::erase_if(options,
                  [&](const DesignOption& option) { return !keeps_order(context, facts, design, option); });
  }
  return options;
}

}  // namespace fuse::schedule
