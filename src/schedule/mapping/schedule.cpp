// SPDX-License-Identifier: Apache-2.0
#include "schedule/mapping/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <utility>

#include "base/access.hpp"
#include "ir/dims/dim_poly.hpp"
#include "schedule/mapping/costly_columns.hpp"
#include "schedule/mapping/nest_rules.hpp"
#include "schedule/mapping/occupancy_target.hpp"
#include "schedule/mapping/regional_launch.hpp"
#include "schedule/mapping/schemes.hpp"
#include "schedule/nest/usual_nests.hpp"
#include "schedule/segments/loop_shape.hpp"
#include "schedule/segments/online_softmax.hpp"
#include "schedule/segments/staged.hpp"
#include "schedule/segments/transposed.hpp"
#include "schedule/segments/vector_width.hpp"
#include "target/residency.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;

constexpr std::int64_t int_limit = std::numeric_limits<std::int32_t>::max();
// Registers per thread that columns may take; on a CPU they lie in the first-level cache.
int most_columns(const Target& target) { return is_cpu(target) ? 255 : 64; }

/// Facts know more than ranges alone where a product is bounded, so they are asked when that can matter.
std::int64_t upper_bound(const Dim& dim, const analysis::Facts& facts) {
  const std::int64_t own = dim.max();
  return own <= int_limit ? own : std::min(own, facts.range(dim).max);
}

/// The largest value in the evaluation of the expression: among symbols, dividends and itself.
std::int64_t largest_within(const Dim& dim, const analysis::Facts& facts) {
  std::int64_t largest = upper_bound(dim, facts);
  if (!poly_of(dim)) return largest;
  for (const detail::DimTerm& term : poly_of(dim)->terms) {
    Dim product = term.coefficient < 0 ? -term.coefficient : term.coefficient;
    for (const detail::Atom& factor : term.factors) {
      if (factor->kind == detail::DimAtom::Kind::symbol) {
        largest = std::max(largest, factor->range.max);
      } else if (factor->kind != detail::DimAtom::Kind::index) {
        largest = std::max(
            {largest, largest_within(factor->dividend, facts), largest_within(factor->divisor, facts)});
      }
      product = product * detail::DimPoly::of(factor);
    }
    largest = std::max(largest, upper_bound(product, facts));
  }
  return largest;
}

/// i32 only when every element index, every launched thread and every loop counter one step past its end is
/// proven below 2^31.
DType index_type(const ir::Graph& graph, const analysis::Facts& facts, const Phase& phase,
                 const KernelSchedule& kernel, int parts) {
  std::int64_t largest = 0;
  const auto consider = [&](const Dim& extent) {
    largest = std::max(largest, largest_within(extent, facts));
  };
  for (NodeId id : phase.nodes) {
    for (const Dim& dim : ir::dims_of(graph[id].attr)) consider(dim);
    for (const Dim& dim : graph[id].type.dims) consider(dim);
  }
  for (NodeId id : phase.nodes) consider(product(graph[id].type.dims));
  for (NodeId id : phase.inputs) consider(product(graph[id].type.dims));
  consider(kernel.results * kernel.reduced);
  consider(kernel.grid * kernel.block_threads * kernel.vector);
  consider(kernel.reduced + std::int64_t{kernel.block_threads} * parts * kernel.vector);
  return largest <= int_limit ? i32 : i64;
}

Dim blocks_of(const Nest& nest) { return units(nest, Level::grid) * units(nest, Level::cluster); }

/// Sets the loops, and from them the blocks: what each does at a time, and how many there are. Where columns
/// are kept from row to row, all turns of a block count as one tile.
void set_nest(KernelSchedule& kernel, Nest nest, bool columns = false) {
  kernel.grid = blocks_of(nest);
  kernel.tiles = columns ? kernel.grid : blocks_of(without_turns(nest));
  kernel.nest = std::move(nest);
}

/// What a phase does with its elements.
enum class Form : std::uint8_t { element, reduce, scan };

Form form_of(const ir::Graph& graph, const Phase& phase) {
  switch (info(graph[dominant(phase)].op).relation) {
    case ir::Relation::reduce:
      return Form::reduce;
    case ir::Relation::scan:
      return Form::scan;
    default:
      return Form::element;
  }
}

std::vector<Stage> column_reductions(const std::vector<Stage>& all) {
  std::vector<Stage> stages;
  std::copy_if(all.begin(), all.end(), std::back_inserter(stages),
               [](const Stage& stage) { return stage.form == Stage::Form::outer_reduce; });
  return stages;
}

}  // namespace

int tile_lanes(const Dim& results, std::int64_t blocks, int fewest) {
  int lanes = tile_columns;
  while (lanes > fewest && results.hint() < blocks * lanes) lanes /= 2;
  return lanes;
}

