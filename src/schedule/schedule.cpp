// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>

#include "ir/dim_poly.hpp"
#include "schedule/launch_bounds.hpp"
#include "schedule/online_sums.hpp"
#include "schedule/residency.hpp"
#include "schedule/schemes.hpp"
#include "schedule/shape.hpp"
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
DType index_type(const ir::Graph& graph, const analysis::Facts& facts, const Piece& piece,
                 const KernelSchedule& kernel, int parts) {
  std::int64_t largest = 0;
  const auto consider = [&](const Dim& extent) {
    largest = std::max(largest, largest_within(extent, facts));
  };
  for (NodeId id : piece.nodes) {
    for (const Dim& dim : ir::dims_of(graph[id].attr)) consider(dim);
    for (const Dim& dim : graph[id].type.dims) consider(dim);
  }
  for (NodeId id : piece.nodes) consider(product(graph[id].type.dims));
  for (NodeId id : piece.inputs) consider(product(graph[id].type.dims));
  consider(kernel.results * kernel.reduced);
  consider(kernel.grid * kernel.block_threads * kernel.vector);
  consider(kernel.reduced + std::int64_t{kernel.block_threads} * parts * kernel.vector);
  return largest <= int_limit ? i32 : i64;
}

Dim tiles_of(const KernelSchedule& kernel, int parts) {
  switch (kernel.mapping) {
    case Mapping::element:
      return ceil_div(kernel.results, std::int64_t{kernel.block_threads} * kernel.vector);
    case Mapping::tile:
      break;  // by dims, not by elements
    case Mapping::row_warp:
      return ceil_div(kernel.results, kernel.block_threads / kernel.lanes);
    case Mapping::row_block:
      return kernel.results;
    case Mapping::column_tile:
      return ceil_div(kernel.results, tile_columns);
    case Mapping::split:
      return kernel.results * parts;
    // Of rows without elements there is no result, however many they are.
    case Mapping::scan_warp:
      return kernel.reduced.is(0) ? Dim(0) : ceil_div(kernel.results, kernel.block_threads / 32);
    case Mapping::scan_thread:
      return kernel.reduced.is(0) ? Dim(0) : ceil_div(kernel.results, kernel.block_threads);
  }
  return 1;
}

/// What a piece ends in, and what a mapping is for.
enum class Form : std::uint8_t { element, reduce, scan };

