// SPDX-License-Identifier: Apache-2.0
#include "schedule/regional/slices.hpp"

#include <algorithm>
#include <deque>
#include <unordered_set>
#include <utility>

#include "schedule/regional/halo_tiles.hpp"
#include "schedule/segments/stays_along.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;
using ir::Relation;

/// The first long dims, as many as have `count` positions together. None where no number of them has.
std::optional<Positions> outer_dims(const std::vector<Dim>& dims, const Dim& count) {
  Positions outer;
  Dim positions = 1;
  for (const std::size_t dim : long_dims(dims)) {
    if (positions == count) break;
    positions = positions * dims[dim];
    outer.push_back(dim);
  }
  return positions == count ? std::optional(std::move(outer)) : std::nullopt;
}

/// Of `operand` at an op of these dims, whether elements of a slice are made of the operand's slice alone.
class InSlice {
 public:
  InSlice(const ir::Graph& graph, const Dim& count) : graph_(graph), count_(count) {}

  bool keeps(NodeId id, std::size_t number) {
    if (count_.is(1)) return true;
    const ir::Node& node = graph_[id];
    const std::optional<Positions>&to = outer_dims_of(id), &from = outer_dims_of(node.operands[number]);
    if (!to || !from) return false;
    switch (info(node.op).relation) {
      case Relation::identity:
      case Relation::reshape:  // in row-major order a slice is a run of elements
      case Relation::reduce:   // what is reduced or scanned is no outer dim (results_of)
      case Relation::scan:
        return true;
      case Relation::broadcast:
        return mapped(*from, ir::attr<ir::DimsAttr>(node).dims) == *to;
      case Relation::permute:
        return mapped(*to, ir::attr<ir::DimsAttr>(node).dims) == *from;
      case Relation::gather:
        return gathers(node, number, *to);
      default:
        return stays_along(graph_, node, number, *from) && *from == *to;
    }
  }

 private:
  static Positions mapped(const Positions& dims, const std::vector<std::int64_t>& map) {
    Positions result;
    for (const std::size_t dim : dims) result.push_back(static_cast<std::size_t>(map[dim]));
    return result;
  }

  /// The result has the data's dims before the axis, the dims of the indices, and the data's after the axis.
  bool gathers(const ir::Node& node, std::size_t number, const Positions& to) const {
    const auto first = static_cast<std::size_t>(ir::attr<ir::AxisAttr>(node).axis);
    const auto end = first + static_cast<std::size_t>(graph_[node.operands[1]].type.rank());
    return std::all_of(to.begin(), to.end(), [&](std::size_t dim) {
      return number == 0 ? dim < first : first <= dim && dim < end;
    });
  }

  /// The values of a phase have few shapes.
  const std::optional<Positions>& outer_dims_of(NodeId id) {
    const std::vector<Dim>& dims = graph_[id].type.dims;
    auto found =
        std::find_if(known_.begin(), known_.end(), [&](const auto& each) { return *each.first == dims; });
    if (found == known_.end()) found = known_.emplace(found, &dims, outer_dims(dims, count_));
    return found->second;
  }

  const ir::Graph& graph_;
  const Dim& count_;
  std::deque<std::pair<const std::vector<Dim>*, std::optional<Positions>>> known_{};
};

/// The dims of a phase's loops, and which of them it reduces or scans.
struct SlicedLoops {
  std::vector<Dim> dims{};
  std::vector<bool> is_reduced{};
};

SlicedLoops loops_of(const ir::Graph& graph, const Phase& phase) {
  const ir::Node& first = graph[dominant(phase)];
  const Relation relation = info(first.op).relation;
  if (relation != Relation::reduce && relation != Relation::scan) {
    const std::vector<Dim>& dims = first.type.dims;
    return {dims, std::vector<bool>(dims.size())};
  }
  return {graph[first.operands[0]].type.dims, loop_shape(graph, first).is_reduced};
}

