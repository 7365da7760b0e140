// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <utility>

#include "ir/dim_poly.hpp"
#include "schedule/launch_bounds.hpp"
#include "schedule/nest_rules.hpp"
#include "schedule/online_sums.hpp"
#include "schedule/residency.hpp"
#include "schedule/schemes.hpp"
#include "schedule/shape.hpp"
#include "schedule/staged.hpp"
#include "schedule/transposed.hpp"
#include "schedule/vector_width.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;

constexpr std::int64_t int_limit = std::numeric_limits<std::int32_t>::max();
constexpr int most_columns = 64;  // registers of a thread that columns may take

/// Facts know more than ranges alone where a product is bounded: they are asked when that can matter.
std::int64_t upper_bound(const Dim& dim, const analysis::Facts& facts) {
  const std::int64_t own = dim.max();
  return own <= int_limit ? own : std::min(own, facts.range(dim).max);
}

/// The largest value that evaluating the expression meets on its way: of symbols, dividends and itself.
std::int64_t largest_within(const Dim& dim, const analysis::Facts& facts) {
  std::int64_t largest = upper_bound(dim, facts);
  if (!dim.poly()) return largest;
  for (const detail::DimTerm& term : dim.poly()->terms) {
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
DType index_type(const ir::Graph& graph, const analysis::Facts& facts, const Segment& segment,
                 const KernelSchedule& kernel, int parts) {
  std::int64_t largest = 0;
  const auto consider = [&](const Dim& extent) {
    largest = std::max(largest, largest_within(extent, facts));
  };
  for (NodeId id : segment.nodes) {
    for (const Dim& dim : ir::dims_of(graph[id].attr)) consider(dim);
    for (const Dim& dim : graph[id].type.dims) consider(dim);
  }
  for (NodeId id : segment.nodes) consider(product(graph[id].type.dims));
  for (NodeId id : segment.inputs) consider(product(graph[id].type.dims));
  consider(kernel.results * kernel.reduced);
  consider(kernel.grid * kernel.block_threads * kernel.vector);
  consider(kernel.reduced + std::int64_t{kernel.block_threads} * parts * kernel.vector);
  return largest <= int_limit ? i32 : i64;
}

/// What a nest needs to know beside its launch.
struct NestForm {
  char kept = 'r', walked = 'c';  ///< names of the dims of the results, and of what each result combines
  int parts = 1;                  ///< blocks that share a row or, of columns, all rows
  bool columns = false;
};

Nest nest_of(const KernelSchedule& kernel, const NestForm& form = {}) {
  const auto [kept, walked, parts, columns] = form;
  const std::int64_t warps = kernel.block_threads / 32, lanes = kernel.lanes;
  Nest nest{.dims = {{kept, kernel.results}, {walked, kernel.reduced}}, .splits = {}};
  const auto add = [&](char dim, Level level, std::int64_t extent) {
    if (extent != 1) nest.splits.push_back({dim, level, extent});
  };
  constexpr std::int64_t rest = 0;
  if (columns) {
    add(kept, Level::serial, rest);
    add(kept, Level::grid, parts);
  } else {
    add(kept, Level::grid, rest);
  }
  switch (kernel.mapping) {
    case Mapping::element:
    case Mapping::scan_thread:
      add(kept, Level::warp, warps);
      if (kernel.mapping == Mapping::scan_thread) add(walked, Level::serial, rest);
      add(kept, Level::lane, 32);
      add(kept, Level::vector, kernel.vector);
      return nest;
    case Mapping::tile:
      nest.dims.push_back({'x', tile_side(kernel.vector)});
      add(walked, Level::serial, rest);
      add(walked, Level::warp, warps);
      add('x', Level::lane, 32);
      add('x', Level::vector, kernel.vector);
      return nest;
    case Mapping::column_tile:
      add(walked, Level::serial, rest);
      add(walked, Level::warp, warps);
      add(walked, Level::lane, 32 / lanes);
      add(kept, Level::lane, lanes);
      return nest;
    case Mapping::row_warp:
    case Mapping::scan_warp:
      add(kept, Level::warp, warps);
      add(walked, Level::serial, rest);
      add(kept, Level::lane, 32 / lanes);
      add(walked, Level::lane, lanes);
      break;
    case Mapping::nest:
      return nest;
    case Mapping::row_block:
    case Mapping::split:
      add(walked, Level::serial, rest);
      if (!columns) add(walked, kernel.cluster > 1 ? Level::cluster : Level::grid, parts);
      add(walked, Level::warp, warps);
      add(walked, Level::lane, 32);
      break;
  }
  add(walked, Level::vector, kernel.vector);
  return nest;
}

Dim blocks_of(const Nest& nest) { return units(nest, Level::grid) * units(nest, Level::cluster); }

/// The loops, and from them the blocks: what each does at a time, and how many there are.
void set_nest(KernelSchedule& kernel, Nest nest) {
  kernel.nest = std::move(nest);
  kernel.tiles = kernel.grid = blocks_of(kernel.nest);
}

/// The loops that are chosen. Where columns are kept from row to row, no block is one of several turns.
void set_chosen(KernelSchedule& kernel, const std::vector<Split>& splits, bool columns) {
  set_nest(kernel, {.dims = {{'r', kernel.results}, {'c', kernel.reduced}}, .splits = splits});
  if (!columns) kernel.tiles = blocks_of(without_turns(kernel.nest));
}

void take_turns(KernelSchedule& kernel, int blocks) {
  kernel.nest = in_turns(kernel.nest, blocks / kernel.cluster);
  kernel.grid = blocks;
}

/// What a segment reduces or scans, and what a mapping is for.
enum class Form : std::uint8_t { element, reduce, scan };

Form form_of(const ir::Graph& graph, const Segment& segment) {
  switch (info(graph[dominant(segment)].op).relation) {
    case ir::Relation::reduce:
      return Form::reduce;
    case ir::Relation::scan:
      return Form::scan;
    default:
      return Form::element;
  }
}

Form form_of(Mapping mapping) {
  switch (mapping) {
    case Mapping::element:
    case Mapping::tile:
      return Form::element;
    case Mapping::scan_warp:
    case Mapping::scan_thread:
      return Form::scan;
    default:
      return Form::reduce;
  }
}

std::vector<Stage> column_reductions(const std::vector<Stage>& all) {
  std::vector<Stage> stages;
  std::copy_if(all.begin(), all.end(), std::back_inserter(stages),
               [](const Stage& stage) { return stage.form == Stage::Form::column_reduce; });
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

bool columns_fit(const ir::Graph& graph, const Segment& segment, const Choices& choices) {
  if (choices.mapping != Mapping::row_block && choices.mapping != Mapping::row_warp &&
      choices.mapping != Mapping::nest)
    return false;
  const Dim row = product(loop_shape(graph, segment).reduced);
  const std::int64_t trips = row_trips(row, choices);
  return trips > 0 && trips * column_words(graph, segment.stages) <= most_columns;
}

bool can_keep_columns(const ir::Graph& graph, const std::vector<NodeId>& reductions, const Target& target) {
  std::vector<Stage> stages;
  for (const NodeId root : reductions) stages.push_back({.root = root, .form = Stage::Form::column_reduce});
  const Dim row = product(loop_shape(graph, graph[reductions[0]]).kept);
  const Choices widest{.mapping = Mapping::row_block, .block_threads = target.max_threads_per_block};
  const std::int64_t trips = row_trips(row, widest);
  return trips > 0 && trips * column_words(graph, stages) <= most_held / 2;
}

bool splits_stages(const Segment& segment, const Choices& choices) {
  return splits_rows(choices) && segment.stages.size() > 1;
}

std::int64_t shared_bytes(const ir::Graph& graph, const Piece& piece, const KernelChoices& choices) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < piece.phases.size(); ++i)
    bytes += shared_bytes(graph, staged(graph, piece.phases[i], choices.phases[i]), choices.phases[i]);
  return bytes;
}

std::int64_t shared_bytes(const ir::Graph& graph, const Segment& segment, const Choices& choices) {
  const auto bytes = [&](const Stage& stage) {
    std::int64_t sum = 0;
    for (const DType dtype : reduction_state(graph, stage)) sum += static_cast<std::int64_t>(size_of(dtype));
    return sum;
  };
  const bool by_tile = choices.mapping == Mapping::column_tile,
             by_warp = choices.mapping == Mapping::row_warp;
  std::int64_t states = 0, columns = 0;  // of a block: of each reduction
  if (by_tile) states = choices.block_threads / 32 * choices.lanes;
  if (choices.mapping == Mapping::row_block || choices.mapping == Mapping::split)
    states = choices.block_threads / 32;
  const bool nested = choices.mapping == Mapping::nest;
  const std::int64_t warps_of_row = units_of(choices.splits, 'c', Level::warp),
                     rows_of_warps = units_of(choices.splits, 'r', Level::warp);
  if (nested && warps_of_row > 1) states = warps_of_row * rows_at_once(choices);
  const bool warps_keep = by_warp || rows_of_warps > 1;
  if (warps_keep || choices.blocks > 0) columns = choices.block_threads;
  if (warps_keep && choices.blocks > 0) columns += choices.block_threads;
  if (walks_tiles(choices)) return tile_bytes(graph, transposed(graph, segment).value(), choices.vector);
  std::int64_t sum = 0;
  if (choices.shared_hold > 0) {
    for (const Held& held : loaded_values(graph, segment)) {
      const auto element = static_cast<std::int64_t>(size_of(graph[held.node].type.dtype));
      sum += element * choices.shared_hold * rows_at_once(choices);
    }
  }
  for (const Stage& stage : segment.stages) {
    const std::int64_t peers = nested ? rows_at_once(choices) : 1;
    if (stage.form == Stage::Form::reduce) sum += (states + choices.cluster * peers) * bytes(stage);
    if (stage.form == Stage::Form::column_reduce) sum += columns * bytes(stage);
  }
  return sum;
}

std::vector<KernelSchedule> launches(const ir::Graph& graph, const Segment& segment, const Choices& choices) {
  KernelSchedule kernel{.mapping = choices.mapping,
                        .block_threads = choices.block_threads,
                        .vector = choices.vector,
                        .lanes = choices.lanes};
  if (form_of(graph, segment) == Form::element) {
    const NodeId stored = segment.in_place ? graph[segment.root].operands[1] : segment.root;
    kernel.results = product(graph[stored].type.dims);
    kernel.reduced = 1;
    if (walks_tiles(choices)) {
      KernelSchedule tile = kernel;
      tile.results =
          product(tile_dims(graph[stored].type.dims, transposed(graph, segment).value(), choices.vector));
      tile.reduced = tile_side(choices.vector);
      tile.mapping = Mapping::tile;
      set_nest(kernel, nest_of(tile, {.kept = 't', .walked = 'y'}));
      if (choices.mapping == Mapping::nest) {
        kernel.nest.splits = choices.splits;
        kernel.grid = units(kernel.nest, Level::grid);
      }
    } else if (choices.mapping == Mapping::nest) {
      set_chosen(kernel, choices.splits, false);
    } else {
      set_nest(kernel, nest_of(kernel));
    }
    if (choices.blocks > 0) take_turns(kernel, choices.blocks);
    return {kernel};
  }
  const LoopShape shape = loop_shape(graph, segment);
  kernel.results = product(shape.kept);
  kernel.reduced = product(shape.reduced);
  const bool columns = has_columns(segment);
  if (choices.cluster) kernel.cluster = choices.parts;
  const bool nested = choices.mapping == Mapping::nest;
  if (nested) {
    set_chosen(kernel, choices.splits, columns);
  } else {
    set_nest(kernel, nest_of(kernel, {.parts = columns ? 1 : choices.parts}));
  }
  // Rows without elements have no prefix sums, however many rows there are.
  if (form_of(graph, segment) == Form::scan && kernel.reduced.is(0)) kernel.tiles = kernel.grid = 0;
  if (choices.cluster || (!splits_rows(choices) && !columns)) {
    if (choices.blocks > 0) take_turns(kernel, choices.blocks);
    return {kernel};
  }
  KernelSchedule joined = kernel;
  joined.role = KernelSchedule::Role::joined;
  joined.grid = choices.blocks;
  joined.nest = {};
  kernel.role = KernelSchedule::Role::partial;
  if (splits_stages(segment, choices)) {
    std::vector<KernelSchedule> kernels(section_count(segment, choices), kernel);
    for (std::size_t i = 0; i < kernels.size(); ++i) kernels[i].section = i;
    kernels.back().role = KernelSchedule::Role::combine;
    if (choices.blocks > 0) kernels.push_back(joined);
    return kernels;
  }
  KernelSchedule combine{.role = KernelSchedule::Role::combine,
                         .mapping = columns ? Mapping::column_tile : Mapping::row_warp,
                         .results = columns ? kernel.reduced : kernel.results,
                         .reduced = choices.parts,
                         .block_threads = std::min(columns ? 256 : 128, choices.block_threads),
                         .section = 1};
  if (columns) combine.lanes = tile_lanes(combine.results, choices.parts, fewest_tile_lanes);
  // As many lanes as combine the parts where blocks wait for each other, so that both ways add in one order.
  if (nested && !columns) combine.lanes = static_cast<int>(units_of(choices.splits, 'c', Level::lane));
  if (columns && !nested) set_nest(kernel, nest_of(kernel, {.parts = choices.parts, .columns = true}));
  if (choices.blocks > 0) combine.block_threads = choices.block_threads;
  set_nest(combine, nest_of(combine, {.kept = columns ? 'c' : 'r', .walked = 'p'}));
  if (choices.blocks == 0) return {kernel, combine};
  return {kernel, combine, joined};
}

namespace {

/// As much of what the passes would hold as fits.
void hold(const ir::Graph& graph, PhaseSchedule& phase) {
  const Choices& choices = phase.choices;
  if (choices.shared_hold > 0) {
    phase.held = loaded_values(graph, phase.segment);
    return;
  }
  if (choices.hold == 0 && !has_columns(phase.segment)) return;
  const std::int64_t trips = row_trips(phase.kernels[0].reduced, choices);
  if (has_columns(phase.segment)) phase.trips = static_cast<int>(trips);
  if (trips == 0) return;
  // From launch to launch nothing stays in registers.
  const bool apart = choices.blocks == 0 && !choices.cluster;
  if (splits_rows(choices) && apart) return;
  for (const Held& held : values_to_hold(graph, phase.segment, choices.packed)) {
    phase.held.push_back(held);
    if (held_registers(graph, phase.held, trips, choices.packed) > choices.hold) phase.held.pop_back();
  }
  if (!phase.held.empty()) phase.trips = static_cast<int>(trips);
}

PhaseSchedule schedule_of(const ir::Graph& graph, const Segment& cut, const Choices& choices,
                          const analysis::Facts& facts) {
  PhaseSchedule phase{.segment = staged(graph, cut, choices), .choices = choices};
  const Segment& segment = phase.segment;
  phase.sections = sections_of(graph, segment, choices);
  phase.kernels = launches(graph, segment, choices);
  phase.scratch = scratch_of(graph, segment, choices);
  for (KernelSchedule& kernel : phase.kernels) {
    const bool parted = splits_rows(choices) || kernel.role == KernelSchedule::Role::partial;
    kernel.index_type = index_type(graph, facts, segment, kernel, parted ? choices.parts : 1);
  }
  hold(graph, phase);
  return phase;
}

bool is_joined(const KernelSchedule& kernel) { return kernel.role == KernelSchedule::Role::joined; }

/// One kernel of several phases: all launches of theirs but those that joined one phase, then what joins all.
std::vector<KernelSchedule> launches_of(const std::vector<PhaseSchedule>& phases,
                                        const KernelChoices& choices) {
  if (phases.size() == 1) return phases[0].kernels;
  std::vector<KernelSchedule> kernels;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    for (KernelSchedule kernel : phases[i].kernels) {
      kernel.phase = i;
      if (!is_joined(kernel)) kernels.push_back(std::move(kernel));
    }
  }
  KernelSchedule joined = kernels.front();
  joined.role = KernelSchedule::Role::joined;
  joined.grid = choices.blocks;
  joined.nest = {};
  joined.block_threads = choices.block_threads();
  kernels.push_back(std::move(joined));
  return kernels;
}

/// Blocks that the kernel which joins launches has.
int joined_blocks(const KernelChoices& choices) {
  return choices.phases.size() > 1 ? choices.blocks : choices.phases[0].blocks;
}

}  // namespace

