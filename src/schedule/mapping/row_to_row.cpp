// SPDX-License-Identifier: Apache-2.0
#include "schedule/mapping/row_to_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "schedule/segments/loop_shape.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;
using ir::Relation;

constexpr std::int64_t most_registers = 255;  // per thread

bool reduces_rows(const ir::Graph& graph, const Phase& phase) {
  return info(graph[dominant(phase)].op).relation == Relation::reduce && !has_columns(phase);
}

/// Walks back from these through ops that keep an element's position, to what `reached` takes or the phase
/// does not make.
template <class Reached>
void walk_back(const ir::Graph& graph, const Phase& phase, std::vector<NodeId> work, const Reached& reached) {
  std::unordered_set<NodeId> seen;
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    if (!seen.insert(id).second) continue;
    const bool inside = std::binary_search(phase.nodes.begin(), phase.nodes.end(), id);
    const bool goes_on = inside && info(graph[id].op).relation == Relation::identity;
    if (!goes_on) {
      reached(id, inside);
      continue;
    }
    work.insert(work.end(), graph[id].operands.begin(), graph[id].operands.end());
  }
}

/// What the walks of the first pass, or of all passes, compute at their own elements.
std::vector<NodeId> walked(const ir::Graph& graph, const Phase& phase, bool first_pass_alone) {
  std::vector<NodeId> roots;
  for (const Stage& stage : phase.stages) {
    if (walks(stage.form) && (stage.pass == 0 || !first_pass_alone))
      roots.push_back(element_of(graph, stage));
  }
  return roots;
}

}  // namespace

std::vector<RowInvariant> row_invariants(const ir::Graph& graph, const Phase& phase) {
  std::vector<RowInvariant> result;
  if (!reduces_rows(graph, phase)) return result;
  const LoopShape shape = loop_shape(graph, phase);
  const auto is_input = [&](NodeId id) {
    return std::binary_search(phase.inputs.begin(), phase.inputs.end(), id);
  };
  walk_back(graph, phase, walked(graph, phase, false), [&](NodeId broadcast, bool inside) {
    if (!inside || !repeats_in_rows(graph, graph[broadcast], shape)) return;
    const NodeId operand = graph[broadcast].operands[0];
    walk_back(graph, phase, {operand}, [&](NodeId id, bool) {
      const bool known = std::any_of(result.begin(), result.end(),
                                     [&](const RowInvariant& each) { return each.input == id; });
      if (is_input(id) && !known && graph[id].type.dims == graph[operand].type.dims)
        result.push_back({id, broadcast});
    });
  });
  std::sort(result.begin(), result.end(),
            [](const RowInvariant& a, const RowInvariant& b) { return a.input < b.input; });
  return result;
}

std::vector<NodeId> rows_to_load(const ir::Graph& graph, const Phase& phase) {
  std::vector<NodeId> result;
  if (!reduces_rows(graph, phase)) return result;
  const std::vector<Dim>& dims = graph[graph[dominant(phase)].operands[0]].type.dims;
  walk_back(graph, phase, walked(graph, phase, true), [&](NodeId id, bool inside) {
    if (!inside && graph[id].type.dims == dims &&
        std::binary_search(phase.inputs.begin(), phase.inputs.end(), id))
      result.push_back(id);
  });
  std::sort(result.begin(), result.end());
  return result;
}

std::int64_t registers_of(const ir::Graph& graph, NodeId value, std::int64_t elements) {
  return (elements * static_cast<std::int64_t>(size_of(graph[value].type.dtype)) + 3) / 4;
}

std::string defect_of_row_to_row(const ir::Graph& graph, const Phase& phase, const Choices& choices) {
  if (!choices.ahead && !choices.invariants) return "";
  const char* const what = choices.ahead ? "ahead" : "invariants";
  const auto needs = [&](std::string_view need) { return fmt::format("{} needs {}", what, need); };
  if (!reduces_rows(graph, phase)) return needs("rows that are reduced, and no columns beside them");
  if (choices.splits.front() != Split{'r', Level::serial})
    return needs("blocks that take rows in turns, by r:serial");
  if (splits_rows(choices) && choices.cluster() == 1)
    return needs("a warp, a block or a cluster for each row");
  if (units_of(choices.splits, 'r', Level::vector) > 1) return needs("one row at a time in a thread");
  if (choices.shared_cache > 0) return needs("registers, and shared_cache holds the row in shared memory");
  const std::int64_t trips = elements_per_thread(product(loop_shape(graph, phase).reduced), choices);
  if (trips == 0) return needs("a known number of elements of a row in each thread");
  const std::vector<RowInvariant> invariants = row_invariants(graph, phase);
  const std::vector<NodeId> rows = rows_to_load(graph, phase);
  if (choices.ahead && rows.empty())
    return "ahead is for inputs of the loops' own dims that the first pass loads, of which it has none";
  if (choices.invariants && invariants.empty())
    return "invariants are inputs that a broadcast along the rows reads whole, of which it has none";
  std::int64_t registers = choices.register_cache;
  for (const NodeId row : rows) registers += choices.ahead ? 2 * registers_of(graph, row, trips) : 0;
  for (const RowInvariant& each : invariants)
    registers += choices.invariants ? registers_of(graph, each.input, trips) : 0;
  if (registers <= most_registers) return "";
  return fmt::format("{} registers from row to row, register_cache counted: a thread has {}", registers,
                     most_registers);
}

}  // namespace fuse::schedule