int column_words(const ir::Graph& graph, const std::vector<Stage>& stages) {
  int bytes = 0;
  for (const Stage& stage : column_reductions(stages)) {
    for (const DType dtype : reduction_state(graph, stage))
      bytes += std::max(4, static_cast<int>(size_of(dtype)));
  }
  return bytes / 4;
}

bool columns_fit(const ir::Graph& graph, const Phase& phase, const Choices& choices, const Target& target) {
  const Dim row = product(loop_shape(graph, phase).reduced);
  const std::int64_t trips = elements_per_thread(row, choices);
  return trips > 0 && trips * column_words(graph, phase.stages) <= most_columns(target);
}

bool can_keep_columns(const ir::Graph& graph, const std::vector<NodeId>& reductions, const Target& target) {
  std::vector<Stage> stages;
  for (const NodeId root : reductions) stages.push_back({.root = root, .form = Stage::Form::outer_reduce});
  const Dim row = product(loop_shape(graph, graph[reductions[0]]).kept);
  const Choices widest{.splits = nest_of_blocks(target.max_threads_per_block)};
  const std::int64_t trips = elements_per_thread(row, widest);
  const int most = is_cpu(target) ? most_columns(target) / 2 : most_cached / 2;
  return trips > 0 && trips * column_words(graph, stages) <= most;
}

bool splits_stages(const Phase& phase, const Choices& choices) {
  return splits_rows(choices) && phase.stages.size() > 1;
}

std::int64_t shared_bytes(const ir::Graph& graph, const Segment& segment, const KernelChoices& choices) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < segment.phases.size(); ++i)
    bytes += shared_bytes(graph, staged(graph, segment.phases[i], choices.phases[i]), choices.phases[i]);
  if (!segment.regional()) return bytes;
  for (const BlockValue& each : block_values(graph, segment, choices))
    bytes += each.elements * static_cast<std::int64_t>(size_of(graph[each.value].type.dtype));
  return bytes;
}

std::int64_t shared_bytes(const ir::Graph& graph, const Phase& phase, const Choices& choices) {
  if (walks_tiles(choices)) return tile_bytes(graph, transposed(graph, phase).value(), choices.vector());
  const std::vector<Split>& splits = choices.splits;
  const std::int64_t rows = rows_at_once(choices), warps_of_row = units_of(splits, 'c', Level::warp);
  // The states of each reduction: what warps leave of their rows and of blocks' partials, and what a
  // cluster's blocks leave for each other.
  const std::int64_t exchanges = std::int64_t{warps_of_row > 1} + std::int64_t{warps_take_partials(choices)};
  const std::int64_t states = exchanges * warps_of_row * rows + (choices.cluster() > 1 ? rows : 0);
  // For columns, what warps with rows of their own leave, and what those leave that combine blocks' partials.
  const bool own_rows = units_of(splits, 'r', Level::warp) > 1;
  const std::int64_t columns = choices.block_threads() * (std::int64_t{own_rows} + (choices.blocks > 0));
  std::int64_t sum = choices.columns_once ? bytes_of_costly_columns(graph, phase) : 0;
  if (choices.shared_cache > 0) {
    for (const CachedValue& cached : loaded_values(graph, phase)) {
      const auto element = static_cast<std::int64_t>(size_of(graph[cached.node].type.dtype));
      sum += element * choices.shared_cache * rows;
    }
  }
  for (const Stage& stage : phase.stages) {
    const bool row = stage.form == Stage::Form::inner_reduce;
    if (!row && stage.form != Stage::Form::outer_reduce) continue;
    for (const DType dtype : reduction_state(graph, stage))
      sum += (row ? states : columns) * static_cast<std::int64_t>(size_of(dtype));
  }
  return sum;
}