std::int64_t row_groups(const PhaseSchedule& phase) {
  const Choices& choices = phase.choices;
  if (!splits_rows(choices) || choices.blocks < 2 * choices.parts) return 0;
  return choices.blocks / choices.parts;
}

std::int64_t barrier_counters(const Schedule& schedule) {
  std::int64_t counters = 1;
  for (const PhaseSchedule& phase : schedule.phases) counters += row_groups(phase);
  return counters;
}

Schedule make_schedule(const ir::Graph& graph, const Piece& piece, const KernelChoices& choices,
                       const Target& target, const analysis::Facts& facts) {
  Schedule schedule{.piece = piece, .choices = choices};
  for (std::size_t i = 0; i < piece.phases.size(); ++i) {
    schedule.phases.push_back(schedule_of(graph, piece.phases[i], choices.phases[i], facts));
    PhaseSchedule& phase = schedule.phases.back();
    schedule.piece.phases[i] = phase.segment;
    schedule.scratch.insert(schedule.scratch.end(), phase.scratch.begin(), phase.scratch.end());
  }
  schedule.kernels = launches_of(schedule.phases, choices);
  if (is_joined(schedule.kernels.back())) {
    schedule.blocks_an_sm = (joined_blocks(choices) + target.sms - 1) / target.sms;
    for (const KernelSchedule& kernel : schedule.kernels) {
      if (kernel.index_type == i64) schedule.kernels.back().index_type = i64;
    }
  }
  const std::int64_t shared = shared_bytes(graph, schedule.piece, choices);
  for (KernelSchedule& kernel : schedule.kernels)
    kernel.aimed_blocks = aimed_blocks(kernel, shared, is_joined(kernel) ? schedule.blocks_an_sm : 1, target);
  return schedule;
}

