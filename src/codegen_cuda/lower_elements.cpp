// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/lowering.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::NodeId;

namespace {

/// Element i of an update, to its place in the operand that the result lies in.
void store_update(Lowering& to, const Index& i) {
  const NodeId update = to.graph[to.root()].operands[1];
  Coordinates at = unflatten(i, to.elements.dims(update));
  const VarId value = to.elements.value(update, at);
  const Coordinates starts = to.elements.starts(to.root());
  for (std::size_t d = 0; d < at.size(); ++d) at[d] = at[d] + starts[d];
  to.builder.at(to.root());
  to.builder.append(Store{to.outputs.at(to.root()), flatten(at, to.elements.dims(to.root())), value});
}

}  // namespace

void lower_elements(Lowering& to) {
  KernelBuilder& builder = to.builder;
  const std::string block = builder.unique("b"), thread = builder.unique("t"), name = builder.unique("i");
  const int threads = to.launch.block_threads;
  to.parallel(Parallel::grid, block, builder.kernel.grid, [&] {
    to.parallel(Parallel::block, thread, threads, [&] {
      const Index i = to.bind(
          name, Dim::index(block, builder.kernel.grid) * threads + Dim::index(thread, threads), to.results);
      builder.when({{i, to.results}}, [&] {
        if (to.schedule.piece.in_place) return store_update(to, i);
        for (const schedule::Stage& stage : stages_of(to.graph, to.schedule.piece)) {
          const VarId value = to.elements.value(stage.root, unflatten(i, to.elements.dims(stage.root)));
          builder.at(stage.root);
          builder.append(Store{to.outputs.at(stage.root), i, value});
        }
      });
    });
  });
}

}  // namespace fuse::codegen