namespace {

/// The launch that combines the partials that blocks left for each of `values` values called `kept`.
KernelSchedule combining(char kept, const Dim& values, const Choices& choices, int threads) {
  KernelSchedule combine{.role = KernelSchedule::Role::combine,
                         .results = values,
                         .reduced = choices.blocks_per_row(),
                         .block_threads = threads,
                         .registers = choices.registers,
                         .section = 1};
  combine.nest.dims = {{kept, values}, {'p', choices.blocks_per_row()}};
  return combine;
}

/// The same loops as in a cooperative kernel, so that both add in one order: one warp per row, or some of its
/// lanes; or, for many partials, all threads that a block has for the row.
KernelSchedule combining_rows(const Dim& rows, const Choices& choices) {
  const std::vector<Split>& splits = choices.splits;
  const bool by_warps = warps_take_partials(choices);
  const bool whole_blocks = by_warps || choices.blocks > 0;
  const int threads = whole_blocks ? choices.block_threads() : std::min(choices.block_threads(), 128);
  KernelSchedule combine = combining('r', rows, choices, threads);
  const std::int64_t lanes = units_of(splits, 'c', Level::lane);
  Nest nest = std::move(combine.nest);
  if (by_warps) {
    nest.splits.push_back({'r', Level::grid});
    for (Split split : splits) {
      if (split.level == Level::grid || split.level == Level::vector || split == Split{'r', Level::serial})
        continue;
      if (split.dim == 'c') split.dim = 'p';
      nest.splits.push_back(split);
    }
    set_nest(combine, std::move(nest));
    return combine;
  }
  nest.splits = without_ones({{'r', Level::grid},
                              {'r', Level::warp, combine.block_threads / 32},
                              {'p', Level::serial},
                              {'r', Level::lane, 32 / lanes},
                              {'p', Level::lane, lanes}});
  set_nest(combine, std::move(nest));
  return combine;
}

/// The launch has columns side by side, which the threads beside them share. It has as many threads as a
/// cooperative kernel, so that both add in one order.
KernelSchedule combining_columns(const Dim& columns, const Choices& choices) {
  KernelSchedule combine = combining('c', columns, choices, choices.block_threads());
  const std::int64_t lanes = tile_lanes(columns, choices.blocks_per_row(), fewest_tile_lanes);
  Nest nest = std::move(combine.nest);
  nest.splits = without_ones({{'c', Level::grid},
                              {'p', Level::serial},
                              {'p', Level::warp, combine.block_threads / 32},
                              {'p', Level::lane, 32 / lanes},
                              {'c', Level::lane, lanes}});
  set_nest(combine, std::move(nest));
  return combine;
}

/// The dims of the loops that walk what the phase reads.
std::vector<Nest::LoopDim> loop_dims(const ir::Graph& graph, const Phase& phase, const Choices& choices,
                                     const KernelSchedule& kernel) {
  if (!walks_tiles(choices)) return {{'r', kernel.results}, {'c', kernel.reduced}};
  const int side = tile_side(choices.vector());
  const std::vector<Dim> tiles =
      tile_dims(graph[phase.root].type.dims, transposed(graph, phase).value(), choices.vector());
  return {{'t', product(tiles)}, {'y', side}, {'x', side}};
}

}  // namespace

std::vector<KernelSchedule> launches(const ir::Graph& graph, const Phase& phase, const Choices& choices) {
  KernelSchedule kernel{.block_threads = choices.block_threads(),
                        .vector = choices.vector(),
                        .cluster = choices.cluster(),
                        .registers = choices.registers};
  const Form form = form_of(graph, phase);
  if (form == Form::element) {
    const NodeId stored = phase.in_place ? graph[phase.root].operands[1] : phase.root;
    kernel.results = product(graph[stored].type.dims);
    kernel.reduced = 1;
  } else {
    const LoopShape shape = loop_shape(graph, phase);
    kernel.results = product(shape.kept);
    kernel.reduced = product(shape.reduced);
  }
  const bool columns = has_columns(phase);
  set_nest(kernel, {.dims = loop_dims(graph, phase, choices, kernel), .splits = choices.splits}, columns);
  // Rows without elements have no prefix sums, however many rows there are.
  if (form == Form::scan && kernel.reduced.is(0)) kernel.tiles = kernel.grid = 0;
  if (choices.cluster() > 1 || (!splits_rows(choices) && !columns)) return {kernel};
  KernelSchedule cooperative = kernel;
  cooperative.role = KernelSchedule::Role::cooperative;
  cooperative.grid = choices.blocks;
  cooperative.nest = {};
  kernel.role = KernelSchedule::Role::partial;
  std::vector<KernelSchedule> kernels;
  if (splits_stages(phase, choices)) {
    const std::vector<Section> sections = sections_of(graph, phase, choices);
    kernels.assign(sections.size(), kernel);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      kernels[i].section = i;
      if (i + 1 < kernels.size() || walks_rows(sections[i])) continue;
      std::erase_if(kernels[i].nest.splits,
                    [](const Split& split) { return split.dim == 'c' && split.level == Level::grid; });
      set_nest(kernels[i], std::move(kernels[i].nest));
    }
    kernels.back().role = KernelSchedule::Role::combine;
  } else {
    kernels = {kernel, columns ? combining_columns(kernel.reduced, choices)
                               : combining_rows(kernel.results, choices)};
  }
  if (choices.blocks > 0) kernels.push_back(cooperative);
  return kernels;
}