Form form_of(const ir::Graph& graph, const Piece& piece) {
  switch (info(graph[dominant(graph, piece)].op).relation) {
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

}  // namespace

std::string_view to_string(Mapping mapping) {
  switch (mapping) {
    case Mapping::element:
      return "element";
    case Mapping::tile:
      return "tile";
    case Mapping::row_warp:
      return "row_warp";
    case Mapping::row_block:
      return "row_block";
    case Mapping::column_tile:
      return "column_tile";
    case Mapping::split:
      return "split";
    case Mapping::scan_warp:
      return "scan_warp";
    case Mapping::scan_thread:
      return "scan_thread";
  }
  return "?";
}

std::string Choices::to_string() const {
  std::string text = fmt::format("mapping = {}, block = {}", schedule::to_string(mapping), block_threads);
  if (parts > 1) text += fmt::format(", parts = {}{}", parts, cluster ? ", cluster" : "");
  if (blocks > 0) text += fmt::format(", blocks = {}", blocks);
  if (vector > 1) text += fmt::format(", vector = {}", vector);
  if (lanes < 32) text += fmt::format(", lanes = {}", lanes);
  if (online) text += ", online";
  if (hold > 0) text += fmt::format(", hold = {}", hold);
  if (shared_hold > 0) text += fmt::format(", shared_hold = {}", shared_hold);
  for (const Choices& phase : phases) text += fmt::format(", phase {{{}}}", phase.to_string());
  return text;
}

int rows_at_once(const Choices& choices) {
  return choices.mapping == Mapping::row_warp ? choices.block_threads / choices.lanes : 1;
}

std::int64_t step_elements(const Choices& choices) {
  std::int64_t threads = choices.block_threads;
  if (choices.mapping == Mapping::row_warp) threads = choices.lanes;
  if (choices.mapping == Mapping::column_tile) threads = choices.block_threads / 32;
  if (choices.mapping == Mapping::split) threads *= choices.parts;
  return threads * choices.vector;
}

std::int64_t row_trips(const Dim& reduced, const Choices& choices) {
  const std::int64_t most = reduced.max();
  if (most / 8 > reduced.hint()) return 0;
  const std::int64_t at_once = step_elements(choices);
  return (most + at_once - 1) / at_once * choices.vector;
}

namespace {

std::vector<Stage> column_reductions(const Piece& piece) {
  std::vector<Stage> stages;
  std::copy_if(piece.stages.begin(), piece.stages.end(), std::back_inserter(stages),
               [](const Stage& stage) { return stage.form == Stage::Form::column_reduce; });
  return stages;
}

}  // namespace

int column_words(const ir::Graph& graph, const Piece& piece) {
  int bytes = 0;
  for (const Stage& stage : column_reductions(piece)) {
    for (const DType dtype : reduction_state(graph, stage))
      bytes += std::max(4, static_cast<int>(size_of(dtype)));
  }
  return bytes / 4;
}

bool columns_fit(const ir::Graph& graph, const Piece& piece, const Choices& choices) {
  if (choices.mapping != Mapping::row_block && choices.mapping != Mapping::row_warp) return false;
  const Dim row = product(loop_shape(graph, graph[dominant(graph, piece)]).reduced);
  const std::int64_t trips = row_trips(row, choices);
  return trips > 0 && trips * column_words(graph, piece) <= most_columns;
}

bool can_keep_columns(const ir::Graph& graph, const std::vector<NodeId>& reductions, const Target& target) {
  Piece piece;
  for (const NodeId root : reductions)
    piece.stages.push_back({.root = root, .form = Stage::Form::column_reduce});
  const Dim row = product(loop_shape(graph, graph[reductions[0]]).kept);
  const Choices widest{.mapping = Mapping::row_block, .block_threads = target.max_threads_per_block};
  const std::int64_t trips = row_trips(row, widest);
  return trips > 0 && trips * column_words(graph, piece) <= most_held / 2;
}

bool splits_stages(const Piece& piece, const Choices& choices) {
  return choices.mapping == Mapping::split && piece.stages.size() > 1;
}

std::vector<Stage> stages_of(const ir::Graph& graph, const Piece& piece, const KernelSchedule& launch) {
  std::vector<Stage> stages = stages_of(graph, piece);
  const bool one_pass =
      launch.role == KernelSchedule::Role::partial || launch.role == KernelSchedule::Role::combine;
  if (launch.mapping == Mapping::split && one_pass)
    std::erase_if(stages, [&](const Stage& stage) { return stage.pass != launch.pass; });
  if (!has_columns(piece)) return stages;
  const bool combines = launch.role == KernelSchedule::Role::combine;
  std::erase_if(stages, [&](const Stage& stage) {
    return combines ? !is_column(stage.form) : stage.form == Stage::Form::column;
  });
  return stages;
}

std::vector<ScratchArray> scratch_of(const ir::Graph& graph, const Piece& piece, const Choices& choices) {
  std::vector<ScratchArray> arrays;
  for (std::size_t i = 0; i < piece.phases.size(); ++i) {
    for (ScratchArray& array : scratch_of(graph, piece.phases[i], choices.phases[i]))
      arrays.push_back(std::move(array));
  }
  const bool split = choices.mapping == Mapping::split;
  if (!piece.phases.empty() || choices.cluster || (!split && !has_columns(piece))) return arrays;
  const LoopShape shape = loop_shape(graph, graph[dominant(graph, piece)]);
  const Dim elements = product(split ? shape.kept : shape.reduced) * choices.parts;
  for (const Stage& stage : stages_of(graph, piece)) {
    if (stage.form != (split ? Stage::Form::reduce : Stage::Form::column_reduce)) continue;
    for (const DType dtype : reduction_state(graph, stage)) arrays.push_back({dtype, elements});
  }
  return arrays;
}

std::int64_t shared_bytes(const ir::Graph& graph, const Piece& piece, const Choices& choices) {
  std::int64_t of_phases = 0;
  for (std::size_t i = 0; i < piece.phases.size(); ++i)
    of_phases += shared_bytes(graph, piece.phases[i], choices.phases[i]);
  if (!piece.phases.empty()) return of_phases;
  const auto bytes = [&](const Stage& stage) {
    std::int64_t sum = 0;
    for (const DType dtype : reduction_state(graph, stage)) sum += static_cast<std::int64_t>(size_of(dtype));
    return sum;
  };
  const bool by_tile = choices.mapping == Mapping::column_tile,
             by_warp = choices.mapping == Mapping::row_warp;
  std::int64_t states = 0, columns = 0;  // of a block: of each reduction
  if (by_tile) states = choices.block_threads;
  if (choices.mapping == Mapping::row_block || choices.mapping == Mapping::split)
    states = choices.block_threads / 32;
  if (by_warp || choices.blocks > 0) columns = choices.block_threads;
  if (by_warp && choices.blocks > 0) columns += choices.block_threads;
  if (choices.mapping == Mapping::tile) return tile_bytes(graph, transposed(graph, piece).value());
  std::int64_t sum = 0;
  if (choices.shared_hold > 0) {
    for (const Held& held : shared_values(graph, piece)) {
      const auto element = static_cast<std::int64_t>(size_of(graph[held.node].type.dtype));
      sum += element * choices.shared_hold * rows_at_once(choices);
    }
  }
  for (const Stage& stage : stages_of(graph, piece)) {
    if (stage.form == Stage::Form::reduce) sum += (states + choices.cluster) * bytes(stage);
    if (stage.form == Stage::Form::column_reduce) sum += columns * bytes(stage);
  }
  return sum;
}

namespace {

/// Those of all phases, and what joins them.
std::vector<KernelSchedule> launches_of_phases(const ir::Graph& graph, const Piece& piece,
                                               const Choices& choices) {
  std::vector<KernelSchedule> kernels;
  for (std::size_t i = 0; i < piece.phases.size(); ++i) {
    for (KernelSchedule& kernel : launches(graph, piece.phases[i], choices.phases[i])) {
      kernel.phase = i;
      if (kernel.role != KernelSchedule::Role::joined) kernels.push_back(std::move(kernel));
    }
  }
  KernelSchedule joined = kernels.front();
  joined.role = KernelSchedule::Role::joined;
  joined.grid = choices.blocks;
  joined.block_threads = choices.block_threads;
  kernels.push_back(std::move(joined));
  return kernels;
}

/// Each pass over split rows leaves the parts of its reductions for the launches behind it.
std::vector<KernelSchedule> launches_of_passes(const ir::Graph& graph, const Piece& piece,
                                               const KernelSchedule& pass) {
  const std::vector<Stage> stages = stages_of(graph, piece);
  const int last = last_pass(stages);
  const bool reduces = std::any_of(stages.begin(), stages.end(), [&](const Stage& stage) {
    return stage.pass == last && stage.form == Stage::Form::reduce;
  });
  std::vector<KernelSchedule> kernels(static_cast<std::size_t>(last + 1 + reduces), pass);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    kernels[i].pass = static_cast<int>(i);
    const bool ends = i + 1 == kernels.size();
    kernels[i].role = ends ? KernelSchedule::Role::combine : KernelSchedule::Role::partial;
  }
  return kernels;
}

}  // namespace

