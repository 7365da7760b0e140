// SPDX-License-Identifier: Apache-2.0
#include "schedule/search/kernel_designs.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "schedule/mapping/costly_columns.hpp"
#include "schedule/mapping/schedule.hpp"
#include "schedule/search/design_bound.hpp"
#include "schedule/segments/online_softmax.hpp"
#include "schedule/segments/staged.hpp"
#include "target/residency.hpp"

namespace fuse::schedule {
namespace {

using Form = DesignFacts::Form;

enum RowToRow : std::uint8_t { plain = 0, with_ahead = 1, with_invariants = 2, once = 4 };

}  // namespace

std::string_view KernelDesigns::name(Variable variable) {
  switch (variable) {
    case rewrite:
      return "rewrite";
    case parts:
      return "blocks of a row";
    case turns:
      return "turns";
    case row_warps:
      return "warps of rows";
    case walking_warps:
      return "warps walking";
    case lanes:
      return "lanes";
    case vector:
      return "vector";
    case handoff:
      return "handoff";
    case cache:
      return "cache";
    case accumulators:
      return "accumulators";
    case row_to_row:
      return "row to row";
    case count:
      break;
  }
  return "?";
}

KernelDesigns::KernelDesigns(const ir::Graph& graph, const Phase& cut, const Target& target,
                             DesignNumbers numbers, DesignRules rules)
    : graph_(graph), target_(target), numbers_(std::move(numbers)), rules_(std::move(rules)) {
  const auto add = [&](bool online, bool across) {
    if (rules_.keep && (rules_.keep->online_softmax != online || rules_.keep->across != across)) return;
    DesignFacts facts = design_facts(graph, cut, online, across, target);
    if (!rules_.one_launch || !facts.columns) runs_.push_back(std::move(facts));
  };
  add(false, false);
  if (with_online_softmax(graph, cut)) add(true, false);
  if (across_rows(graph, cut)) add(false, true);
}

int KernelDesigns::most_warps() const {
  return (rules_.threads > 0 ? rules_.threads : target_.max_threads_per_block) / 32;
}

PartialDesign KernelDesigns::partial(const Prefix& prefix) const {
  PartialDesign design;
  for (const std::uint16_t index : prefix) {
    const Option option = options_of(design).at(index);
    switch (static_cast<Variable>(design.fixed++)) {
      case rewrite:
        design.rewrite = static_cast<std::size_t>(option.number);
        break;
      case parts:
        design.parts = option.number;
        design.cluster = option.kind == 1;
        break;
      case turns:
        design.turns = option.number;
        break;
      case row_warps:
        design.row_warps = option.number;
        break;
      case walking_warps:
        design.walking_warps = option.number;
        break;
      case lanes:
        design.row_lanes = option.number;
        break;
      case vector:
        design.vector = option.number;
        design.vector_of_rows = option.kind == 1;
        break;
      case handoff:
        design.blocks = option.number;
        break;
      case cache:
        design.cache = static_cast<PartialDesign::Cache>(option.kind);
        design.cache_size = option.number;
        break;
      case accumulators:
        design.accumulators = option.number;
        break;
      case row_to_row:
        design.ahead = (option.kind & with_ahead) != 0;
        design.invariants = (option.kind & with_invariants) != 0;
        design.columns_once = (option.kind & once) != 0;
        break;
      case count:
        break;
    }
  }
  return design;
}

std::vector<KernelDesigns::Option> KernelDesigns::options_of(const PartialDesign& design) const {
  std::vector<Option> options = all_options_of(design);
  if (rules_.keep && !runs_.empty()) {
    std::erase_if(options, [&](const Option& option) {
      return !keeps_order(runs_[design.rewrite], design, option);
    });
  }
  return options;
}

std::vector<KernelDesigns::Option> KernelDesigns::all_options_of(const PartialDesign& design) const {
  std::vector<Option> options;
  if (design.fixed == rewrite) {
    for (std::size_t i = 0; i < runs_.size(); ++i) options.push_back({static_cast<int>(i)});
    return options;
  }
  const DesignFacts& facts = runs_[design.rewrite];
  switch (static_cast<Variable>(design.fixed)) {
    case parts:
      return options_of_parts(facts);
    case turns:
      return options_of_turns(facts, design);
    case row_warps:
      return options_of_row_warps(facts, design);
    case walking_warps:
      return options_of_walking(facts, design);
    case lanes:
      return options_of_lanes(facts, design);
    case vector:
      return options_of_vector(facts, design);
    case handoff:
      return options_of_handoff(facts, design);
    case cache:
      return options_of_cache(facts, design);
    case accumulators: {
      const bool several = facts.adds_rows && !design.vector_of_rows;
      for (const int number : numbers_.accumulators) {
        if (number == 1 || (several && design.vector % number == 0)) options.push_back({number});
      }
      return options;
    }
    case row_to_row:
      return options_of_row_to_row(facts, design);
    case rewrite:
    case count:
      break;
  }
  return options;
}

std::vector<KernelDesigns::Option> KernelDesigns::options_of_parts(const DesignFacts& facts) const {
  std::vector<Option> options = {{1, 0}};
  if (facts.form != Form::rows || facts.columns || rules_.one_launch) return options;
  for (const int blocks : numbers_.blocks_per_row) {
    if (blocks > 1 && (rules_.blocks == 0 || blocks <= rules_.blocks)) options.push_back({blocks, 0});
  }
  if (rules_.blocks > 0) return options;
  for (const int blocks : numbers_.clusters) {
    if (blocks > 1 && blocks <= target_.max_cluster) options.push_back({blocks, 1});
  }
  return options;
}

std::vector<KernelDesigns::Option> KernelDesigns::options_of_turns(const DesignFacts& facts,
                                                                   const PartialDesign& design) const {
  std::vector<Option> options;
  if (facts.columns) {
    for (const int blocks : numbers_.column_turns) options.push_back({blocks});
    return options;
  }
  const bool one = rules_.blocks > 0 || rules_.one_launch || facts.phase.in_place ||
                   (design.parts > 1 && !design.cluster);
  if (one) return {{0}};
  for (const int blocks : numbers_.turns) options.push_back({blocks});
  return options;
}

bool KernelDesigns::all_have_rows(const DesignFacts& facts, const PartialDesign& design, int rows) const {
  if (facts.form != Form::rows || facts.columns || design.turns == 0) return true;
  return facts.results / rows >= design.turns;
}

bool KernelDesigns::fills_slots(const DesignFacts& facts, const PartialDesign& design, int walking) const {
  constexpr int registers = 64;  // what the estimate of cached rows takes for granted
  if (facts.columns || design.turns == 0) return true;
  const Residency block{.blocks = 1, .threads = 32 * design.row_warps * walking, .registers = registers};
  return std::int64_t{design.turns} * design.parts >= std::int64_t{target_.sms} * blocks_per_sm(block, target_);
}

std::vector<KernelDesigns::Option> KernelDesigns::options_of_row_warps(const DesignFacts& facts,
                                                                       const PartialDesign& design) const {
  std::vector<Option> options;
  if (rules_.threads > 0 && facts.form != Form::rows) return {{most_warps()}};
  for (const int warps : numbers_.warps) {
    if (warps > most_warps() || (rules_.threads > 0 && most_warps() % warps != 0)) continue;
    if (all_have_rows(facts, design, warps)) options.push_back({warps});
  }
  return options;
}

std::vector<KernelDesigns::Option> KernelDesigns::options_of_walking(const DesignFacts& facts,
                                                                     const PartialDesign& design) const {
  if (facts.form != Form::rows) return {{1}};
  if (rules_.threads > 0) return {{most_warps() / design.row_warps}};
  std::vector<Option> options;
  for (const int warps : numbers_.warps) {
    const bool fits = warps * design.row_warps <= most_warps();
    if (fits && fills_slots(facts, design, warps)) options.push_back({warps});
  }
  return options;
}

std::vector<KernelDesigns::Option> KernelDesigns::options_of_lanes(const DesignFacts& facts,
                                                                   const PartialDesign& design) const {
  if (facts.form == Form::elements || facts.form == Form::tiles) return {{1}};
  // Threads that walk a row each would load elements that lie apart, which no estimate accounts for.
  if (facts.form == Form::scan) return {{facts.scans_inner ? 1 : 32}};
  if (facts.columns || (!facts.walks_down && design.walking_warps > 1)) return {{1}};
  std::vector<Option> options;
  const std::int64_t most = facts.walks_down ? 32 : 16;
  for (const int each : numbers_.row_lanes) {
    const bool useful = each == 1 || (each <= most && each / 2 < facts.results);
    if (useful && all_have_rows(facts, design, each * design.row_warps)) options.push_back({each});
  }
  return options;
}

std::vector<KernelDesigns::Option> KernelDesigns::options_of_vector(const DesignFacts& facts,
                                                                    const PartialDesign& design) const {
  constexpr std::int64_t lanes_of_line = 8, sector = 32;
  std::vector<Option> options;
  if (facts.form == Form::scan) return {{1}};
  const std::int64_t of_row = 32 / design.row_lanes;
  for (const int elements : numbers_.vectors) {
    // Lanes of a row that do not fill what memory moves at a time, which no estimate accounts for.
    const bool fills = of_row >= lanes_of_line || of_row * elements * facts.narrowest >= sector ||
                       of_row * elements >= facts.reduced;
    if (facts.form == Form::rows && !facts.walks_down && !fills) continue;
    if (elements <= facts.widest) options.push_back({elements, facts.form == Form::elements ? 1 : 0});
  }
  for (const int elements : numbers_.vectors) {
    // The estimate takes all blocks of these for busy, also those that have no turn.
    const bool of_rows = facts.form == Form::rows && design.turns == 0;
    if (of_rows && elements > 1 && elements <= facts.widest_rows) options.push_back({elements, 1});
  }
  return options;
}

std::vector<KernelDesigns::Option> KernelDesigns::options_of_handoff(const DesignFacts& facts,
                                                                     const PartialDesign& design) const {
  const bool hands_off = facts.columns || (design.parts > 1 && !design.cluster);
  if (!hands_off) return {{0}};
  if (rules_.blocks > 0) return {{rules_.blocks}};
  std::vector<Option> options = {{0}};
  if (!rules_.grid_barriers || is_cpu(target_)) return options;
  if (facts.columns) {
    options.push_back({design.turns});
    return options;
  }
  const std::int64_t groups = blocks_at_most(facts, design, design.row_warps) / design.parts;
  for (const int an_sm : numbers_.waiting) {
    const std::int64_t at_once = std::int64_t{an_sm} * target_.sms / design.parts;
    const auto blocks = static_cast<int>(design.parts * std::clamp<std::int64_t>(at_once, 1, std::max<std::int64_t>(1, groups)));
    if (options.back().number != blocks) options.push_back({blocks});
  }
  return options;
}

std::vector<KernelDesigns::Option> KernelDesigns::options_of_cache(const DesignFacts& facts,
                                                                   const PartialDesign& design) const {
  using Cache = PartialDesign::Cache;
  std::vector<Option> options;
  const auto add = [&](Cache cache, int number) { options.push_back({number, static_cast<int>(cache)}); };
  const bool apart = design.parts > 1 && !design.cluster;
  const bool launches = apart && design.blocks == 0;  // nothing is cached from launch to launch
  if (facts.form == Form::rows && !facts.cached.empty() && !launches) {
    const int most = cache_limit(facts, design, target_);
    const std::int64_t trips = elements_per_thread(facts.row, choices_of(design));
    const auto fits = [&](bool packed) {
      const std::int64_t registers =
          cache_registers(graph_, packed ? facts.loaded : facts.cached, trips, packed);
      return trips > 0 && registers + trips * facts.column_words <= most;
    };
    if (fits(false)) add(Cache::registers, most);
    if (!facts.loaded.empty() && fits(true)) add(Cache::packed, most);
  }
  if (facts.form == Form::rows && !facts.loaded.empty() && !apart && !facts.columns) {
    const std::int64_t elements = shared_elements(facts, design);
    if (elements > 0) add(Cache::shared, static_cast<int>(elements));
  }
  add(Cache::none, 0);
  return options;
}

/// As much of a row as leaves slots for half of the threads; on a CPU, as a block has room for.
std::int64_t KernelDesigns::shared_elements(const DesignFacts& facts, const PartialDesign& design) const {
  const Choices choices = choices_of(design);
  const std::int64_t bytes = facts.loaded_bytes * rows_at_once(choices);
  const std::int64_t part = target_.shared_per_sm * choices.block_threads() / (target_.max_threads_per_sm / 2);
  const std::int64_t share = part / target_.shared_unit * target_.shared_unit - target_.shared_reserved;
  const std::int64_t room = is_cpu(target_) ? target_.shared_per_block : std::min(target_.shared_per_block, share);
  const std::int64_t left = room - shared_bytes(graph_, facts.phase, choices);
  const std::int64_t whole = step_elements(choices), step = whole / design.parts;
  const std::int64_t steps = std::min(left / bytes / step, (facts.row.max() - 1) / whole + 1);
  return std::clamp<std::int64_t>(steps * step, 0, std::numeric_limits<int>::max());
}

std::vector<KernelDesigns::Option> KernelDesigns::options_of_row_to_row(const DesignFacts& facts,
                                                                        const PartialDesign& design) const {
  constexpr std::int64_t enough_rows = 4;  // of a block
  std::vector<Option> options = {{1, plain}};
  if (facts.form != Form::rows) return options;
  if (design.parts == 1 && !costly_columns(graph_, facts.phase).empty()) {
    const bool pays = facts.results / enough_rows >= blocks_at_most(facts, design, design.row_warps);
    options.insert(pays ? options.begin() : options.end(), {1, once});
  }
  if (!numbers_.row_to_row || design.turns == 0 || facts.columns) return options;
  for (const int kind : {1, 2, 3}) options.push_back({1, kind});
  return options;
}

/// Whether a value lets the phase add in the order of the choices that are kept. It leaves out early what
/// reduction_order.hpp would tell apart in the end.
bool KernelDesigns::keeps_order(const DesignFacts& facts, const PartialDesign& design,
                                const Option& option) const {
  const Choices& keep = *rules_.keep;
  const auto kept = [&](char dim, Level level) { return units_of(keep.splits, dim, level) == option.number; };
  switch (static_cast<Variable>(design.fixed)) {
    case parts:
      return !facts.adds_rows || units_of(keep.splits, 'c', Level::grid) *
                                         units_of(keep.splits, 'c', Level::cluster) ==
                                     option.number;
    case turns:
      return !facts.columns || kept('r', Level::grid);
    case row_warps:
      return !facts.columns || kept('r', Level::warp);
    case walking_warps:
      return !facts.adds_rows || kept('c', Level::warp);
    case lanes:
      return !facts.adds_rows || units_of(keep.splits, 'c', Level::lane) * option.number == 32;
    case vector:
      return !facts.adds_rows || option.kind == 1 || kept('c', Level::vector);
    case accumulators:
      return !facts.adds_rows || keep.accumulators == option.number;
    default:
      return true;
  }
}

Choices KernelDesigns::choices_of(const PartialDesign& design) const {
  const DesignFacts& facts = runs_[design.rewrite];
  const char outer = facts.form == Form::tiles ? 't' : 'r';
  std::vector<Split> splits;
  if (design.turns == 0) {
    splits.push_back({outer, Level::grid});
  } else {
    splits.push_back({outer, Level::serial});
    splits.push_back({outer, Level::grid, design.turns});
  }
  if (facts.form == Form::tiles) {
    splits.push_back({'y', Level::serial});
    splits.push_back({'y', Level::warp, design.row_warps});
    splits.push_back({'x', Level::lane, 32});
    splits.push_back({'x', Level::vector, design.vector});
  } else if (facts.form == Form::elements) {
    splits.push_back({'r', Level::warp, design.row_warps});
    splits.push_back({'r', Level::lane, 32});
    splits.push_back({'r', Level::vector, design.vector});
  } else {
    const Split of_rows{'r', Level::lane, design.row_lanes}, walking{'c', Level::lane, 32 / design.row_lanes};
    splits.push_back({'r', Level::warp, design.row_warps});
    splits.push_back({'c', Level::serial});
    splits.push_back({'c', design.cluster ? Level::cluster : Level::grid, design.parts});
    splits.push_back({'c', Level::warp, design.walking_warps});
    splits.push_back(facts.walks_down ? walking : of_rows);
    splits.push_back(facts.walks_down ? of_rows : walking);
    splits.push_back({design.vector_of_rows ? 'r' : 'c', Level::vector, design.vector});
  }
  Choices choices{.splits = without_ones(std::move(splits)), .blocks = design.blocks};
  choices.online_softmax = facts.online;
  choices.across = facts.across;
  if (design.cache == PartialDesign::Cache::shared) choices.shared_cache = design.cache_size;
  if (design.cache == PartialDesign::Cache::registers || design.cache == PartialDesign::Cache::packed)
    choices.register_cache = design.cache_size;
  choices.packed = design.cache == PartialDesign::Cache::packed;
  choices.accumulators = design.accumulators;
  choices.ahead = design.ahead;
  choices.invariants = design.invariants;
  choices.columns_once = design.columns_once;
  choices.registers = rules_.registers;
  return choices;
}

double KernelDesigns::bound(const Prefix& prefix) const {
  if (runs_.empty()) return std::numeric_limits<double>::infinity();
  if (!prefix.empty()) return design_bound(graph_, runs_[partial(prefix).rewrite], partial(prefix), numbers_, target_);
  double least = std::numeric_limits<double>::infinity();
  for (const DesignFacts& facts : runs_)
    least = std::min(least, design_bound(graph_, facts, {}, numbers_, target_));
  return least;
}

}  // namespace fuse::schedule