/// The rows, or elements, of the phase in a slice; none where its loops do not begin with the slices.
std::optional<Dim> results_of(const SlicedLoops& loops, const Dim& count) {
  const std::optional<Positions> outer = outer_dims(loops.dims, count);
  if (!outer) return std::nullopt;
  if (std::any_of(outer->begin(), outer->end(), [&](std::size_t dim) { return loops.is_reduced[dim]; }))
    return std::nullopt;
  Dim results = 1;
  for (const std::size_t dim : long_dims(loops.dims)) {
    const bool is_outer = std::find(outer->begin(), outer->end(), dim) != outer->end();
    if (!is_outer && !loops.is_reduced[dim]) results = results * loops.dims[dim];
  }
  return results;
}

/// Whether what the phase reads of `made` lies in its own slice.
bool reads_own_slice(const ir::Graph& graph, const Phase& phase, const Dim& count,
                     const std::unordered_set<NodeId>& made) {
  InSlice in_slice(graph, count);
  std::unordered_set<NodeId> elsewhere;  // what is read in other slices, too
  for (const Stage& stage : phase.stages) {
    if (!outer_dims(graph[stage.root].type.dims, count)) return false;
  }
  for (auto id = phase.nodes.rbegin(); id != phase.nodes.rend(); ++id) {
    const std::vector<NodeId>& operands = graph[*id].operands;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (elsewhere.contains(*id) || !in_slice.keeps(*id, i)) elsewhere.insert(operands[i]);
    }
  }
  return std::none_of(phase.inputs.begin(), phase.inputs.end(),
                      [&](NodeId input) { return made.contains(input) && elsewhere.contains(input); });
}

std::optional<Slices> slices_of(const ir::Graph& graph, const std::vector<Phase>& phases, const Dim& count) {
  Slices slices{.count = count};
  std::unordered_set<NodeId> made;
  for (const Phase& phase : phases) {
    std::optional<Dim> results = results_of(loops_of(graph, phase), count);
    if (!results || !reads_own_slice(graph, phase, count, made)) return std::nullopt;
    slices.results.push_back(std::move(*results));
    made.insert(phase.results.begin(), phase.results.end());
  }
  return slices;
}

}  // namespace

std::optional<Dim> elements_in_slice(const std::vector<Dim>& dims, const Dim& count) {
  const std::optional<Positions> outer = outer_dims(dims, count);
  if (!outer) return std::nullopt;
  Dim elements = 1;
  for (const std::size_t dim : long_dims(dims)) {
    if (outer->empty() || dim > outer->back()) elements = elements * dims[dim];
  }
  return elements;
}

std::vector<BlockValue> block_values(const ir::Graph& graph, const Segment& segment,
                                     const KernelChoices& choices) {
  const bool tiled = !choices.tile.empty();
  const auto tiles = tiled ? halo_tiles(graph, segment.phases, segment.results) : std::nullopt;
  const Dim count = tiled ? Dim(1) : slices_of(graph, segment.phases).value().count;
  std::vector<BlockValue> values;
  for (std::size_t i = 0; i < segment.phases.size(); ++i) {
    Dim of_tile = 1;
    if (tiled) {
      for (const std::int64_t extent : extents_of(tiles.value().phases[i], choices.tile))
        of_tile = of_tile * extent;
    }
    for (const NodeId result : segment.phases[i].results) {
      if (std::binary_search(segment.results.begin(), segment.results.end(), result)) continue;
      const Dim elements =
          tiled ? of_tile
                : elements_in_slice(graph[result].type.dims, count).value() * std::int64_t{choices.slices};
      values.push_back({result, i, elements, std::max<std::int64_t>(1, elements.max())});
    }
  }
  return values;
}

std::optional<Slices> slices_of(const ir::Graph& graph, const std::vector<Phase>& phases) {
  const SlicedLoops loops = loops_of(graph, phases.front());
  std::vector<Dim> counts = {1};
  for (const std::size_t dim : long_dims(loops.dims)) {
    if (loops.is_reduced[dim]) break;
    counts.push_back(counts.back() * loops.dims[dim]);
  }
  for (auto count = counts.rbegin(); count != counts.rend(); ++count) {
    if (std::optional<Slices> slices = slices_of(graph, phases, *count)) return slices;
  }
  return std::nullopt;
}

}  // namespace fuse::schedule