namespace {

/// Caches as much as fits of what the passes would cache.
void fill_cache(const ir::Graph& graph, PhaseSchedule& phase) {
  const Choices& choices = phase.choices;
  if (choices.columns_once) phase.columns_once = costly_columns(graph, phase.computes);
  if (choices.shared_cache > 0) {
    phase.cached = loaded_values(graph, phase.computes);
    return;
  }
  if (choices.ahead) phase.ahead = rows_to_load(graph, phase.computes);
  if (choices.invariants) phase.invariants = row_invariants(graph, phase.computes);
  const bool always = has_columns(phase.computes) || choices.ahead || choices.invariants;
  if (choices.register_cache == 0 && !always) return;
  const std::int64_t trips = elements_per_thread(phase.kernels[0].reduced, choices);
  if (always) phase.elements_per_thread = static_cast<int>(trips);
  if (trips == 0) return;
  // Nothing stays in registers from launch to launch.
  const bool apart = choices.blocks == 0 && choices.cluster() == 1;
  if (splits_rows(choices) && apart) return;
  for (const CachedValue& cached : values_to_cache(graph, phase.computes, choices.packed)) {
    phase.cached.push_back(cached);
    if (cache_registers(graph, phase.cached, trips, choices.packed) > choices.register_cache)
      phase.cached.pop_back();
  }
  if (!phase.cached.empty()) phase.elements_per_thread = static_cast<int>(trips);
}

bool is_cooperative(const KernelSchedule& kernel) { return kernel.role == KernelSchedule::Role::cooperative; }
/// Whether it runs launches that are its own alone: its phases never run apart.
bool is_whole(const KernelSchedule& kernel) {
  return kernel.role == KernelSchedule::Role::horizontal || kernel.role == KernelSchedule::Role::regional;
}

bool has_vectors(const Nest& nest) {
  return std::any_of(nest.splits.begin(), nest.splits.end(),
                     [](const Split& split) { return split.level == Level::vector; });
}

PhaseSchedule schedule_of(const ir::Graph& graph, const Phase& cut, const Choices& choices,
                          const analysis::Facts& facts) {
  PhaseSchedule phase{.computes = staged(graph, cut, choices), .choices = choices};
  const Phase& computes = phase.computes;
  phase.sections = sections_of(graph, computes, choices);
  phase.kernels = launches(graph, computes, choices);
  phase.scratch = scratch_of(graph, computes, choices);
  const std::vector<Dim> tested =
      walks_tiles(choices) ? std::vector<Dim>() : symbols_to_test(graph, computes, choices.vector());
  for (KernelSchedule& kernel : phase.kernels) {
    if (is_cooperative(kernel) || has_vectors(kernel.nest)) kernel.tested = tested;
    const bool partials = splits_rows(choices) || kernel.role == KernelSchedule::Role::partial;
    kernel.index_type = index_type(graph, facts, computes, kernel, partials ? choices.blocks_per_row() : 1);
  }
  fill_cache(graph, phase);
  return phase;
}

/// The launches of several phases, without the cooperative kernels of single phases, then the cooperative
/// kernel that runs them all.
std::vector<KernelSchedule> launches_of(const std::vector<PhaseSchedule>& phases,
                                        const KernelChoices& choices) {
  if (phases.size() == 1) return phases[0].kernels;
  std::vector<KernelSchedule> kernels;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    for (KernelSchedule kernel : phases[i].kernels) {
      kernel.phase = i;
      if (!is_cooperative(kernel)) kernels.push_back(std::move(kernel));
    }
  }
  KernelSchedule cooperative = kernels.front();
  cooperative.role = KernelSchedule::Role::cooperative;
  cooperative.grid = choices.blocks;
  cooperative.nest = {};
  cooperative.block_threads = choices.block_threads();
  kernels.push_back(std::move(cooperative));
  return kernels;
}

/// The kernel whose blocks are those of the phases' launches, one range after the other.
KernelSchedule horizontal_launch(const std::vector<PhaseSchedule>& phases, const analysis::Facts& facts) {
  KernelSchedule whole{.role = KernelSchedule::Role::horizontal,
                       .results = 0,
                       .reduced = 1,
                       .tiles = 0,
                       .grid = 0,
                       .block_threads = phases[0].kernels[0].block_threads,
                       .index_type = i32,
                       .registers = phases[0].kernels[0].registers};
  for (const PhaseSchedule& phase : phases) {
    const KernelSchedule& launch = phase.kernels[0];
    whole.results = whole.results + launch.results;
    whole.tiles = whole.tiles + launch.tiles;
    whole.grid = whole.grid + launch.grid;
    if (launch.index_type == i64) whole.index_type = i64;
  }
  if (upper_bound(whole.grid * whole.block_threads, facts) > int_limit) whole.index_type = i64;
  return whole;
}

/// The number of blocks of the cooperative kernel.
int cooperative_blocks(const KernelChoices& choices) {
  return choices.phases.size() > 1 ? choices.blocks : choices.phases[0].blocks;
}

}  // namespace

