// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/lowering.hpp"

#include "schedule/shape.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR

std::vector<Dim> Lowering::renamed(std::vector<Dim> dims) const {
  for (Dim& dim : dims) dim = rename(dim);
  return dims;
}

void Lowering::parallel(Parallel parallel, const std::string& name, const Dim& extent,
                        const std::function<void()>& fill) const {
  builder.loop({.name = name, .begin = 0, .end = extent, .parallel = parallel, .body = {}}, fill);
}

void Lowering::threads(const std::string& block, const std::function<void(const ThreadIndex&)>& fill) const {
  const Dim grid = rename(launch.grid);
  if (joined) {
    const Index first = joined->block;
    const auto body = [&](const Index& number) {
      elements.enter_scope();
      fill({number, joined->warp, joined->lane});
      elements.leave_scope();
    };
    const Dim& blocks = builder.kernel.grid;
    if (grid == blocks) return body(first);
    if (grid.is_constant() && grid.constant() < blocks.constant())
      return builder.when({{first, grid}}, [&] { body(first); });
    // Behind each block, what it left in shared memory may be overwritten.
    builder.loop({.name = block, .begin = first, .end = grid, .step = builder.kernel.grid, .body = {}}, [&] {
      body(Dim::index(block, grid));
      builder.append(Barrier{});
    });
    return;
  }
  const std::string warp = builder.unique("warp"), lane = builder.unique("lane");
  const int warps = launch.block_threads / warp_size;
  parallel(Parallel::grid, block, builder.kernel.grid, [&] {
    parallel(Parallel::warp, warp, warps, [&] {
      parallel(Parallel::lane, lane, warp_size, [&] {
        fill({Dim::index(block, builder.kernel.grid), Dim::index(warp, warps), Dim::index(lane, warp_size)});
      });
    });
  });
}

Index Lowering::bind(const std::string& name, const Index& value, const Dim& extent) const {
  builder.append(Bind{name, value});
  return Dim::index(name, extent);
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
