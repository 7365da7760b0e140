// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/lower/lowering_context.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::NodeId;

namespace {

/// Stores element i of an update at its location in the operand that the result lies in.
void store_update(Lowering& to, const Index& i) {
  const NodeId update = to.graph[to.root()].operands[1];
  Coordinates at = unflatten(i, to.elements.dims(update));
  const VarId value = to.elements.value(update, at);
  const Coordinates starts = to.elements.starts(to.root());
  for (std::size_t d = 0; d < at.size(); ++d) at[d] = at[d] + starts[d];
  to.builder.at(to.root());
  to.builder.append(Store{to.outputs.at(to.root()), flatten(at, to.elements.dims(to.root())), value});
}

/// Computes and stores element `number` of the block's tile, where it lies inside of the value.
void lower_in_tile(Lowering& to, const Index& number) {
  Coordinates at = unflatten(number, to.tile->extents);
  const std::vector<Dim> dims = to.elements.dims(to.root());
  std::vector<IndexLess> inside;
  for (std::size_t i = 0; i < at.size(); ++i) {
    at[i] = at[i] + to.tile->first[i];
    if (at[i].min() < 0) inside.push_back({0, at[i] + 1});
    if (at[i].max() >= dims[i].min()) inside.push_back({at[i], dims[i]});
  }
  to.builder.when(inside, [&] {
    for (const schedule::Stage& stage : to.phase.computes.stages) {
      const VarId value = to.elements.value(stage.root, at);
      to.builder.at(stage.root);
      to.builder.append(Store{to.outputs.at(stage.root), to.elements.in_buffer(stage.root, at), value});
    }
  });
}

void store(Lowering& to, const schedule::Stage& stage, const Index& i, VarId value) {
  to.builder.at(stage.root);
  to.store(stage.root, i, value);
}

}  // namespace

void lower_elements(Lowering& to) {
  KernelBuilder& builder = to.builder;
  const int threads = to.launch.block_threads;
  const Dim groups = to.results / to.launch.vector;
  // How many a thread takes one after another, a block apart (without_vectors).
  const int in_turns = static_cast<int>(units_of(to.launch.nest.splits, 'r', schedule::Level::serial));
  const std::string base = to.launch.vector == 1 ? "i" : "g";
  const auto element = [&](const std::string& name, const Index& number) {
    const Index group = to.bind(name, number, groups);
    builder.when({{group, groups}}, [&] {
      if (to.phase.computes.in_place) return store_update(to, group);
      if (to.tile) return lower_in_tile(to, group);
      to.side_by_side(to.among_all(group, groups), [&](const Index&, const Index& i) {
        const std::vector<schedule::Stage>& stages = to.phase.computes.stages;
        const bool overwrites = !to.phase.computes.overwrites.empty();
        std::vector<VarId> values;
        for (const schedule::Stage& stage : stages) {
          values.push_back(to.elements.value(stage.root, unflatten(i, to.elements.dims(stage.root))));
          if (!overwrites) store(to, stage, i, values.back());
        }
        if (!overwrites) return;
        // Every element is read before any is written over it.
        for (std::size_t s = 0; s < stages.size(); ++s) store(to, stages[s], i, values[s]);
      });
    });
  };
  const std::string block = builder.unique("b");
  if (to.cooperative || to.rename(to.launch.tiles) != to.blocks) {
    return to.threads(block, [&](const ThreadIndex& at) {
      const Index thread = at.warp * warp_size + at.lane;
      if (in_turns == 1) return element(builder.unique(base), at.block * threads + thread);
      const std::string turn = builder.unique("k");
      builder.loop({.name = turn, .begin = 0, .end = in_turns, .unrolled = true, .body = {}}, [&] {
        to.elements.enter_scope();
        element(builder.unique(base), (at.block * in_turns + Dim::index(turn, in_turns)) * threads + thread);
        to.elements.leave_scope();
      });
    });
  }
  // Threads that share nothing: the emulated device runs them as a plain loop.
  const std::string thread = builder.unique("t"), name = builder.unique(base);
  to.parallel(Parallel::grid, block, builder.kernel.grid, [&] {
    to.parallel(Parallel::block, thread, threads, [&] {
      element(name, Dim::index(block, builder.kernel.grid) * threads + Dim::index(thread, threads));
    });
  });
}

}  // namespace fuse::codegen