std::string print(const ir::Graph& graph, const Schedule& schedule) {
  std::string text =
      fmt::format("schedule of piece {} {}   choices {{{}}}\n", graph.value_name(schedule.piece.root),
                  to_string(graph[schedule.piece.root].op), schedule.choices.to_string());
  const bool several = schedule.phases.size() > 1;
  const bool stitched = several || schedule.phases[0].segment.stages.size() > 1;
  for (const PhaseSchedule& phase : schedule.phases) {
    if (stitched)
      text +=
          fmt::format("  {} {}\n", several ? "phase" : "stages", stages_text(graph, phase.segment.stages));
    for (const Held& held : phase.held) {
      const std::string where =
          phase.trips > 0 ? fmt::format("{} elements a thread", phase.trips)
                          : fmt::format("{} elements of a row in shared memory", phase.choices.shared_hold);
      text += fmt::format("  held {} {}: {}, from pass {} to {}\n", graph.value_name(held.node),
                          to_string(graph[held.node].op), where, held.first, held.last);
    }
  }
  if (stitched) text += fmt::format("  schemes {}\n", schemes_text(graph, schedule));
  for (const KernelSchedule& kernel : schedule.kernels) {
    const char* role = kernel.role == KernelSchedule::Role::whole     ? "whole"
                       : kernel.role == KernelSchedule::Role::partial ? "partial"
                       : kernel.role == KernelSchedule::Role::combine ? "combine"
                                                                      : "joined";
    text += fmt::format("  {} {}: results {}  reduced {}  grid {} x {}  index {}\n", role,
                        to_string(kernel.mapping), kernel.results.to_string(), kernel.reduced.to_string(),
                        kernel.grid.to_string(), kernel.block_threads, fuse::to_string(kernel.index_type));
    if (!kernel.nest.splits.empty()) text += fmt::format("    nest {}\n", to_string(kernel.nest));
  }
  for (std::size_t i = 0, same = 1; i < schedule.scratch.size(); i += same, same = 1) {
    const Dim& elements = schedule.scratch[i].elements;
    while (i + same < schedule.scratch.size() && schedule.scratch[i + same].elements == elements) ++same;
    text += fmt::format("  scratch {} x {} arrays\n", elements.to_string(), same);
  }
  return text;
}