PhaseSchedule without_vectors(PhaseSchedule phase) {
  phase.choices.set('c', Level::vector, 1);
  for (KernelSchedule& kernel : phase.kernels) {
    if (kernel.tested.empty()) continue;
    std::vector<Split>& splits = kernel.nest.splits;
    // Where no elements are walked, a block has as many as before: each thread some that lie a block apart.
    const std::int64_t in_turns = units_of(splits, 'r', Level::vector);
    splits = with_units(with_units(std::move(splits), 'c', Level::vector, 1), 'r', Level::vector, 1);
    if (in_turns > 1) {
      const auto warps = std::find_if(splits.begin(), splits.end(), [](const Split& split) {
        return split.level == Level::warp || split.level == Level::lane;
      });
      splits.insert(warps, {'r', Level::serial, in_turns});
    }
    kernel.tested.clear();
    kernel.vector = 1;
  }
  return phase;
}

std::int64_t row_groups(const PhaseSchedule& phase) {
  const Choices& choices = phase.choices;
  if (!splits_rows(choices) || choices.blocks < 2 * choices.blocks_per_row()) return 0;
  return choices.blocks / choices.blocks_per_row();
}

std::int64_t barrier_counters(const Schedule& schedule) {
  std::int64_t counters = 1;
  for (const PhaseSchedule& phase : schedule.phases) counters += row_groups(phase);
  return counters;
}

Schedule make_schedule(const ir::Graph& graph, const Segment& segment, const KernelChoices& choices,
                       const Target& target, const analysis::Facts& facts) {
  Schedule schedule{.segment = segment, .choices = choices};
  for (std::size_t i = 0; i < segment.phases.size(); ++i) {
    schedule.phases.push_back(schedule_of(graph, segment.phases[i], choices.phases[i], facts));
    PhaseSchedule& phase = schedule.phases.back();
    schedule.segment.phases[i] = phase.computes;
    schedule.scratch.insert(schedule.scratch.end(), phase.scratch.begin(), phase.scratch.end());
  }
  if (segment.horizontal()) {
    schedule.kernels = {horizontal_launch(schedule.phases, facts)};
  } else if (segment.regional()) {
    make_regional(graph, facts, schedule);
  } else {
    schedule.kernels = launches_of(schedule.phases, choices);
  }
  if (is_cooperative(schedule.kernels.back())) {
    schedule.blocks_per_sm = (cooperative_blocks(choices) + target.sms - 1) / target.sms;
    for (const KernelSchedule& kernel : schedule.kernels) {
      if (kernel.index_type == i64) schedule.kernels.back().index_type = i64;
    }
  }
  const std::int64_t shared = shared_bytes(graph, schedule.segment, choices);
  for (KernelSchedule& kernel : schedule.kernels)
    kernel.min_blocks_per_sm =
        min_blocks_per_sm(kernel, shared, is_cooperative(kernel) ? schedule.blocks_per_sm : 1, target);
  return schedule;
}

std::string_view to_string(KernelSchedule::Role role) {
  switch (role) {
    case KernelSchedule::Role::whole:
      return "whole";
    case KernelSchedule::Role::partial:
      return "partial";
    case KernelSchedule::Role::combine:
      return "combine";
    case KernelSchedule::Role::cooperative:
      return "cooperative";
    case KernelSchedule::Role::regional:
      return "regional";
    case KernelSchedule::Role::horizontal:
      return "horizontal";
  }
  return "?";
}

std::string loops_text(const KernelSchedule& kernel) {
  if (is_cooperative(kernel)) return "its launches, one after the other";
  if (kernel.role == KernelSchedule::Role::horizontal) return "its phases, side by side";
  if (kernel.role == KernelSchedule::Role::regional) return "its phases, one after the other in each block";
  return to_string(kernel.nest);
}

namespace {

/// ", by vectors where S and T are multiples of 4"
std::string tested_text(const KernelSchedule& kernel) {
  std::string names;
  for (const Dim& symbol : kernel.tested) names += (names.empty() ? "" : " and ") + symbol.to_string();
  if (names.empty()) return "";
  return fmt::format(", by vectors where {} {} of {}", names,
                     kernel.tested.size() == 1 ? "is a multiple" : "are multiples", kernel.vector);
}

}  // namespace

