// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/lower/lowering_context.hpp"

#include "codegen_cuda/lower/nest_position.hpp"
#include "schedule/segments/loop_shape.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::NodeId;
using schedule::KernelSchedule;
using schedule::Level;

std::vector<Dim> Lowering::renamed(std::vector<Dim> dims) const {
  for (Dim& dim : dims) dim = rename(dim);
  return dims;
}

void Lowering::parallel(Parallel parallel, const std::string& name, const Dim& extent,
                        const std::function<void()>& fill) const {
  builder.loop({.name = name, .begin = 0, .end = extent, .parallel = parallel, .body = {}}, fill);
}

void Lowering::threads(const std::string& block, const std::function<void(const ThreadIndex&)>& fill,
                       const Turns& beside) const {
  const Dim tiles = rename(launch.tiles);
  const auto turns = [&](const ThreadIndex& at) {
    const auto body = [&](const Index& tile, const std::optional<Index>& next = {}) {
      const ThreadIndex own{tile, at.warp, at.lane};
      if (beside.start) {
        std::optional<ThreadIndex> behind;
        if (next) behind = {*next, at.warp, at.lane};
        beside.start(own, behind);
      }
      elements.enter_scope();
      fill(own);
      elements.leave_scope();
    };
    const auto only = [&] {
      if (beside.before) beside.before(at);
      body(at.block);
    };
    if (tiles == blocks) return only();
    const char walked = launch.nest.dims[1].name;
    const bool keeps_columns = launch.role == KernelSchedule::Role::partial && has_columns(phase.computes);
    // Guarded by results: a tile too many has none. Blocks that keep columns take every n-th row.
    const bool guarded = !keeps_columns && varies_in_block(launch.nest, launch.nest.dims[0].name);
    // Warps that walk rows share nothing, but the columns that they keep are combined in shared memory. A
    // cluster has waited already.
    const bool in_turns =
        launch.nest.dims[0].name == 't' || keeps_columns || units_of(launch.nest, walked, Level::warp) > 1;
    const bool shares = in_turns && launch.cluster == 1;
    // The blocks of a cluster take the same turns.
    const int together = launch.cluster;
    const Index turn = together == 1 ? at.block : at.block / together;
    const Dim count = together == 1 ? tiles : tiles / together;
    if (tiles.is_constant() && tiles.constant() < blocks.constant()) {
      if (guarded) return only();
      return builder.when({{turn, count}}, only);
    }
    const auto tile_of = [&](const Index& number) {
      return together == 1 ? number : number * together + at.block % together;
    };
    if (beside.before) beside.before(at);
    builder.loop({.name = block, .begin = turn, .end = count, .step = blocks / together, .body = {}}, [&] {
      const Index own = Dim::index(block, count);
      body(tile_of(own), tile_of(own + blocks / together));
      // What it left in shared memory may be overwritten.
      if (shares) builder.append(Barrier{});
    });
  };
  if (cooperative) return turns(*cooperative);
  const bool stays = tiles != builder.kernel.grid;
  const std::string number = stays ? builder.unique("g") : block;
  const std::string warp = builder.unique("warp"), lane = builder.unique("lane");
  const int warps = launch.block_threads / warp_size;
  parallel(Parallel::grid, number, builder.kernel.grid, [&] {
    parallel(Parallel::warp, warp, warps, [&] {
      parallel(Parallel::lane, lane, warp_size, [&] {
        const ThreadIndex at{Dim::index(number, builder.kernel.grid), Dim::index(warp, warps),
                             Dim::index(lane, warp_size)};
        stays || beside.before ? turns(at) : fill(at);
      });
    });
  });
}

void Lowering::store(NodeId result, const Index& element, VarId value) const {
  builder.append(Store{outputs.at(result), elements.in_buffer(result, element), value});
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

Coordinates Lowering::operand_coordinates(const schedule::LoopShape& shape, const Index& outer,
                                          const Index& inner) const {
  const Coordinates kept = unflatten(outer, renamed(shape.kept));
  const Coordinates reduced_at = unflatten(inner, renamed(shape.reduced));
  Coordinates at;
  std::size_t k = 0, r = 0;
  for (const bool is_reduced : shape.is_reduced) at.push_back(is_reduced ? reduced_at[r++] : kept[k++]);
  return at;
}

}  // namespace fuse::codegen