std::vector<KernelSchedule> launches(const ir::Graph& graph, const Piece& piece, const Choices& choices) {
  if (!piece.phases.empty()) return launches_of_phases(graph, piece, choices);
  KernelSchedule kernel{.mapping = choices.mapping,
                        .block_threads = choices.block_threads,
                        .vector = choices.vector,
                        .lanes = choices.lanes};
  if (form_of(graph, piece) == Form::element) {
    const NodeId stored = piece.in_place ? graph[piece.root].operands[1] : piece.root;
    kernel.results = product(graph[stored].type.dims);
    kernel.reduced = 1;
    kernel.tiles = choices.mapping == Mapping::tile
                       ? product(tile_dims(graph[stored].type.dims, transposed(graph, piece).value()))
                       : tiles_of(kernel, 1);
    kernel.grid = choices.blocks > 0 ? Dim(choices.blocks) : kernel.tiles;
    return {kernel};
  }
  const LoopShape shape = loop_shape(graph, graph[dominant(graph, piece)]);
  kernel.results = product(shape.kept);
  kernel.reduced = product(shape.reduced);
  kernel.tiles = kernel.grid = tiles_of(kernel, choices.parts);
  const bool columns = has_columns(piece);
  if (choices.cluster) {
    kernel.cluster = choices.parts;
    return {kernel};
  }
  if (choices.mapping != Mapping::split && !columns) {
    if (choices.blocks > 0) kernel.grid = choices.blocks;
    return {kernel};
  }
  KernelSchedule joined = kernel;
  joined.role = KernelSchedule::Role::joined;
  joined.grid = choices.blocks;
  if (splits_stages(piece, choices)) {
    std::vector<KernelSchedule> kernels = launches_of_passes(graph, piece, kernel);
    if (choices.blocks > 0) kernels.push_back(joined);
    return kernels;
  }
  kernel.role = KernelSchedule::Role::partial;
  KernelSchedule combine{.role = KernelSchedule::Role::combine,
                         .mapping = columns ? Mapping::column_tile : Mapping::row_warp,
                         .results = columns ? kernel.reduced : kernel.results,
                         .reduced = choices.parts,
                         .block_threads = std::min(columns ? 256 : 128, choices.block_threads)};
  if (columns) kernel.tiles = kernel.grid = choices.parts;
  if (choices.blocks > 0) combine.block_threads = choices.block_threads;
  combine.tiles = combine.grid = tiles_of(combine, 1);
  if (choices.blocks == 0) return {kernel, combine};
  return {kernel, combine, joined};
}

