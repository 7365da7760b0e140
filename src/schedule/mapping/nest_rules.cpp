// SPDX-License-Identifier: Apache-2.0
#include "schedule/mapping/nest_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "schedule/segments/loop_shape.hpp"
#include "schedule/segments/transposed.hpp"
#include "schedule/segments/vector_width.hpp"

namespace fuse::schedule {
namespace {

/// The most units that may share a row, or take rows in turns; for threads, more than a block has.
std::int64_t most_units(const Split& split) {
  if (split.level != Level::grid) return 1024;
  return split.dim == 'c' ? 1 << 16 : 1 << 20;
}

/// The defect of splits that stand where no lowering looks for them.
std::string defect_of_order(const std::vector<Split>& splits) {
  int last = -1;
  const Split* before = nullptr;
  for (const Split& split : splits) {
    const std::optional<int> position = order_of(split);
    if (!position)
      return fmt::format("{}: loops are of rows 'r' and elements 'c', or of tiles 't', 'y' and 'x'",
                         to_string(split));
    const auto same = [&](const Split& each) { return each.dim == split.dim && each.level == split.level; };
    if (std::count_if(splits.begin(), splits.end(), same) > 1)
      return fmt::format("two splits of {} at the level {}", split.dim, to_string(split.level));
    const bool beside = split.level == Level::lane && *position == last && before->dim != split.dim;
    if (*position == last && !beside)
      return fmt::format("{} beside {}: one of them", to_string(split), to_string(*before));
    if (*position < last)
      return fmt::format("{} has to stand before {}", to_string(split), to_string(*before));
    if (split.extent > most_units(split))
      return fmt::format("{}: at most {} units", to_string(split), most_units(split));
    if (split.extent == 1) return fmt::format("{}: a split of one unit", to_string(split));
    last = *position;
    before = &split;
  }
  return "";
}

/// The defect of splits over blocks that are each allowed, and together more than a launch may have.
std::string defect_of_grid(const std::vector<Split>& splits) {
  constexpr std::int64_t most_blocks = std::numeric_limits<std::int32_t>::max();
  std::int64_t blocks = 1;
  for (const Split& split : splits) {
    if ((split.level == Level::grid || split.level == Level::cluster) && split.extent > 0)
      blocks *= split.extent;
  }
  return blocks <= most_blocks
             ? ""
             : fmt::format("splits over {} blocks: a launch has at most {}", blocks, most_blocks);
}

/// The dims of the loops: the one that is spread over blocks, and the one that is walked, if any.
struct Dims {
  char outer = 'r', walked = 'c';
  bool walks = true;
};

/// The defect of the splits that take the rest of what is spread over blocks, and of the walk.
std::string defect_of_rests(const std::vector<Split>& splits, const Dims& dims) {
  const auto rest = [&](char dim, Level level) {
    return std::find(splits.begin(), splits.end(), Split{dim, level, 0}) != splits.end();
  };
  for (const Split& split : splits) {
    const bool known = split.dim == dims.outer || (dims.walks && split.dim == dims.walked) ||
                       (dims.outer == 't' && split.dim == 'x');
    if (!known) return fmt::format("{}: the kernel has no such dim", to_string(split));
    if (split.level == Level::serial && split.extent > 0)
      return fmt::format("{}: a serial loop has no number, and as many trips as are left", to_string(split));
  }
  const bool turns = rest(dims.outer, Level::serial), blocks = rest(dims.outer, Level::grid);
  if (!turns && !blocks)
    return fmt::format("{0}:grid without a number has to be there, or {0}:serial, for blocks that take turns",
                       dims.outer);
  if (turns && blocks)
    return fmt::format(
        "{0}:serial and {0}:grid are both without a number: after {0}:serial, {0}:grid says how many blocks "
        "take turns",
        dims.outer);
  if (dims.walks && !rest(dims.walked, Level::serial))
    return fmt::format("there is no loop {}:serial", dims.walked);
  return "";
}

/// Vectors lie along memory, and contain whole groups of its elements.
std::string defect_of_vectors(const ir::Graph& graph, const Phase& phase, const std::vector<Split>& splits) {
  const bool reduces = info(graph[dominant(phase)].op).relation == ir::Relation::reduce;
  for (const char dim : {'r', 'c'}) {
    const std::int64_t vector = units_of(splits, dim, Level::vector);
    const bool along_rows = reduces && dim == 'r';
    const int widest = along_rows ? widest_row_vector(graph, phase) : widest_vector(graph, phase);
    if (vector > widest && widest == 1)
      return fmt::format("{}:vector{}: no two elements of {} are known to lie side by side", dim, vector,
                         dim);
    if (vector > widest)
      return fmt::format("{}:vector{}: an access of this kernel has at most {} elements", dim, vector,
                         widest);
  }
  return "";
}

std::string defect_of_cluster(const Choices& choices, const Target& target) {
  if (choices.cluster() <= target.max_cluster) return "";
  return fmt::format("a cluster of {} blocks; {} has clusters of up to {}", choices.cluster(), target.name,
                     target.max_cluster);
}

/// The defect of blocks that wait for each other, for a row or for columns.
std::string defect_of_blocks(const Phase& phase, const Choices& choices) {
  if (choices.blocks == 0) return "";
  const bool parts = splits_rows(choices) && choices.cluster() == 1;
  if (!parts && !has_columns(phase))
    return "blocks that wait for each other, of which nothing is combined; rows in turns are r:serial "
           "r:grid132";
  if (parts && choices.splits.front().level == Level::serial)
    return "r:serial: the blocks that wait for each other take the rows in turns anyway";
  if (parts && choices.blocks < choices.blocks_per_row()) return "fewer blocks than parts of a row";
  return "";
}

std::string defect_of_columns(const Phase& phase, const Choices& choices) {
  if (!has_columns(phase)) return "";
  if (splits_rows(choices)) return "several blocks for a row, whose columns are kept";
  const bool turns = choices.splits.front() == Split{'r', Level::serial, 0};
  return turns ? "" : "columns are kept by blocks that take rows in turns: r:serial";
}

/// A scan meets the elements of a row in order: a thread by itself, or the lanes of a warp with each other.
std::string defect_of_scan(const Choices& choices) {
  for (const Split& split : choices.splits) {
    const bool walks = split.dim == 'c' && (split.level == Level::serial || split.level == Level::lane);
    if ((split.dim == 'c' && !walks) || split.level == Level::vector)
      return fmt::format("{}: a scan meets elements in order", to_string(split));
    if (split.level == Level::lane && split.extent != 32)
      return fmt::format("{}: a scan has a warp or a thread for each row", to_string(split));
  }
  return "";
}

std::string defect_of_tiles(const ir::Graph& graph, const Phase& phase, const Choices& choices,
                            const Target& target) {
  const auto values = transposed(graph, phase);
  if (!values) return "splits of t, y and x are for transposes, of which this kernel has none";
  const std::int64_t vector = units_of(choices.splits, 'x', Level::vector);
  const int widest = tile_vector(graph, phase, *values);
  if (vector > widest) return fmt::format("x:vector{}: a tile has {} elements side by side", vector, widest);
  const std::int64_t bytes = tile_bytes(graph, *values, choices.vector());
  if (bytes > target.shared_per_block)
    return fmt::format("{} bytes of shared memory, of {}", bytes, target.shared_per_block);
  return "";
}

Nest nest_to_check(const ir::Graph& graph, const Phase& phase, const Choices& choices, const Dims& dims) {
  const ir::NodeId stored = phase.in_place ? graph[phase.root].operands[1] : phase.root;
  const std::vector<Dim>& all = graph[stored].type.dims;
  if (dims.outer == 't') {
    const int side = tile_side(choices.vector());
    return {.dims = {{'t', product(tile_dims(all, transposed(graph, phase).value(), choices.vector()))},
                     {'y', side},
                     {'x', side}},
            .splits = choices.splits};
  }
  if (!dims.walks) return {.dims = {{'r', product(all)}}, .splits = choices.splits};
  const LoopShape shape = loop_shape(graph, phase);
  return {.dims = {{'r', product(shape.kept)}, {'c', product(shape.reduced)}}, .splits = choices.splits};
}

}  // namespace

std::string defect_of_loops(const ir::Graph& graph, const Phase& phase, const Choices& choices,
                            const Target& target) {
  const ir::Relation relation = info(graph[dominant(phase)].op).relation;
  const bool scans = relation == ir::Relation::scan, reduces = relation == ir::Relation::reduce;
  const bool tiles = walks_tiles(choices);
  if (tiles && (scans || reduces))
    return "splits of t, y and x are for transposes, and this kernel reduces or scans";
  const Dims dims = tiles ? Dims{'t', 'y', true} : Dims{'r', 'c', scans || reduces};
  if (std::string defect = defect_of_order(choices.splits); !defect.empty()) return defect;
  for (const std::string& defect : {defect_of_rests(choices.splits, dims), defect_of_grid(choices.splits)}) {
    if (!defect.empty()) return defect;
  }
  if (tiles) {
    if (const std::string defect = defect_of_tiles(graph, phase, choices, target); !defect.empty())
      return defect;
  }
  for (const std::string& defect :
       {defect_of(nest_to_check(graph, phase, choices, dims)), scans ? defect_of_scan(choices) : "",
        tiles || scans ? "" : defect_of_vectors(graph, phase, choices.splits),
        defect_of_cluster(choices, target), defect_of_blocks(phase, choices),
        defect_of_columns(phase, choices)}) {
    if (!defect.empty()) return defect;
  }
  return "";
}

}  // namespace fuse::schedule
