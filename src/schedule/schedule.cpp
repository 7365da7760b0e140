// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ir/dim_poly.hpp"
#include "schedule/shape.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;

constexpr std::int64_t int_limit = std::numeric_limits<std::int32_t>::max();
constexpr int row_warp_limit = 1024;    // elements of a row that a warp walks in 32 steps
constexpr int row_block_limit = 16384;  // and a block of 256 in 64
constexpr int tile_columns = 32;
constexpr int most_held = 32;  // registers of a thread: half of what it has at half of the occupancy

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
  consider(kernel.grid * kernel.block_threads);
  consider(kernel.reduced + std::int64_t{kernel.block_threads} * parts);
  return largest <= int_limit ? i32 : i64;
}

Dim grid_of(const KernelSchedule& kernel, int parts) {
  switch (kernel.mapping) {
    case Mapping::element:
      return ceil_div(kernel.results, kernel.block_threads);
    case Mapping::row_warp:
      return ceil_div(kernel.results, kernel.block_threads / 32);
    case Mapping::row_block:
      return kernel.results;
    case Mapping::column_tile:
      return ceil_div(kernel.results, tile_columns);
    case Mapping::split:
      return kernel.results * parts;
    case Mapping::scan_warp:
      return ceil_div(kernel.results, kernel.block_threads / 32);
    case Mapping::scan_thread:
      return ceil_div(kernel.results, kernel.block_threads);
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
  if (mapping == Mapping::split) text += fmt::format(", parts = {}", parts);
  if (hold > 0) text += fmt::format(", hold = {}", hold);
  return text;
}

namespace {

/// Elements of the longest row that each thread walks; 0 where that is not known, or far from what is usual.
std::int64_t trips_of(const Dim& reduced, const Choices& choices) {
  const std::int64_t most = reduced.max();
  if (most / 8 > reduced.hint()) return 0;
  const std::int64_t side_by_side = choices.mapping == Mapping::row_warp      ? 32
                                    : choices.mapping == Mapping::column_tile ? choices.block_threads / 32
                                                                              : choices.block_threads;
  return (most + side_by_side - 1) / side_by_side;
}

/// Of several stages over rows: by so many threads a row that each can hold its share of it, and that few
/// rows fill half of the device.
Choices holding(const ir::Graph& graph, const Piece& piece, const Choices& alone, const LoopShape& shape,
                const Target& target) {
  const std::int64_t words = std::max(1, held_words(graph, held_values(graph, piece)));
  const Dim reduced = product(shape.reduced);
  Choices choices = alone;
  choices.hold = most_held;
  const auto trips = [&] { return trips_of(reduced, choices); };
  const auto fits = [&] {
    return trips() > 0 && trips() * words <= (choices.block_threads > 256 ? most_held / 2 : most_held);
  };
  const auto barely_fits = [&] { return trips() > 0 && trips() * words <= most_held; };
  if (alone.mapping == Mapping::column_tile) {
    while (!fits() && choices.block_threads < target.max_threads_per_block) choices.block_threads *= 2;
    return barely_fits() ? choices : alone;
  }
  const std::int64_t rows = product(shape.kept).hint();
  const std::int64_t wanted = std::int64_t{target.sms} * target.max_threads_per_sm / 2;
  if (alone.mapping == Mapping::row_warp && fits() && (rows * 32 >= wanted || trips() <= 4)) return choices;
  const Choices by_warp = choices;
  choices.mapping = Mapping::row_block;
  for (int threads = 64; threads <= target.max_threads_per_block; threads *= 2) {
    choices.block_threads = threads;
    if (fits() && (rows * threads >= wanted || trips() <= 4)) return choices;
  }
  if (barely_fits()) return choices;
  choices = by_warp;
  return alone.mapping == Mapping::row_warp && barely_fits() ? choices : alone;
}

Choices choices_alone(const ir::Graph& graph, const Piece& piece, const Target& target) {
  const ir::Node& root = graph[dominant(graph, piece)];
  const int block = std::min(256, target.max_threads_per_block);
  const ir::Relation relation = info(root.op).relation;
  if (relation == ir::Relation::scan) {
    const LoopShape scanned = loop_shape(graph, root);
    if (scanned.inner) return {Mapping::scan_warp, std::min(128, block), 1};
    return {Mapping::scan_thread, block, 1};
  }
  if (relation != ir::Relation::reduce) return {Mapping::element, block, 1};
  const LoopShape shape = loop_shape(graph, root);
  const std::int64_t results = product(shape.kept).hint();
  const std::int64_t reduced = product(shape.reduced).hint();
  if (!shape.inner && results >= tile_columns) return {Mapping::column_tile, block, 1};
  if (reduced <= row_warp_limit) return {Mapping::row_warp, std::min(128, block), 1};
  // What stages hold of a row, the blocks of a split one would have to pass on.
  const bool alone = piece.stages.size() <= 1;
  if (!alone || reduced <= row_block_limit || results * 2 >= target.sms)
    return {Mapping::row_block, block, 1};
  const std::int64_t wave =
      std::max<std::int64_t>(2, 2 * std::int64_t{target.sms} / std::max<std::int64_t>(results, 1));
  const std::int64_t useful = reduced / (8 * std::int64_t{block});
  return {Mapping::split, block,
          static_cast<int>(std::clamp<std::int64_t>(useful, 2, std::min<std::int64_t>(wave, 1024)))};
}

}  // namespace

Choices default_choices(const ir::Graph& graph, const Piece& piece, const Target& target) {
  const Choices alone = choices_alone(graph, piece, target);
  if (piece.stages.size() <= 1 || form_of(graph, piece) != Form::reduce) return alone;
  const LoopShape shape = loop_shape(graph, graph[dominant(graph, piece)]);
  Choices choices = holding(graph, piece, alone, shape, target);
  while (shared_bytes(graph, piece, choices) > target.shared_per_block) choices.block_threads /= 2;
  return choices;
}

std::int64_t shared_bytes(const ir::Graph& graph, const Piece& piece, const Choices& choices) {
  std::int64_t states = 0;  // of each reduction a block
  if (choices.mapping == Mapping::column_tile) states = choices.block_threads;
  if (choices.mapping == Mapping::row_block || choices.mapping == Mapping::split)
    states = choices.block_threads / 32;
  std::int64_t bytes = 0;
  for (const Stage& stage : stages_of(graph, piece)) {
    if (stage.form != Stage::Form::reduce) continue;
    for (const DType dtype : reduction_state(graph, graph[stage.root])) {
      bytes += states * static_cast<std::int64_t>(size_of(dtype));
    }
  }
  return bytes;
}

std::vector<KernelSchedule> launches(const ir::Graph& graph, const Piece& piece, const Choices& choices) {
  KernelSchedule kernel{.mapping = choices.mapping, .block_threads = choices.block_threads};
  if (form_of(graph, piece) == Form::element) {
    const NodeId stored = piece.in_place ? graph[piece.root].operands[1] : piece.root;
    kernel.results = product(graph[stored].type.dims);
    kernel.reduced = 1;
    kernel.grid = grid_of(kernel, 1);
    return {kernel};
  }
  const LoopShape shape = loop_shape(graph, graph[dominant(graph, piece)]);
  kernel.results = product(shape.kept);
  kernel.reduced = product(shape.reduced);
  kernel.grid = grid_of(kernel, choices.parts);
  if (choices.mapping != Mapping::split) return {kernel};
  kernel.role = KernelSchedule::Role::partial;
  KernelSchedule combine{.role = KernelSchedule::Role::combine,
                         .mapping = Mapping::row_warp,
                         .results = kernel.results,
                         .reduced = choices.parts,
                         .block_threads = std::min(128, choices.block_threads)};
  combine.grid = grid_of(combine, 1);
  return {kernel, combine};
}

namespace {

/// As much of what the passes would hold as fits.
void hold(const ir::Graph& graph, Schedule& schedule) {
  const std::int64_t trips = trips_of(schedule.kernels[0].reduced, schedule.choices);
  if (trips == 0 || trips > schedule.choices.hold) return;
  for (const Held& held : held_values(graph, schedule.piece)) {
    schedule.held.push_back(held);
    if (held_words(graph, schedule.held) * trips > schedule.choices.hold) schedule.held.pop_back();
  }
  if (!schedule.held.empty()) schedule.trips = static_cast<int>(trips);
}

}  // namespace

Schedule make_schedule(const ir::Graph& graph, const Piece& piece, const Choices& choices, const Target&,
                       const analysis::Facts& facts) {
  Schedule schedule{.piece = piece, .choices = choices, .kernels = launches(graph, piece, choices)};
  for (KernelSchedule& kernel : schedule.kernels) {
    const int parts = kernel.role == KernelSchedule::Role::partial ? choices.parts : 1;
    kernel.index_type = index_type(graph, facts, piece, kernel, parts);
  }
  if (choices.hold > 0) hold(graph, schedule);
  if (choices.mapping == Mapping::split) {
    schedule.scratch = reduction_state(graph, graph[piece.root]);
    schedule.scratch_elements = schedule.kernels[0].results * choices.parts;
  }
  return schedule;
}

std::string print(const ir::Graph& graph, const Schedule& schedule) {
  std::string text =
      fmt::format("schedule of piece {} {}   choices {{{}}}\n", graph.value_name(schedule.piece.root),
                  to_string(graph[schedule.piece.root].op), schedule.choices.to_string());
  if (schedule.piece.stages.size() > 1) {
    text += fmt::format("  stages {}\n", stages_text(graph, schedule.piece.stages));
  }
  for (const Held& held : schedule.held) {
    text +=
        fmt::format("  held {} {}: {} elements a thread, from pass {} to {}\n", graph.value_name(held.node),
                    to_string(graph[held.node].op), schedule.trips, held.first, held.last);
  }
  for (const KernelSchedule& kernel : schedule.kernels) {
    const char* role = kernel.role == KernelSchedule::Role::whole     ? "whole"
                       : kernel.role == KernelSchedule::Role::partial ? "partial"
                                                                      : "combine";
    text += fmt::format("  {} {}: results {}  reduced {}  grid {} x {}  index {}\n", role,
                        to_string(kernel.mapping), kernel.results.to_string(), kernel.reduced.to_string(),
                        kernel.grid.to_string(), kernel.block_threads, fuse::to_string(kernel.index_type));
  }
  if (!schedule.scratch.empty()) {
    text += fmt::format("  scratch {} x {} arrays\n", schedule.scratch_elements.to_string(),
                        schedule.scratch.size());
  }
  return text;
}

void verify(const ir::Graph& graph, const Schedule& schedule, const Target& target) {
  const auto fail = [&](const std::string& message) {
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::internal,
                 .message = "schedule of " + graph.value_name(schedule.piece.root) + ": " + message});
  };
  if (form_of(graph, schedule.piece) != form_of(schedule.choices.mapping)) {
    fail("the mapping does not fit the piece");
  }
  if (schedule.choices.mapping == Mapping::split && schedule.piece.stages.size() > 1) {
    fail("the stages of a split row");
  }
  if (held_words(graph, schedule.held) * schedule.trips > schedule.choices.hold)
    fail("more held than chosen");
  if (schedule.kernels.empty()) fail("no launch");
  for (const KernelSchedule& kernel : schedule.kernels) {
    if (kernel.block_threads < 32 || kernel.block_threads > target.max_threads_per_block ||
        kernel.block_threads % 32 != 0) {
      fail(fmt::format("a block of {} threads on {}", kernel.block_threads, target.name));
    }
  }
  const bool split = schedule.choices.mapping == Mapping::split;
  if (split != (schedule.kernels.size() == 2) || split == schedule.scratch.empty())
    fail("parts without scratch");
}

}  // namespace fuse::schedule