namespace {

/// As much of what the passes would hold as fits.
void hold(const ir::Graph& graph, Schedule& schedule) {
  if (schedule.choices.shared_hold > 0) {
    schedule.held = shared_values(graph, schedule.piece);
    return;
  }
  const std::int64_t trips = row_trips(schedule.kernels[0].reduced, schedule.choices);
  if (has_columns(schedule.piece)) schedule.trips = static_cast<int>(trips);
  if (trips == 0 || trips > schedule.choices.hold) return;
  // From launch to launch nothing stays in registers.
  const bool apart = schedule.choices.blocks == 0 && !schedule.choices.cluster;
  if (schedule.choices.mapping == Mapping::split && apart) return;
  for (const Held& held : held_values(graph, schedule.piece)) {
    schedule.held.push_back(held);
    if (held_words(graph, schedule.held) * trips > schedule.choices.hold) schedule.held.pop_back();
  }
  if (!schedule.held.empty()) schedule.trips = static_cast<int>(trips);
}

}  // namespace

std::span<const Schedule> phases_of(const Schedule& schedule) {
  return schedule.phases.empty() ? std::span(&schedule, 1) : std::span(schedule.phases);
}

std::int64_t row_groups(const Schedule& phase) {
  const Choices& choices = phase.choices;
  if (choices.mapping != Mapping::split || choices.blocks < 2 * choices.parts) return 0;
  return choices.blocks / choices.parts;
}

std::int64_t barrier_counters(const Schedule& schedule) {
  std::int64_t counters = 1;
  for (const Schedule& phase : phases_of(schedule)) counters += row_groups(phase);
  return counters;
}

