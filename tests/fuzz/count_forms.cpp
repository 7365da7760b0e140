// Which forms a program has. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "fuzz/forms.hpp"
#include "schedule/nest/usual_nests.hpp"

namespace fuse::fuzz {
namespace {

using ir::NodeId;

/// Of each node: whether it needs `from`.
std::vector<bool> reached_from(const ir::Graph& graph, NodeId from) {
  std::vector<bool> reached(graph.nodes.size());
  reached[from] = true;
  for (NodeId id = from + 1; id < graph.nodes.size(); ++id) {
    const auto& operands = graph[id].operands;
    reached[id] = std::any_of(operands.begin(), operands.end(), [&](NodeId o) { return reached[o]; });
  }
  return reached;
}

bool has_crossed_donations(const ir::Graph& graph) {
  for (const ir::Output& a : graph.outputs) {
    if (!a.donated()) continue;
    const std::vector<bool> of_donor = reached_from(graph, a.donor);
    for (const ir::Output& b : graph.outputs) {
      if (&a == &b || !b.donated() || !of_donor[b.node]) continue;
      if (reached_from(graph, b.donor)[a.node]) return true;
    }
  }
  return false;
}

/// Which of several values an element is depends on where it stands.
bool has_predicate(const ir::Node& node) {
  const ir::Relation relation = ir::info(node.op).relation;
  return relation == ir::Relation::pad || relation == ir::Relation::concat ||
         relation == ir::Relation::update;
}

bool has_nested_predicates(const ir::Graph& graph, const schedule::Phase& phase) {
  std::vector<bool> inside(graph.nodes.size());  // of a predicate, within the phase
  for (const NodeId id : phase.nodes) {
    const ir::Node& node = graph[id];
    const bool within =
        std::any_of(node.operands.begin(), node.operands.end(), [&](NodeId o) { return inside[o]; });
    if (has_predicate(node) && within) return true;
    const ir::OpInfo& row = ir::info(node.op);
    inside[id] = has_predicate(node) || (within && (row.elementwise || row.has(ir::Trait::movement)));
  }
  return false;
}

/// A slice whose elements are not one block of its operand's: it cuts a dim below one that it keeps several
/// of.
bool cuts_inside(const ir::Graph& graph, const ir::Node& slice) {
  const std::vector<Dim>& whole = graph[slice.operands[0]].type.dims;
  bool several = false;
  for (std::size_t d = 0; d < whole.size(); ++d) {
    const Dim& kept = slice.type.dims[d];
    if (several && !(kept == whole[d])) return true;
    several = several || !kept.is(1);
  }
  return false;
}

bool has_column_slice(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes) {
    const ir::Relation relation = ir::info(node.op).relation;
    if (relation != ir::Relation::contraction && relation != ir::Relation::custom) continue;
    for (const NodeId operand : node.operands) {
      if (graph[operand].op == ir::Op::slice && cuts_inside(graph, graph[operand])) return true;
    }
  }
  return false;
}

bool has_concat_read_again(const ir::Graph& graph) {
  const auto users = ir::users(graph);
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (graph[id].op == ir::Op::concat && graph[id].operands.size() > 1 && users[id].size() > 1) return true;
  }
  return false;
}

/// What moves elements of a computed value, for an op that computes.
bool moves_inside(const ir::Graph& graph) {
  std::vector<bool> computed(graph.nodes.size()), moved(graph.nodes.size());
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const ir::Node& node = graph[id];
    const bool moves = ir::info(node.op).has(ir::Trait::movement);
    for (const NodeId operand : node.operands) {
      if (!moves && moved[operand]) return true;
      moved[id] = moved[id] || (moves && (computed[operand] || moved[operand]));
    }
    computed[id] = !moves && !node.operands.empty();
  }
  return false;
}

Forms forms_of_graph(const ir::Graph& graph) {
  Forms forms = 0;
  if (!graph.symbols.empty()) forms |= bit(Form::symbolic_dims);
  if (moves_inside(graph)) forms |= bit(Form::moved_inside);
  const auto donated = [](const ir::Output& output) { return output.donated(); };
  if (std::any_of(graph.outputs.begin(), graph.outputs.end(), donated)) forms |= bit(Form::donated_output);
  if (has_crossed_donations(graph)) forms |= bit(Form::crossed_donation);
  if (has_column_slice(graph)) forms |= bit(Form::column_slice);
  if (has_concat_read_again(graph)) forms |= bit(Form::concat_read_again);
  return forms;
}

Forms forms_of_phase(const ir::Graph& graph, const schedule::Phase& phase) {
  Forms forms = 0;
  if (phase.in_place) forms |= bit(Form::in_place_update);
  if (!phase.overwrites.empty()) forms |= bit(Form::element_overwrite);
  if (has_nested_predicates(graph, phase)) forms |= bit(Form::nested_predicate);
  if (schedule::has_columns(phase)) forms |= bit(Form::columns_beside_rows);
  return forms;
}

/// Which of the usual lists the loops of a reduction are, however many turns blocks take; or one of its own.
Form form_of_rows(const schedule::Choices& choices) {
  using schedule::Level;
  const std::vector<schedule::Split> splits = schedule::without_turns({.splits = choices.splits}).splits;
  const auto units = [&](char dim, Level level) { return static_cast<int>(units_of(splits, dim, level)); };
  const int threads = choices.block_threads(), vector = units('c', Level::vector);
  if (splits == schedule::nest_of_lanes(threads, units('c', Level::lane), vector)) return Form::row_of_lanes;
  if (splits == schedule::nest_of_blocks(threads, vector)) return Form::row_of_block;
  if (splits == schedule::nest_of_columns(threads, units('r', Level::lane))) return Form::columns_of_block;
  for (const Level blocks : {Level::grid, Level::cluster}) {
    if (splits == schedule::nest_of_shared_rows(threads, units('c', blocks), vector, blocks))
      return Form::row_of_parts;
  }
  return Form::nest;
}

