// SPDX-License-Identifier: Apache-2.0
#include "schedule/search/design_facts.hpp"

#include <algorithm>
#include <set>

#include "schedule/choosers/segment_cost.hpp"
#include "schedule/mapping/schedule.hpp"
#include "schedule/nest/usual_nests.hpp"
#include "schedule/segments/loop_shape.hpp"
#include "schedule/segments/staged.hpp"
#include "schedule/segments/transposed.hpp"
#include "schedule/segments/vector_width.hpp"

namespace fuse::schedule {
namespace {

constexpr int most_blocks_of_row = 1024;  // what a split of blocks that share a row may have

/// The passes that load elements of the rows.
int walked_passes(const Phase& phase) {
  std::set<int> passes;
  for (const Stage& stage : phase.stages) {
    if (stage.form != Stage::Form::column && walks(stage.form)) passes.insert(stage.pass);
  }
  return static_cast<int>(passes.size());
}

int meeting_passes(const Phase& phase) {
  std::set<int> passes;
  for (const Stage& stage : phase.stages) {
    if (stage.form == Stage::Form::inner_reduce) passes.insert(stage.pass);
  }
  return static_cast<int>(passes.size());
}

void set_tiles(const ir::Graph& graph, const Target& target, DesignFacts& facts) {
  const auto values = transposed(graph, facts.phase);
  if (!values || tile_bytes(graph, *values, 1) > target.shared_per_block) return;
  facts.form = DesignForm::tiles;
  const int most = tile_vector(graph, facts.phase, *values);
  for (int vector = 1; vector <= most && tile_bytes(graph, *values, vector) <= target.shared_per_block;
       vector *= 2) {
    facts.widest = vector;
    facts.tiles.push_back(product(tile_dims(graph[facts.phase.root].type.dims, *values, vector)).hint());
  }
}

void set_rows(const ir::Graph& graph, DesignFacts& facts) {
  const Phase& phase = facts.phase;
  facts.form = DesignForm::rows;
  facts.columns = has_columns(phase);
  facts.adds_rows = std::any_of(phase.stages.begin(), phase.stages.end(),
                                [](const Stage& stage) { return stage.form == Stage::Form::inner_reduce; });
  facts.walks_down = !loop_shape(graph, phase).inner;
  facts.widest_rows = widest_row_vector(graph, phase);
  facts.meetings = meeting_passes(phase);
  facts.works_again = last_pass(phase.stages) > 0;
  facts.rereads = phase.stages.size() < 2 ? 0 : std::max(0, walked_passes(phase) - 1);
  facts.cached = cached_values(graph, phase);
  facts.loaded = loaded_values(graph, phase);
  for (const CachedValue& each : facts.loaded)
    facts.loaded_bytes += static_cast<std::int64_t>(size_of(graph[each.node].type.dtype));
  if (facts.works_again) {
    facts.uncached_work = instructions(graph, phase, {});
    facts.cached_work = instructions(graph, phase, facts.cached);
    facts.loaded_work = instructions(graph, phase, facts.loaded);
  }
  facts.column_words = column_words(graph, phase.stages);
  Choices shared{.splits = facts.columns ? in_turns(nest_of_lanes(32), 2) : nest_of_shared_rows(32, 2)};
  shared.online_softmax = facts.online;
  shared.across = facts.across;
  facts.sections = static_cast<std::int64_t>(section_count(phase, shared));
  facts.splits_stages = splits_stages(phase, shared);
  facts.scratch_of_part = static_cast<double>(scratch_bytes(graph, phase, shared)) / 2;
}

}  // namespace

DesignFacts design_facts(const ir::Graph& graph, const Phase& cut, bool online, bool across,
                         const Target& target) {
  DesignFacts facts{.online = online, .across = across};
  Choices rewrite;
  rewrite.online_softmax = online;
  rewrite.across = across;
  facts.phase = staged(graph, cut, rewrite);
  const Phase& phase = facts.phase;
  facts.moved = static_cast<double>(moved_bytes(graph, phase));
  Phase reads = phase;
  reads.results.clear();
  reads.in_place = false;
  facts.inputs = static_cast<double>(moved_bytes(graph, reads));
  std::size_t narrowest = size_of(f64);
  for (const ir::NodeId input : phase.inputs)
    narrowest = std::min(narrowest, size_of(graph[input].type.dtype));
  facts.narrowest = static_cast<std::int64_t>(narrowest);
  facts.widest = widest_vector(graph, phase);
  const ir::Relation relation = info(graph[dominant(phase)].op).relation;
  if (relation != ir::Relation::reduce && relation != ir::Relation::scan) {
    const ir::NodeId stored = phase.in_place ? graph[phase.root].operands[1] : phase.root;
    facts.results = product(graph[stored].type.dims).hint();
    facts.reduced = 1;
    set_tiles(graph, target, facts);
    return facts;
  }
  const LoopShape shape = loop_shape(graph, phase);
  facts.row = product(shape.reduced);
  facts.results = product(shape.kept).hint();
  facts.reduced = facts.row.hint();
  if (relation == ir::Relation::scan) {
    facts.form = DesignForm::scan;
    facts.scans_inner = loop_shape(graph, graph[dominant(phase)]).inner;
  } else {
    set_rows(graph, facts);
  }
  return facts;
}

namespace {

void add_blocks_of_rows(const DesignFacts& facts, const Target& target, DesignNumbers& numbers) {
  constexpr std::int64_t fewest_elements = 128;  // of a row for each block
  const std::int64_t useful = std::min<std::int64_t>(most_blocks_of_row, facts.reduced / fewest_elements);
  std::set<std::int64_t> parts;
  for (std::int64_t each = 2; each <= useful; each *= 2) parts.insert(each);
  for (const std::int64_t waves : {1, 2}) {
    const std::int64_t wave = waves * target.sms / std::max<std::int64_t>(1, facts.results);
    if (wave >= 2 && wave <= useful) parts.insert(wave);
  }
  for (const std::int64_t each : parts) numbers.blocks_per_row.push_back(static_cast<int>(each));
  for (int each = 2; each <= std::min<std::int64_t>(target.max_cluster, useful); each *= 2)
    numbers.clusters.push_back(each);
}

void add_turns(const DesignFacts& facts, const Target& target, DesignNumbers& numbers) {
  if (is_cpu(target)) {
    for (int blocks = 2; blocks <= 64; blocks *= 2) numbers.column_turns.push_back(blocks);
    return;
  }
  numbers.column_turns.clear();
  for (const int blocks : {target.sms, target.sms / 4, target.sms / 2, 2 * target.sms, 3 * target.sms,
                           4 * target.sms, 8 * target.sms}) {
    if (blocks >= 1 && (blocks <= target.sms || blocks < facts.results))
      numbers.column_turns.push_back(blocks);
  }
  for (const int blocks : {target.sms, 2 * target.sms, 4 * target.sms, 8 * target.sms}) {
    if (blocks < facts.results && !facts.phase.in_place) numbers.turns.push_back(blocks);
  }
}

}  // namespace

DesignNumbers usual_numbers(const ir::Graph& graph, const Phase& cut, const Target& target) {
  const DesignFacts facts = design_facts(graph, cut, false, false, target);
  DesignNumbers numbers{
      .warps = {}, .row_lanes = {1, 2, 4, 8, 16, 32}, .vectors = {8, 4, 2, 1}, .waiting = {1, 2, 4}};
  for (int warps = 1; 32 * warps <= target.max_threads_per_block; warps *= 2) numbers.warps.push_back(warps);
  if (facts.form == DesignForm::rows && !facts.columns) add_blocks_of_rows(facts, target, numbers);
  add_turns(facts, target, numbers);
  return numbers;
}

}  // namespace fuse::schedule