std::string print(const ir::Graph& graph, const Schedule& schedule) {
  std::string text =
      fmt::format("schedule of segment {} {}   choices {{{}}}\n", graph.value_name(schedule.segment.root),
                  to_string(graph[schedule.segment.root].op), schedule.choices.to_string());
  const bool several = schedule.phases.size() > 1;
  const bool stitched = several || schedule.phases[0].computes.stages.size() > 1;
  for (const PhaseSchedule& phase : schedule.phases) {
    if (stitched)
      text +=
          fmt::format("  {} {}\n", several ? "phase" : "stages", stages_text(graph, phase.computes.stages));
    for (const CachedValue& cached : phase.cached) {
      const std::string where =
          phase.elements_per_thread > 0
              ? fmt::format("{} elements per thread", phase.elements_per_thread)
              : fmt::format("{} elements of a row in shared memory", phase.choices.shared_cache);
      text += fmt::format("  cached {} {}: {}, from pass {} to {}\n", graph.value_name(cached.node),
                          to_string(graph[cached.node].op), where, cached.first, cached.last);
    }
    for (const NodeId id : phase.ahead)
      text += fmt::format("  ahead {}: {} elements per thread, of the next row\n", graph.value_name(id),
                          phase.elements_per_thread);
    for (const NodeId id : phase.columns_once)
      text += fmt::format("  once per block {} {}: {} elements\n", graph.value_name(id),
                          to_string(graph[id].op), product(graph[id].type.dims).to_string());
    for (const RowInvariant& each : phase.invariants)
      text += fmt::format("  invariant {}: {} elements per thread, of all rows\n",
                          graph.value_name(each.input), phase.elements_per_thread);
  }
  for (const BlockValue& each : schedule.in_block)
    text += fmt::format("  in the block {} {}: {} elements\n", graph.value_name(each.value),
                        to_string(graph[each.value].op), each.of_block.to_string());
  for (const SliceStart& start : schedule.starts)
    text += fmt::format("  starts {} slice: dim {} at {}, an argument\n", graph.value_name(start.node),
                        start.axis, (start.factor * start.argument).to_string());
  if (stitched) text += fmt::format("  schemes {}\n", schemes_text(graph, schedule));
  for (const KernelSchedule& kernel : schedule.kernels) {
    text += fmt::format("  {}: results {}  reduced {}  grid {} x {}  index {}\n", to_string(kernel.role),
                        kernel.results.to_string(), kernel.reduced.to_string(), kernel.grid.to_string(),
                        kernel.block_threads, fuse::to_string(kernel.index_type));
    if (!kernel.nest.splits.empty())
      text += fmt::format("    nest {}{}\n", to_string(kernel.nest), tested_text(kernel));
  }
  for (std::size_t i = 0, same = 1; i < schedule.scratch.size(); i += same, same = 1) {
    const Dim& elements = schedule.scratch[i].elements;
    while (i + same < schedule.scratch.size() && schedule.scratch[i + same].elements == elements) ++same;
    text += fmt::format("  scratch {} x {} arrays\n", elements.to_string(), same);
  }
  return text;
}

