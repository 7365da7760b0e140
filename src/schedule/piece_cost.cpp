// SPDX-License-Identifier: Apache-2.0
#include "schedule/piece_cost.hpp"

#include "schedule/step_cost.hpp"

namespace fuse::schedule {

std::int64_t moved_bytes(const ir::Graph& graph, const Piece& piece) {
  std::int64_t sum = 0;
  const auto add = [&](ir::NodeId id) {
    const ir::Type& type = graph[id].type;
    sum += product(type.dims).hint() * static_cast<std::int64_t>(size_of(type.dtype));
  };
  for (const ir::NodeId id : piece.inputs) add(id);
  for (const ir::NodeId id : results_of(piece)) add(id);
  return sum;
}

std::int64_t scratch_bytes(const ir::Graph& graph, const Piece& piece, const Choices& choices) {
  std::int64_t element = 0;
  for (const DType dtype : scratch_types(graph, piece, choices))
    element += static_cast<std::int64_t>(size_of(dtype));
  return element == 0 ? 0 : element * scratch_elements(graph, piece, choices).hint();
}

double piece_seconds(const ir::Graph& graph, const Piece& piece, const Choices& choices,
                     const Target& target) {
  const std::int64_t scratch = scratch_bytes(graph, piece, choices);
  double sum = 0;
  for (const KernelSchedule& launch : launches(graph, piece, choices)) {
    if (launch.role == KernelSchedule::Role::joined) continue;
    const Residency residency{.blocks = launch.grid.hint(), .threads = launch.block_threads};
    const bool combines = launch.role == KernelSchedule::Role::combine;
    const std::int64_t moved = scratch + (combines ? 0 : moved_bytes(graph, piece));
    sum += kernel_cost(moved, residency, target).seconds;
  }
  // Between two launches of one kernel, its blocks wait for each other.
  if (choices.blocks > 0) sum += target.barrier_seconds - target.launch_seconds;
  return sum;
}

}  // namespace fuse::schedule
