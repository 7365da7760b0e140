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
