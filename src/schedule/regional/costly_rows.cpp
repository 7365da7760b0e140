// SPDX-License-Identifier: Apache-2.0
#include "schedule/regional/costly_rows.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "schedule/regional/slices.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;
using ir::Relation;

constexpr std::int64_t often = 64;                         // elements of the result for one of the value
constexpr std::size_t most_costly_rows = 4;                // values of one kernel
constexpr std::int64_t most_bytes_of_row_value = 4 << 10;  // of one value, in a slice

bool is_inside(const Phase& phase, NodeId id) {
  return std::binary_search(phase.nodes.begin(), phase.nodes.end(), id);
}

/// What the phase computes for these, where some of it is made before.
struct Cone {
  std::vector<NodeId> nodes{}, inputs{};
  bool costly = false;
};

Cone cone_of(const ir::Graph& graph, const Phase& phase, std::vector<NodeId> work,
             const std::vector<NodeId>& made) {
  Cone cone;
  std::unordered_set<NodeId> seen(work.begin(), work.end());
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    if (std::find(made.begin(), made.end(), id) != made.end() || !is_inside(phase, id)) {
      cone.inputs.push_back(id);
      continue;
    }
    cone.nodes.push_back(id);
    cone.costly = cone.costly || info(graph[id].op).has(ir::Trait::costly);
    for (const NodeId operand : graph[id].operands) {
      if (seen.insert(operand).second) work.push_back(operand);
    }
  }
  std::sort(cone.nodes.begin(), cone.nodes.end());
  std::sort(cone.inputs.begin(), cone.inputs.end());
  return cone;
}

/// What is broadcast to many elements, takes a costly op, and is no broadcast value itself.
std::vector<NodeId> costly_rows(const ir::Graph& graph, const Phase& phase) {
  std::vector<NodeId> values;
  const std::int64_t results = product(graph[phase.root].type.dims).hint();
  for (const NodeId id : phase.nodes) {
    if (info(graph[id].op).relation != Relation::broadcast) continue;
    const NodeId value = graph[id].operands[0];
    const Dim elements = product(graph[value].type.dims);
    if (!is_inside(phase, value) || elements.is(1) || elements.hint() > results / often) continue;
    if (std::find(values.begin(), values.end(), value) != values.end()) continue;
    if (cone_of(graph, phase, {value}, {}).costly) values.push_back(value);
  }
  return values;
}

}  // namespace

std::optional<Segment> with_costly_rows_first(const ir::Graph& graph, const Segment& segment) {
  if (segment.kind != Segment::Kind::kernel || segment.phases.size() != 1) return std::nullopt;
  const Phase& phase = segment.phases[0];
  const Relation relation = info(graph[dominant(phase)].op).relation;
  if (phase.in_place || relation == Relation::reduce || relation == Relation::scan) return std::nullopt;
  const std::vector<NodeId> values = costly_rows(graph, phase);
  if (values.empty() || values.size() > most_costly_rows) return std::nullopt;

  Segment whole = segment;
  whole.between = Segment::Between::block_barrier;
  whole.chosen.reset();
  whole.phases.clear();
  std::vector<NodeId> made;
  for (const NodeId value : values) {
    Cone cone = cone_of(graph, phase, {value}, made);
    whole.phases.push_back(phase_of(graph, value, std::move(cone.nodes), std::move(cone.inputs)));
    made.push_back(value);
  }
  Phase rest = phase;
  std::vector<NodeId> roots;
  for (const Stage& stage : phase.stages) roots.push_back(stage.root);
  Cone cone = cone_of(graph, phase, std::move(roots), made);
  rest.nodes = std::move(cone.nodes);
  rest.inputs = std::move(cone.inputs);
  whole.phases.push_back(std::move(rest));

  const std::optional<Slices> slices = slices_of(graph, whole.phases);
  if (!slices) return std::nullopt;
  for (const NodeId value : values) {
    const std::optional<Dim> elements = elements_in_slice(graph[value].type.dims, slices->count);
    const auto size = static_cast<std::int64_t>(size_of(graph[value].type.dtype));
    if (!elements || elements->max() > most_bytes_of_row_value / size) return std::nullopt;
  }
  return whole;
}

}  // namespace fuse::schedule