Schedule make_schedule(const ir::Graph& graph, const Piece& cut, const Choices& choices, const Target& target,
                       const analysis::Facts& facts) {
  const Piece piece = staged(graph, cut, choices);
  Schedule schedule{.piece = piece, .choices = choices, .kernels = launches(graph, piece, choices)};
  for (KernelSchedule& kernel : schedule.kernels) {
    const Choices& own = piece.phases.empty() ? choices : choices.phases[kernel.phase];
    const int parts =
        own.mapping == Mapping::split || kernel.role == KernelSchedule::Role::partial ? own.parts : 1;
    kernel.index_type = index_type(graph, facts, phases_of(piece)[kernel.phase], kernel, parts);
  }
  for (std::size_t i = 0; i < piece.phases.size(); ++i)
    schedule.phases.push_back(make_schedule(graph, piece.phases[i], choices.phases[i], target, facts));
  if (schedule.kernels.back().role == KernelSchedule::Role::joined) {
    schedule.blocks_an_sm = (choices.blocks + target.sms - 1) / target.sms;
    for (const KernelSchedule& kernel : schedule.kernels) {
      if (kernel.index_type == i64) schedule.kernels.back().index_type = i64;
    }
  }
  for (KernelSchedule& kernel : schedule.kernels) {
    const int least = kernel.role == KernelSchedule::Role::joined ? schedule.blocks_an_sm : 1;
    kernel.aimed_blocks = aimed_blocks(kernel, shared_bytes(graph, piece, choices), least, target);
  }
  const bool holds = choices.hold > 0 || choices.shared_hold > 0 || has_columns(piece);
  if (piece.phases.empty() && holds) hold(graph, schedule);
  schedule.scratch = scratch_of(graph, piece, choices);
  return schedule;
}

std::string print(const ir::Graph& graph, const Schedule& schedule) {
  std::string text =
      fmt::format("schedule of piece {} {}   choices {{{}}}\n", graph.value_name(schedule.piece.root),
                  to_string(graph[schedule.piece.root].op), schedule.choices.to_string());
  for (const Schedule& phase : phases_of(schedule)) {
    if (!schedule.phases.empty() || phase.piece.stages.size() > 1) {
      text += fmt::format("  {} {}\n", schedule.phases.empty() ? "stages" : "phase",
                          stages_text(graph, stages_of(graph, phase.piece)));
    }
    for (const Held& held : phase.held) {
      const std::string where =
          phase.trips > 0 ? fmt::format("{} elements a thread", phase.trips)
                          : fmt::format("{} elements of a row in shared memory", phase.choices.shared_hold);
      text += fmt::format("  held {} {}: {}, from pass {} to {}\n", graph.value_name(held.node),
                          to_string(graph[held.node].op), where, held.first, held.last);
    }
  }
  const bool stitched = !schedule.phases.empty() || schedule.piece.stages.size() > 1;
  if (stitched) text += fmt::format("  schemes {}\n", schemes_text(graph, schedule));
  for (const KernelSchedule& kernel : schedule.kernels) {
    const char* role = kernel.role == KernelSchedule::Role::whole     ? "whole"
                       : kernel.role == KernelSchedule::Role::partial ? "partial"
                       : kernel.role == KernelSchedule::Role::combine ? "combine"
                                                                      : "joined";
    text += fmt::format("  {} {}: results {}  reduced {}  grid {} x {}  index {}\n", role,
                        to_string(kernel.mapping), kernel.results.to_string(), kernel.reduced.to_string(),
                        kernel.grid.to_string(), kernel.block_threads, fuse::to_string(kernel.index_type));
  }
  for (std::size_t i = 0, same = 1; i < schedule.scratch.size(); i += same, same = 1) {
    const Dim& elements = schedule.scratch[i].elements;
    while (i + same < schedule.scratch.size() && schedule.scratch[i + same].elements == elements) ++same;
    text += fmt::format("  scratch {} x {} arrays\n", elements.to_string(), same);
  }
  return text;
}

