// SPDX-License-Identifier: Apache-2.0
#include "schedule/segments/transposed.hpp"

#include <algorithm>
#include <unordered_set>

#include "ir/graph/attr.hpp"
#include "schedule/segments/loop_shape.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;
using ir::Relation;

/// The dim of the permute's result that its operand's memory runs along.
std::optional<std::size_t> runs_along(const ir::Graph& graph, const ir::Node& permute) {
  const auto inner = innermost(graph[permute.operands[0]].type.dims);
  if (!inner) return std::nullopt;
  const std::vector<std::int64_t>& permutation = ir::attr<ir::DimsAttr>(permute).dims;
  const auto at = std::find(permutation.begin(), permutation.end(), static_cast<std::int64_t>(*inner));
  return static_cast<std::size_t>(at - permutation.begin());
}

}  // namespace

std::optional<Transposed> transposed(const ir::Graph& graph, const Phase& phase) {
  const ir::Node& leader = graph[dominant(phase)];
  const Relation relation = info(leader.op).relation;
  if (phase.in_place || relation == Relation::reduce || relation == Relation::scan) return std::nullopt;
  const std::vector<Dim>& dims = leader.type.dims;
  const auto inner = innermost(dims);
  const auto is_long = [&](std::size_t dim) { return dims[dim].hint() > tile_side(1) / 2; };
  if (!inner || !is_long(*inner)) return std::nullopt;
  Transposed found{.inner = *inner};
  std::unordered_set<NodeId> seen(phase.inputs.begin(), phase.inputs.end());
  std::vector<NodeId> work;
  for (const Stage& stage : phase.stages) work.push_back(stage.root);
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    if (!seen.insert(id).second) continue;
    const ir::Node& node = graph[id];
    if (info(node.op).relation == Relation::identity)
      work.insert(work.end(), node.operands.begin(), node.operands.end());
    if (info(node.op).relation != Relation::permute || node.type.dims != dims) continue;
    const auto along = runs_along(graph, node);
    if (!along || *along == *inner || !is_long(*along)) continue;
    if (found.nodes.empty()) found.along = *along;
    if (found.along == *along) found.nodes.push_back(id);
  }
  if (found.nodes.empty()) return std::nullopt;
  std::sort(found.nodes.begin(), found.nodes.end());
  return found;
}

std::vector<Dim> tile_dims(const std::vector<Dim>& dims, const Transposed& values, int vector) {
  std::vector<Dim> tiles = dims;
  for (const std::size_t dim : {values.along, values.inner})
    tiles[dim] = ceil_div(dims[dim], tile_side(vector));
  return tiles;
}

std::int64_t tile_bytes(const ir::Graph& graph, const Transposed& values, int vector) {
  std::int64_t bytes = 0;
  for (const NodeId id : values.nodes)
    bytes += std::int64_t{tile_side(vector)} * tile_pitch(vector) *
             static_cast<std::int64_t>(size_of(graph[id].type.dtype));
  return bytes;
}

}  // namespace fuse::schedule