namespace {

/// Why shared memory cannot hold elements of a row so; empty: it can, or holds none.
std::string defect_of_shared_hold(const Segment& segment, const Choices& choices) {
  if (choices.shared_hold == 0) return "";
  const bool by_rows = choices.mapping == Mapping::row_warp || choices.mapping == Mapping::row_block ||
                       (choices.mapping == Mapping::nest && !splits_rows(choices));
  if (!by_rows && !choices.cluster) return "which takes a warp, a block or a cluster for each row";
  if (has_columns(segment)) return "beside columns";
  if (choices.hold > 0) return "beside registers that hold them";
  const std::int64_t step = choices.cluster ? step_elements(choices) / choices.parts : choices.vector;
  if (choices.shared_hold % step != 0) return fmt::format("which are no multiple of {}", step);
  return "";
}

/// What is wrong with the mapping that is chosen for a segment; empty: nothing.
std::string defect_of_mapping(const ir::Graph& graph, const Segment& segment, const Choices& choices,
                              const Target& target) {
  if (form_of(graph, segment) != form_of(choices.mapping)) return "the mapping does not fit the segment";
  const auto tiled = choices.mapping == Mapping::tile ? transposed(graph, segment) : std::nullopt;
  if (choices.mapping == Mapping::tile && !tiled) return "tiles of what is not transposed";
  const int widest = tiled ? tile_vector(graph, segment, *tiled) : widest_vector(graph, segment);
  if (choices.vector < 1 || choices.vector > widest || !std::has_single_bit(unsigned(choices.vector)))
    return fmt::format("{} elements side by side, of {}", choices.vector, widest);
  if (choices.vector > 1 && choices.mapping == Mapping::column_tile)
    return "columns side by side in a thread";
  const bool packs = (choices.mapping == Mapping::row_warp && !has_columns(segment)) ||
                     choices.mapping == Mapping::column_tile;
  const bool power = choices.lanes > 1 && choices.lanes <= 32 && (choices.lanes & (choices.lanes - 1)) == 0;
  if (!power || (choices.lanes != 32 && !packs)) return fmt::format("rows of {} lanes", choices.lanes);
  if (choices.cluster && choices.mapping != Mapping::split) return "a cluster, of one block for each row";
  if (choices.cluster && choices.parts > target.max_cluster)
    return fmt::format("a cluster of {} blocks on {}", choices.parts, target.name);
  if (choices.cluster && choices.blocks % choices.parts != 0)
    return fmt::format("{} blocks, which are no whole clusters of {}", choices.blocks, choices.parts);
  if (choices.parts > 1 && choices.mapping != Mapping::split && !has_columns(segment))
    return fmt::format("{} parts of a row that one block has, or a part of one", choices.parts);
  if (choices.blocks > 0 && form_of(choices.mapping) == Form::scan) return "blocks that stay, of a scan";
  if (choices.mapping == Mapping::split && choices.parts < 2) return "several blocks for a row, of one part";
  if (choices.blocks > 0 && choices.mapping == Mapping::split && choices.blocks < choices.parts)
    return "fewer blocks than parts of a row";
  return "";
}

/// What is wrong with choices for a segment as they stage it; empty: nothing. No launch is made of it.
std::string defect_of(const ir::Graph& graph, const Segment& segment, const Choices& choices,
                      const Target& target) {
  if (choices.block_threads < 32 || choices.block_threads > target.max_threads_per_block ||
      choices.block_threads % 32 != 0)
    return fmt::format("a block of {} threads on {}", choices.block_threads, target.name);
  const bool nested = choices.mapping == Mapping::nest;
  const std::string defect = nested ? defect_of_loops(graph, segment, choices, target)
                                    : defect_of_mapping(graph, segment, choices, target);
  if (!defect.empty()) return defect;
  if (choices.across && !has_columns(segment)) return "rows that nothing is reduced across";
  if (const std::string shared = defect_of_shared_hold(segment, choices); !shared.empty())
    return fmt::format("{} elements of a row in shared memory, {}", choices.shared_hold, shared);
  if (choices.packed && choices.hold == 0) return "registers that hold packed, of which there are none";
  if (has_columns(segment) && !columns_fit(graph, segment, choices)) return "columns that no thread can keep";
  return "";
}

/// What is wrong with the schedule of a phase; empty: nothing.
std::string defect_of(const ir::Graph& graph, const PhaseSchedule& phase, const Target& target) {
  const Choices& choices = phase.choices;
  const Segment& segment = phase.segment;
  if (const std::string defect = defect_of(graph, segment, choices, target); !defect.empty()) return defect;
  if (phase.trips > 0 && held_registers(graph, phase.held, phase.trips, choices.packed) > choices.hold)
    return "more held than chosen";
  for (const Held& held : phase.held) {
    const std::size_t group = static_cast<std::size_t>(choices.vector) * size_of(graph[held.node].type.dtype);
    if (choices.packed && group % 4 != 0) return "elements that fill no register are held packed";
  }
  const bool parts = (splits_rows(choices) && !choices.cluster) || has_columns(segment);
  if (parts != (phase.kernels.size() > 1) || parts == phase.scratch.empty()) return "parts without scratch";
  const auto joins = std::count_if(phase.kernels.begin(), phase.kernels.end(), is_joined);
  if (joins != (parts && choices.blocks > 0)) return "blocks without a kernel that joins launches";
  return "";
}

/// Of a launch that has loops of its own.
std::string defect_of_nest(const KernelSchedule& kernel) {
  if (is_joined(kernel)) return "";
  if (const std::string defect = defect_of(kernel.nest); !defect.empty())
    return fmt::format("nest {}: {}", to_string(kernel.nest), defect);
  const Dim threads = units(kernel.nest, Level::warp) * units(kernel.nest, Level::lane);
  if (!threads.is(kernel.block_threads))
    return fmt::format("nest {}: {} threads of {}", to_string(kernel.nest), threads.to_string(),
                       kernel.block_threads);
  return "";
}

std::string defect_of(const ir::Graph& graph, const Schedule& schedule, const Target& target) {
  if (schedule.phases.size() != schedule.piece.phases.size()) return "phases without schedules";
  for (const PhaseSchedule& phase : schedule.phases) {
    if (const std::string defect = defect_of(graph, phase, target); !defect.empty()) return defect;
    if (phase.choices.block_threads != schedule.choices.block_threads()) return "phases of different blocks";
  }
  if (schedule.kernels.empty()) return "no launch";
  if (schedule.kernels.size() != launches_of(schedule.phases, schedule.choices).size())
    return "other launches than its phases have";
  std::vector<ScratchArray> scratch;
  for (const PhaseSchedule& phase : schedule.phases)
    scratch.insert(scratch.end(), phase.scratch.begin(), phase.scratch.end());
  if (schedule.scratch != scratch) return "other scratch than its phases have";
  const std::int64_t shared = shared_bytes(graph, schedule.piece, schedule.choices);
  for (const KernelSchedule& kernel : schedule.kernels) {
    if (kernel.block_threads < 32 || kernel.block_threads > target.max_threads_per_block ||
        kernel.block_threads % 32 != 0) {
      return fmt::format("a block of {} threads on {}", kernel.block_threads, target.name);
    }
    if (const std::string defect = defect_of_nest(kernel); !defect.empty()) return defect;
    const Residency least{.blocks = 1,
                          .threads = kernel.block_threads,
                          .shared_bytes = shared,
                          .blocks_an_sm = schedule.blocks_an_sm};
    if (is_joined(kernel) && schedule.blocks_an_sm > blocks_per_sm(least, target))
      return fmt::format("{} blocks of {} threads at a time", joined_blocks(schedule.choices),
                         kernel.block_threads);
  }
  const auto joins = std::count_if(schedule.kernels.begin(), schedule.kernels.end(), is_joined);
  const bool last = joins == 0 || is_joined(schedule.kernels.back());
  if (joins > 1 || !last || (schedule.phases.size() > 1 && joins != 1))
    return "phases without a kernel that joins them";
  return "";
}

}  // namespace

