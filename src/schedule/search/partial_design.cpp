// SPDX-License-Identifier: Apache-2.0
#include "schedule/search/partial_design.hpp"

#include <utility>
#include <vector>

namespace fuse::schedule {

std::string_view to_string(DesignVariable variable) {
  switch (variable) {
    case DesignVariable::rewrite:
      return "rewrite";
    case DesignVariable::parts:
      return "blocks of a row";
    case DesignVariable::turns:
      return "turns";
    case DesignVariable::row_warps:
      return "warps of rows";
    case DesignVariable::walking_warps:
      return "warps walking";
    case DesignVariable::lanes:
      return "lanes";
    case DesignVariable::vector:
      return "vector";
    case DesignVariable::handoff:
      return "handoff";
    case DesignVariable::cache:
      return "cache";
    case DesignVariable::accumulators:
      return "accumulators";
    case DesignVariable::row_to_row:
      return "row to row";
  }
  return "?";
}

void PartialDesign::take(const DesignOption& option) {
  const DesignVariable variable = next();
  ++fixed;
  switch (variable) {
    case DesignVariable::rewrite:
      rewrite = static_cast<std::size_t>(option.number);
      break;
    case DesignVariable::parts:
      parts = option.number;
      cluster = option.kind == 1;
      break;
    case DesignVariable::turns:
      turns = option.number;
      break;
    case DesignVariable::row_warps:
      row_warps = option.number;
      break;
    case DesignVariable::walking_warps:
      walking_warps = option.number;
      break;
    case DesignVariable::lanes:
      row_lanes = option.number;
      break;
    case DesignVariable::vector:
      vector = option.number;
      vector_of_rows = option.kind == 1;
      break;
    case DesignVariable::handoff:
      blocks = option.number;
      break;
    case DesignVariable::cache:
      cache = static_cast<Cache>(option.kind);
      cache_size = option.number;
      break;
    case DesignVariable::accumulators:
      accumulators = option.number;
      break;
    case DesignVariable::row_to_row:
      ahead = (option.kind & with_ahead) != 0;
      invariants = (option.kind & with_invariants) != 0;
      columns_once = (option.kind & once) != 0;
      break;
  }
}

namespace {

std::vector<Split> splits_of(const DesignFacts& facts, const PartialDesign& design) {
  const char outer = facts.form == DesignForm::tiles ? 't' : 'r';
  std::vector<Split> splits = {{outer, Level::grid}};
  if (design.turns > 0) splits = {{outer, Level::serial}, {outer, Level::grid, design.turns}};
  const auto add = [&](char dim, Level level, int units) { splits.push_back({dim, level, units}); };
  if (facts.form == DesignForm::tiles) {
    add('y', Level::serial, 0);
    add('y', Level::warp, design.row_warps);
    add('x', Level::lane, 32);
    add('x', Level::vector, design.vector);
    return splits;
  }
  add('r', Level::warp, design.row_warps);
  if (facts.form == DesignForm::elements) {
    add('r', Level::lane, 32);
    add('r', Level::vector, design.vector);
    return splits;
  }
  add('c', Level::serial, 0);
  add('c', design.cluster ? Level::cluster : Level::grid, design.parts);
  add('c', Level::warp, design.walking_warps);
  // Neighbouring lanes take what lies side by side in memory.
  if (facts.walks_down) add('c', Level::lane, 32 / design.row_lanes);
  add('r', Level::lane, design.row_lanes);
  if (!facts.walks_down) add('c', Level::lane, 32 / design.row_lanes);
  add(design.vector_of_rows ? 'r' : 'c', Level::vector, design.vector);
  return splits;
}

}  // namespace

Choices choices_of(const DesignFacts& facts, const PartialDesign& design, int registers) {
  using Cache = PartialDesign::Cache;
  Choices choices{.splits = without_ones(splits_of(facts, design)), .blocks = design.blocks};
  choices.online_softmax = facts.online;
  choices.across = facts.across;
  if (design.cache == Cache::shared) choices.shared_cache = design.cache_size;
  if (design.cache == Cache::registers || design.cache == Cache::packed)
    choices.register_cache = design.cache_size;
  choices.packed = design.cache == Cache::packed;
  choices.accumulators = design.accumulators;
  choices.ahead = design.ahead;
  choices.invariants = design.invariants;
  choices.columns_once = design.columns_once;
  choices.registers = registers;
  return choices;
}

}  // namespace fuse::schedule