namespace {

/// Why shared memory cannot cache elements of a row in this way; empty if it can, or caches none.
std::string defect_of_shared_cache(const ir::Graph& graph, const Phase& phase, const Choices& choices) {
  if (choices.shared_cache == 0) return "";
  if (form_of(graph, phase) != Form::reduce) return "where no row is reduced";
  if (splits_rows(choices) && choices.cluster() == 1)
    return "which takes a warp, a block or a cluster for each row";
  if (has_columns(phase)) return "beside columns";
  if (choices.register_cache > 0) return "beside registers that cache them";
  const std::int64_t step =
      choices.cluster() > 1 ? step_elements(choices) / choices.blocks_per_row() : choices.vector();
  if (choices.shared_cache % step != 0) return fmt::format("which are no multiple of {}", step);
  return "";
}

/// Why a thread cannot have several; empty if it can, or has one.
std::string defect_of_accumulators(const Phase& phase, const Choices& choices) {
  if (choices.accumulators == 1) return "";
  if (std::none_of(phase.stages.begin(), phase.stages.end(),
                   [](const Stage& stage) { return stage.form == Stage::Form::inner_reduce; }))
    return "where no row is reduced";
  const std::int64_t vector = units_of(choices.splits, 'c', Level::vector);
  if (vector % choices.accumulators != 0)
    return fmt::format("which a vector of {} cannot go to in turns", vector);
  return "";
}

std::string threads_defect(int threads, const Target& target) {
  return fmt::format("a block of {} threads; {} has blocks of 32 to {}, in steps of 32", threads, target.name,
                     target.max_threads_per_block);
}

/// What is wrong with choices for a phase as they stage it; empty if nothing is. No launch is made for this.
std::string defect_of(const ir::Graph& graph, const Phase& phase, const Choices& choices,
                      const Target& target) {
  if (const std::string defect = defect_of_loops(graph, phase, choices, target); !defect.empty())
    return defect;
  if (choices.block_threads() > target.max_threads_per_block)
    return threads_defect(choices.block_threads(), target);
  if (choices.across && !has_columns(phase))
    return "across is for reductions over an outer dim, of which it has none";
  if (const std::string shared = defect_of_shared_cache(graph, phase, choices); !shared.empty())
    return fmt::format("{} elements of a row in shared memory, {}", choices.shared_cache, shared);
  if (choices.packed && choices.register_cache == 0) return "packed needs a register_cache";
  if (is_cpu(target) && choices.packed) return "packed is for registers of a GPU";
  if (is_cpu(target) && choices.blocks > 0)
    return "blocks that wait for each other: those of a CPU run one after another on each core";
  if (const std::string defect = defect_of_accumulators(phase, choices); !defect.empty())
    return fmt::format("{} accumulators, {}", choices.accumulators, defect);
  if (std::string defect = defect_of_row_to_row(graph, phase, choices); !defect.empty()) return defect;
  if (std::string defect = defect_of_costly_columns(graph, phase, choices); !defect.empty()) return defect;
  const Residency block{.blocks = 1, .threads = choices.block_threads(), .registers = choices.registers};
  if (choices.registers > 0 && blocks_per_sm(block, target) == 0)
    return fmt::format("{} registers: {} has {} for a block of {} threads, at most {} each",
                       choices.registers, target.name, target.registers_per_sm, choices.block_threads(),
                       target.registers_per_sm / choices.block_threads());
  if (has_columns(phase) && !columns_fit(graph, phase, choices, target)) {
    const std::int64_t trips = elements_per_thread(product(loop_shape(graph, phase).reduced), choices);
    if (trips == 0) return "columns that no thread can keep: a row may be far longer than its hint";
    return fmt::format("columns that no thread can keep: {} registers of 4 bytes, at most {}",
                       trips * column_words(graph, phase.stages), most_columns(target));
  }
  return "";
}

/// What is wrong with the schedule of a phase; empty if nothing is.
std::string defect_of(const ir::Graph& graph, const PhaseSchedule& phase, const Target& target) {
  const Choices& choices = phase.choices;
  const Phase& computes = phase.computes;
  if (const std::string defect = defect_of(graph, computes, choices, target); !defect.empty()) return defect;
  if (phase.elements_per_thread > 0 && cache_registers(graph, phase.cached, phase.elements_per_thread,
                                                       choices.packed) > choices.register_cache)
    return "more cached than chosen";
  for (const CachedValue& cached : phase.cached) {
    const std::size_t group =
        static_cast<std::size_t>(choices.vector()) * size_of(graph[cached.node].type.dtype);
    if (choices.packed && group % 4 != 0) return "packed needs vectors that fill registers of 4 bytes";
  }
  const bool partials = (splits_rows(choices) && choices.cluster() == 1) || has_columns(computes);
  if (partials != (phase.kernels.size() > 1) || partials == phase.scratch.empty())
    return "partial results without scratch";
  const auto cooperative = std::count_if(phase.kernels.begin(), phase.kernels.end(), is_cooperative);
  if (cooperative != (choices.blocks > 0)) return "blocks without a cooperative kernel";
  return "";
}

/// The defect of a launch that has loops of its own.
std::string defect_of_nest(const KernelSchedule& kernel) {
  if (is_cooperative(kernel) || is_whole(kernel)) return "";
  if (const std::string defect = defect_of(kernel.nest); !defect.empty())
    return fmt::format("nest {}: {}", to_string(kernel.nest), defect);
  const Dim threads = units(kernel.nest, Level::warp) * units(kernel.nest, Level::lane);
  if (!threads.is(kernel.block_threads))
    return fmt::format("nest {}: {} threads of {}", to_string(kernel.nest), threads.to_string(),
                       kernel.block_threads);
  return "";
}

/// A range of blocks, or a block, has all that its phase needs of other threads inside.
std::string defect_of_whole(const Schedule& schedule) {
  for (const PhaseSchedule& phase : schedule.phases) {
    if (phase.kernels.size() != 1 || phase.kernels[0].cluster != 1)
      return "a phase of a regional or a horizontal kernel that is not one launch without clusters";
    if (schedule.segment.regional() && !phase.kernels[0].tested.empty())
      return "a phase of a regional kernel whose vectors are tested";
  }
  return is_whole(schedule.kernels[0]) ? "" : "phases without the kernel that runs them";
}

std::string defect_of(const ir::Graph& graph, const Schedule& schedule, const Target& target) {
  if (schedule.phases.empty() || schedule.phases.size() != schedule.segment.phases.size())
    return "phases without schedules";
  for (const PhaseSchedule& phase : schedule.phases) {
    if (const std::string defect = defect_of(graph, phase, target); !defect.empty()) return defect;
    const auto differ = [&](const char* what, int own, int first) {
      return fmt::format("phase {} has {} {}, and phase 0 has {}: all phases need the same",
                         &phase - schedule.phases.data(), own, what, first);
    };
    const Choices &own = phase.choices, &first = schedule.phases[0].choices;
    if (own.block_threads() != first.block_threads())
      return differ("threads in a block", own.block_threads(), first.block_threads());
    if (own.registers != first.registers) return differ("registers", own.registers, first.registers);
  }
  if (schedule.kernels.empty()) return "no launch";
  const std::size_t launches =
      is_whole(schedule.kernels[0]) ? 1 : launches_of(schedule.phases, schedule.choices).size();
  if (schedule.kernels.size() != launches) return "other launches than its phases have";
  std::vector<ScratchArray> scratch;
  for (const PhaseSchedule& phase : schedule.phases)
    scratch.insert(scratch.end(), phase.scratch.begin(), phase.scratch.end());
  if (schedule.scratch != scratch) return "other scratch than its phases have";
  const std::int64_t shared = shared_bytes(graph, schedule.segment, schedule.choices);
  for (const KernelSchedule& kernel : schedule.kernels) {
    if (kernel.block_threads < 32 || kernel.block_threads > target.max_threads_per_block ||
        kernel.block_threads % 32 != 0) {
      return threads_defect(kernel.block_threads, target);
    }
    if (const std::string defect = defect_of_nest(kernel); !defect.empty()) return defect;
    const Residency least{.blocks = 1,
                          .threads = kernel.block_threads,
                          .shared_bytes = shared,
                          .blocks_per_sm = schedule.blocks_per_sm};
    if (is_cooperative(kernel) && schedule.blocks_per_sm > blocks_per_sm(least, target))
      return fmt::format("{} blocks of {} threads wait for each other, and {} has slots for {}",
                         cooperative_blocks(schedule.choices), kernel.block_threads, target.name,
                         std::int64_t{target.sms} * blocks_per_sm(least, target));
  }
  if (schedule.segment.horizontal() || schedule.segment.regional()) return defect_of_whole(schedule);
  const auto cooperative = std::count_if(schedule.kernels.begin(), schedule.kernels.end(), is_cooperative);
  const bool last = cooperative == 0 || is_cooperative(schedule.kernels.back());
  if (cooperative > 1 || !last || (schedule.phases.size() > 1 && cooperative != 1))
    return "phases without a cooperative kernel";
  return "";
}

}  // namespace