std::string misfit(const ir::Graph& graph, const Piece& piece, const KernelChoices& choices,
                   const Target& target) {
  if (choices.phases.size() != piece.phases.size())
    return fmt::format("{} phases of {}", choices.phases.size(), piece.phases.size());
  for (std::size_t i = 0; i < piece.phases.size(); ++i) {
    const Choices& own = choices.phases[i];
    if (own.online && !with_online_sums(graph, piece.phases[i])) return "no sum of exponentials to scale";
    if (own.across && !across_rows(graph, piece.phases[i])) return "rows that nothing is reduced across";
    if (own.online && own.across) return "sums of exponentials across rows";
    const Segment segment = staged(graph, piece.phases[i], own);
    if (const std::string defect = defect_of(graph, segment, own, target); !defect.empty()) return defect;
    if (piece.phases.size() == 1) continue;
    const bool waits = splits_rows(own) || has_columns(segment);
    if (choices.blocks < 1) return "phases of no blocks";
    if (own.cluster || own.blocks != (waits ? choices.blocks : 0))
      return fmt::format("phase {} has other blocks than its kernel", i);
  }
  if (piece.phases.size() == 1 && choices.blocks != 0) return "blocks of a kernel with one phase";
  if (const std::int64_t bytes = shared_bytes(graph, piece, choices); bytes > target.shared_per_block)
    return fmt::format("{} bytes of shared memory, of {}", bytes, target.shared_per_block);
  return defect_of(graph, make_schedule(graph, piece, choices, target), target);
}

void verify(const ir::Graph& graph, const Schedule& schedule, const Target& target) {
  const std::string defect = defect_of(graph, schedule, target);
  if (defect.empty()) return;
  throw Error({.kind = ErrorKind::internal,
               .code = ErrorCode::internal,
               .message = "schedule of " + graph.value_name(schedule.piece.root) + ": " + defect,
               .hint = "the choices are " + schedule.choices.to_string()});
}

}  // namespace fuse::schedule