Forms forms_of_loops(const ir::Graph& graph, const schedule::PhaseSchedule& phase) {
  const schedule::Choices& choices = phase.choices;
  const ir::Relation relation = info(graph[dominant(phase.computes)].op).relation;
  Forms forms = 0;
  if (relation == ir::Relation::scan) forms |= bit(Form::scan);
  if (relation == ir::Relation::reduce) forms |= bit(form_of_rows(choices));
  if (walks_tiles(choices)) forms |= bit(Form::tile);
  if (choices.cluster() > 1) forms |= bit(Form::cluster);
  const bool stays = choices.splits.front().level == schedule::Level::serial;
  if (choices.cluster() > 1 && stays) forms |= bit(Form::staying_cluster);
  return forms;
}

Forms forms_of_phase(const schedule::PhaseSchedule& schedule) {
  Forms forms = 0;
  const schedule::Choices& choices = schedule.choices;
  if (choices.online_softmax) forms |= bit(Form::online_sum);
  if (choices.vector() > 1) forms |= bit(Form::vectors);
  if (!schedule.columns_once.empty()) forms |= bit(Form::columns_once);
  if (!schedule.ahead.empty() || !schedule.invariants.empty()) forms |= bit(Form::row_to_row);
  if (!schedule.cached.empty()) {
    forms |= bit(choices.shared_cache > 0 ? Form::held_in_shared_memory
                 : choices.packed         ? Form::held_packed
                                          : Form::held_in_registers);
  }
  return forms;
}

Forms forms_of_schedule(const ir::Graph& graph, const schedule::Schedule& schedule) {
  Forms forms = 0;
  for (const schedule::PhaseSchedule& phase : schedule.phases)
    forms |= forms_of_phase(graph, phase.computes) | forms_of_loops(graph, phase) | forms_of_phase(phase);
  using Between = schedule::Segment::Between;
  if (schedule.phases.size() > 1) {
    const Between between = schedule.segment.between;
    forms |= bit(between == Between::nothing         ? Form::horizontal
                 : !schedule.choices.tile.empty()    ? Form::halo_tiles
                 : between == Between::block_barrier ? Form::regional
                                                     : Form::phases);
  }
  const auto joined = [](const schedule::KernelSchedule& kernel) {
    return kernel.role == schedule::KernelSchedule::Role::cooperative;
  };
  if (std::any_of(schedule.kernels.begin(), schedule.kernels.end(), joined)) forms |= bit(Form::grid_barrier);
  const auto tests = [](const schedule::KernelSchedule& kernel) { return !kernel.tested.empty(); };
  if (std::any_of(schedule.kernels.begin(), schedule.kernels.end(), tests))
    forms |= bit(Form::tested_vectors);
  if (!schedule.starts.empty()) forms |= bit(Form::shared_starts);
  return forms;
}

Forms forms_of_dims(const Program& program) {
  if (program.graph.symbols.empty()) return 0;
  Forms forms = 0;
  for (const DimValues& dims : program.bindings) {
    bool least = true, greatest = true;
    for (const ir::Symbol& symbol : program.graph.symbols) {
      if (!dims.contains(symbol.name)) return 0;  // a text without a line of dims
      const std::int64_t value = dims.at(symbol.name);
      least = least && value == symbol.range.min;
      greatest = greatest && value == symbol.range.max;
    }
    if (least) forms |= bit(Form::minimal_extents);
    if (greatest) forms |= bit(Form::maximal_extents);
  }
  return forms;
}

Forms forms_of_run(const RunOptions& options, bool packs) {
  Forms forms = 0;
  if (options.runs > 1) forms |= bit(Form::moved_buffers);
  if (options.runs > 1 && packs) forms |= bit(Form::moved_packed_memory);
  if (options.runs > 1 && options.graph_mode) forms |= bit(Form::graph_mode);
  if (options.together) forms |= bit(Form::executables_together);
  if (options.saved) forms |= bit(Form::saved_plan);
  return forms;
}

}  // namespace

Forms forms_of(const Case& c, const Compiled& compiled) {
  Forms forms = forms_of_graph(compiled.graph) | forms_of_dims(c.program);
  for (const schedule::Schedule& schedule : compiled.schedules)
    forms |= forms_of_schedule(compiled.graph, schedule);
  if (!compiled.partition.views.of.empty()) forms |= bit(Form::view);
  for (const schedule::Segment& segment : compiled.partition.segments) {
    for (const ir::NodeId input : segment.inputs) {
      if (compiled.partition.in_place.of.contains(schedule::memory_of(compiled.partition, input)))
        forms |= bit(Form::read_in_place);
    }
  }
  for (const schedule::Step& step : compiled.plan.steps) {
    const auto* gemm = std::get_if<schedule::GemmStep>(&step.work);
    if (gemm && (gemm->layout_a || gemm->layout_b)) forms |= bit(Form::strided_operand);
  }
  if (!compiled.plan.tables.empty()) forms |= bit(Form::versions);
  const bool packs = !compiled.plan.setup.empty();
  if (packs) forms |= bit(Form::packed_value);
  const auto calls = [&](std::string_view primitive) {
    return compiled.source.body.find(primitive) != std::string::npos;
  };
  if (calls("pair_of<")) forms |= bit(Form::pairs);
  if (calls("divide_vector(")) forms |= bit(Form::divided_vectors);
  return forms | forms_of_run(c.options, packs);
}

}  // namespace fuse::fuzz