std::string misfit(const ir::Graph& graph, const Segment& segment, const KernelChoices& choices,
                   const Target& target) {
  if (choices.phases.size() != segment.phases.size())
    return fmt::format("choices of {} phases, and the kernel has {}", choices.phases.size(),
                       segment.phases.size());
  for (std::size_t i = 0; i < segment.phases.size(); ++i) {
    const Choices& own = choices.phases[i];
    if (own.online_softmax && !with_online_softmax(graph, segment.phases[i]))
      return "online_softmax is for sums of exponentials, of which it has none";
    if (own.across && !across_rows(graph, segment.phases[i]))
      return "across is for reductions over an outer dim, of which it has none";
    if (own.online_softmax && own.across) return "sums of exponentials across rows";
    const Phase phase = staged(graph, segment.phases[i], own);
    if (const std::string defect = defect_of(graph, phase, own, target); !defect.empty()) return defect;
    if (segment.phases.size() == 1) continue;
    if (segment.horizontal() || segment.regional()) {
      if (splits_rows(own) || has_columns(phase))
        return fmt::format("phase {} takes several launches, or clusters, and its kernel is one", i);
      continue;
    }
    const bool waits = splits_rows(own) || has_columns(phase);
    if (choices.blocks < 1) return "phases of no blocks";
    if (own.cluster() > 1 || own.blocks != (waits ? choices.blocks : 0))
      return fmt::format("phase {} has other blocks than its kernel", i);
  }
  if (segment.phases.size() == 1 && choices.blocks != 0)
    return "blocks of several phases, and the kernel has one, whose blocks stand in its braces";
  if (segment.horizontal() && choices.blocks != 0)
    return "blocks of phases that run one after another, and these lie side by side";
  if (!segment.regional() && (choices.slices > 0 || !choices.tile.empty()))
    return "slices or a tile of phases that no block passes on to itself";
  if (segment.regional()) {
    if (std::string defect = defect_of_blocks(graph, segment, choices); !defect.empty()) return defect;
  }
  if (const std::int64_t bytes = shared_bytes(graph, segment, choices); bytes > target.shared_per_block)
    return fmt::format("{} bytes of shared memory, of {}", bytes, target.shared_per_block);
  return defect_of(graph, make_schedule(graph, segment, choices, target), target);
}

void verify(const ir::Graph& graph, const Schedule& schedule, const Target& target) {
  const std::string defect = defect_of(graph, schedule, target);
  if (defect.empty()) return;
  throw Error({.kind = ErrorKind::internal,
               .code = ErrorCode::internal,
               .message = "schedule of " + graph.value_name(schedule.segment.root) + ": " + defect,
               .hint = "the choices are " + schedule.choices.to_string()});
}

}  // namespace fuse::schedule