void verify(const ir::Graph& graph, const Schedule& schedule, const Target& target) {
  const auto fail = [&](const std::string& message) {
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::internal,
                 .message = "schedule of " + graph.value_name(schedule.piece.root) + ": " + message});
  };
  if (schedule.phases.size() != schedule.piece.phases.size()) fail("phases without schedules");
  for (const Schedule& phase : schedule.phases) {
    verify(graph, phase, target);
    if (phase.choices.block_threads != schedule.choices.block_threads) fail("phases of different blocks");
  }
  if (schedule.phases.empty() && form_of(graph, schedule.piece) != form_of(schedule.choices.mapping)) {
    fail("the mapping does not fit the piece");
  }
  if (const Choices& choices = schedule.choices; schedule.phases.empty()) {
    const int widest = widest_vector(graph, schedule.piece);
    if (choices.vector < 1 || choices.vector > widest || !std::has_single_bit(unsigned(choices.vector)))
      fail(fmt::format("{} elements side by side, of {}", choices.vector, widest));
    if (choices.vector > 1 && (choices.mapping == Mapping::column_tile || choices.mapping == Mapping::tile))
      fail("columns side by side in a thread");
    if (choices.mapping == Mapping::tile && !transposed(graph, schedule.piece))
      fail("tiles of what is not transposed");
    const bool packs = choices.mapping == Mapping::row_warp && !has_columns(schedule.piece);
    const bool power = choices.lanes > 1 && choices.lanes <= 32 && (choices.lanes & (choices.lanes - 1)) == 0;
    if (!power || (choices.lanes != 32 && !packs)) fail(fmt::format("rows of {} lanes", choices.lanes));
  }
  if (const Choices& choices = schedule.choices; choices.shared_hold > 0) {
    const bool by_rows = choices.mapping == Mapping::row_warp || choices.mapping == Mapping::row_block;
    if (!by_rows || has_columns(schedule.piece) || choices.hold > 0 ||
        choices.shared_hold % choices.vector != 0)
      fail(fmt::format("{} elements of a row in shared memory", choices.shared_hold));
  }
  if (schedule.choices.cluster) {
    const Choices& choices = schedule.choices;
    if (choices.mapping != Mapping::split || choices.blocks > 0 || choices.parts > target.max_cluster)
      fail(fmt::format("a cluster of {} blocks on {}", choices.parts, target.name));
  }
  if (schedule.choices.blocks > 0 && schedule.choices.mapping == Mapping::split &&
      schedule.choices.blocks < schedule.choices.parts) {
    fail("fewer blocks than parts of a row");
  }
  if (held_words(graph, schedule.held) * schedule.trips > schedule.choices.hold)
    fail("more held than chosen");
  if (schedule.kernels.empty()) fail("no launch");
  for (const KernelSchedule& kernel : schedule.kernels) {
    if (kernel.block_threads < 32 || kernel.block_threads > target.max_threads_per_block ||
        kernel.block_threads % 32 != 0) {
      fail(fmt::format("a block of {} threads on {}", kernel.block_threads, target.name));
    }
    const Residency least{.blocks = 1,
                          .threads = kernel.block_threads,
                          .shared_bytes = shared_bytes(graph, schedule.piece, schedule.choices),
                          .blocks_an_sm = schedule.blocks_an_sm};
    if (kernel.role == KernelSchedule::Role::joined && schedule.blocks_an_sm > blocks_per_sm(least, target)) {
      fail(fmt::format("{} blocks of {} threads at a time", schedule.choices.blocks, kernel.block_threads));
    }
  }
  const auto is_joined = [](const KernelSchedule& kernel) {
    return kernel.role == KernelSchedule::Role::joined;
  };
  const auto joins = std::count_if(schedule.kernels.begin(), schedule.kernels.end(), is_joined);
  const bool split = schedule.choices.mapping == Mapping::split;
  const bool parts = (split && !schedule.choices.cluster) || has_columns(schedule.piece);
  const bool several = parts || !schedule.phases.empty();
  if (joins != (several && schedule.choices.blocks > 0) || (joins > 0 && !is_joined(schedule.kernels.back())))
    fail("blocks without a kernel that joins launches");
  if (!schedule.phases.empty()) return;
  if (parts != (schedule.kernels.size() > 1) || parts == schedule.scratch.empty())
    fail("parts without scratch");
  if (has_columns(schedule.piece) && !columns_fit(graph, schedule.piece, schedule.choices))
    fail("columns that no thread can keep");
}

}  // namespace fuse::schedule
