// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/lowering.hpp"

#include <algorithm>

#include "schedule/shape.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::NodeId;
using schedule::KernelSchedule;
using schedule::Mapping;
using schedule::Stage;

namespace {

bool combines(const Stage& stage, const KernelSchedule& launch) {
  if (launch.role == KernelSchedule::Role::joined || launch.role == KernelSchedule::Role::whole) return false;
  if (launch.mapping == Mapping::split) return stage.form == Stage::Form::reduce && stage.pass < launch.pass;
  if (launch.role != KernelSchedule::Role::combine) return false;
  return stage.form == Stage::Form::column_reduce || launch.mapping != Mapping::column_tile;
}

/// What it combines for its own sake: a result of the pass before.
bool finishes(const Stage& stage, const KernelSchedule& launch) {
  return combines(stage, launch) && (launch.mapping != Mapping::split || stage.pass + 1 == launch.pass);
}

std::vector<NodeId> results_among(const schedule::Segment& segment, const std::vector<Stage>& stages,
                                  const KernelSchedule& launch) {
  const std::vector<NodeId>& results = segment.results;
  std::vector<NodeId> roots;
  for (const Stage& stage : stages) {
    const bool result = std::find(results.begin(), results.end(), stage.root) != results.end();
    if (result && finishes(stage, launch)) roots.push_back(stage.root);
  }
  return roots;
}

}  // namespace

std::unordered_set<NodeId> values_of(const ir::Graph& graph, const schedule::Segment& segment,
                                     const KernelSchedule& launch) {
  const std::vector<Stage>& all = segment.stages;
  const std::unordered_set<NodeId> inside(segment.nodes.begin(), segment.nodes.end());
  std::unordered_set<NodeId> seen, parts;
  for (const Stage& stage : all) {
    if (!combines(stage, launch)) continue;
    for (const NodeId total : totals_of(stage)) parts.insert(total);
  }
  std::vector<NodeId> work = results_among(segment, all, launch);
  for (const Stage& stage : stages_of(segment, launch)) work.push_back(stage.root);
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    if (!seen.insert(id).second || !inside.contains(id) || parts.contains(id)) continue;
    work.insert(work.end(), graph[id].operands.begin(), graph[id].operands.end());
  }
  return seen;
}

std::vector<Stage> combined_in(const ir::Graph& graph, const schedule::Segment& segment,
                               const KernelSchedule& launch) {
  const std::unordered_set<NodeId> values = values_of(graph, segment, launch);
  std::vector<Stage> stages;
  for (const Stage& stage : segment.stages) {
    const std::vector<NodeId> totals = totals_of(stage);
    const bool needed =
        std::any_of(totals.begin(), totals.end(), [&](NodeId id) { return values.contains(id); });
    if (combines(stage, launch) && needed) stages.push_back(stage);
  }
  return stages;
}

std::vector<NodeId> stored_in(const schedule::Segment& segment, const KernelSchedule& launch) {
  const bool parts = launch.role == KernelSchedule::Role::partial;
  const bool split = launch.mapping == Mapping::split;
  std::vector<NodeId> roots;
  if (split) roots = results_among(segment, segment.stages, launch);
  for (const Stage& stage : stages_of(segment, launch)) {
    const bool leaves = stage.form == (split ? Stage::Form::reduce : Stage::Form::column_reduce);
    if (!parts || !leaves) roots.push_back(stage.root);
  }
  return roots;
}

std::size_t scratch_place(const ir::Graph& graph, const schedule::Segment& segment, NodeId reduction) {
  std::size_t place = 0;
  for (const Stage& stage : segment.stages) {
    if (stage.root == reduction) break;
    const bool counts =
        stage.form == (has_columns(segment) ? Stage::Form::column_reduce : Stage::Form::reduce);
    if (counts) place += schedule::reduction_state(graph, stage).size();
  }
  return place;
}

std::vector<Dim> Lowering::renamed(std::vector<Dim> dims) const {
  for (Dim& dim : dims) dim = rename(dim);
  return dims;
}

void Lowering::parallel(Parallel parallel, const std::string& name, const Dim& extent,
                        const std::function<void()>& fill) const {
  builder.loop({.name = name, .begin = 0, .end = extent, .parallel = parallel, .body = {}}, fill);
}

void Lowering::threads(const std::string& block, const std::function<void(const ThreadIndex&)>& fill) const {
  const Dim tiles = rename(launch.tiles);
  const auto turns = [&](const ThreadIndex& at) {
    const auto body = [&](const Index& tile) {
      elements.enter_scope();
      fill({tile, at.warp, at.lane});
      elements.leave_scope();
    };
    const Dim& blocks = builder.kernel.grid;
    if (tiles == blocks) return body(at.block);
    const bool keeps_columns = launch.role == KernelSchedule::Role::partial && has_columns(phase.segment);
    // By results: a tile too many has none. Blocks that keep columns take every n-th row.
    const bool guarded =
        launch.mapping != Mapping::row_block && launch.mapping != Mapping::tile && !keeps_columns;
    if (tiles.is_constant() && tiles.constant() < blocks.constant()) {
      if (guarded) return body(at.block);
      return builder.when({{at.block, tiles}}, [&] { body(at.block); });
    }
    // Warps that walk rows share nothing, but the columns that they keep are combined in shared memory.
    const bool shares =
        launch.mapping != Mapping::element && (launch.mapping != Mapping::row_warp || keeps_columns);
    builder.loop({.name = block, .begin = at.block, .end = tiles, .step = blocks, .body = {}}, [&] {
      body(Dim::index(block, tiles));
      // What it left in shared memory may be overwritten.
      if (shares) builder.append(Barrier{});
    });
  };
  if (joined) return turns(*joined);
  const bool stays = tiles != builder.kernel.grid;
  const std::string number = stays ? builder.unique("g") : block;
  const std::string warp = builder.unique("warp"), lane = builder.unique("lane");
  const int warps = launch.block_threads / warp_size;
  parallel(Parallel::grid, number, builder.kernel.grid, [&] {
    parallel(Parallel::warp, warp, warps, [&] {
      parallel(Parallel::lane, lane, warp_size, [&] {
        const ThreadIndex at{Dim::index(number, builder.kernel.grid), Dim::index(warp, warps),
                             Dim::index(lane, warp_size)};
        stays ? turns(at) : fill(at);
      });
    });
  });
}

Index Lowering::bind(const std::string& name, const Index& value, const Dim& extent) const {
  builder.append(Bind{name, value});
  return Dim::index(name, extent);
}

void Lowering::side_by_side(const Index& number,
                            const std::function<void(const Index&, const Index&)>& fill) const {
  if (launch.vector == 1) return fill(0, number);
  const std::string name = builder.unique("v");
  builder.loop({.name = name, .begin = 0, .end = launch.vector, .unrolled = true, .body = {}}, [&] {
    const Index which = Dim::index(name, launch.vector);
    elements.enter_scope();
    fill(which, number * launch.vector + which);
    elements.leave_scope();
  });
}

Coordinates Lowering::operand_coordinates(ir::NodeId node, const Index& outer, const Index& inner) const {
  const schedule::LoopShape shape = schedule::loop_shape(graph, graph[node]);
  const Coordinates kept = unflatten(outer, renamed(shape.kept));
  const Coordinates reduced_at = unflatten(inner, renamed(shape.reduced));
  Coordinates at;
  std::size_t k = 0, r = 0;
  for (const bool is_reduced : shape.is_reduced) at.push_back(is_reduced ? reduced_at[r++] : kept[k++]);
  return at;
}

}  // namespace fuse::codegen
