// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <unordered_set>

#include "codegen_cuda/lower/row_loops.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::NodeId;
using schedule::KernelSchedule;
using schedule::Level;
using schedule::Stage;

bool RowLoops::combines_partials() const {
  return to_.launch.role == KernelSchedule::Role::combine && to_.launch.nest.dims[1].name == 'p';
}

std::vector<Stage> RowLoops::stages_of_launch() const {
  if (to_.launch.role == KernelSchedule::Role::cooperative) return to_.phase.computes.stages;
  return combines_partials() ? stages_over_partials(to_.section) : to_.section.walks;
}

void RowLoops::each_group(const Walk& walk, const std::function<void(const Group&)>& fill) {
  const auto group = [&](const Index& trip) {
    const Index number =
        to_.bind(builder_.unique(vector() == 1 ? "c" : "g"), walk.first + trip * walk.step, groups());
    fill({trip, number, {number, groups()}});
  };
  const Dim trips = elements_per_thread_ / vector();
  if (trips.is(1)) return group(0);
  const std::string name = builder_.unique("k");
  builder_.loop({.name = name, .begin = 0, .end = trips, .unrolled = true, .body = {}},
                [&] { group(Dim::index(name, trips)); });
}

void RowLoops::each_element(const Group& group, const Visit& visit) {
  if (vector() == 1) return visit(group.trip, group.number);
  to_.side_by_side(group.number,
                   [&](const Index& which, const Index& c) { visit(group.trip * vector() + which, c); });
}

ReductionId RowLoops::reduction_of(const Stage& stage) {
  const DType element = to_.graph[element_of(to_.graph, stage)].type.dtype;
  return stage.maximum ? builder_.online_sum(element) : builder_.reduction(to_.graph[stage.root].op, element);
}

RowLoops::Running RowLoops::declare(const Stage& stage, const char* name) {
  builder_.at(stage.root);
  const ReductionId reduction = reduction_of(stage);
  return {stage, reduction, builder_.declare(reduction, name)};
}

std::vector<RowLoops::Running> RowLoops::declare_each_row(const std::vector<Stage>& stages,
                                                          const char* name) {
  std::vector<Running> result;
  for (const Stage& stage : stages) {
    for (int which = 0; which < rows_side_by_side(); ++which) {
      result.push_back(declare(stage, name));
      result.back().which = which;
    }
  }
  return result;
}

std::vector<RowLoops::Running> RowLoops::declare_for_walk(const std::vector<Stage>& stages) {
  std::vector<Running> result;
  for (const Stage& stage : stages) {
    if (stage.form != Stage::Form::inner_reduce) continue;
    if (states_of_walk() == 1) {
      result.push_back(declare(stage, "acc"));
      continue;
    }
    builder_.at(stage.root);
    Running running{.stage = stage, .reduction = reduction_of(stage)};
    const Reduction reduction = builder_.kernel.reductions[running.reduction];
    for (std::size_t i = 0; i < reduction.state.size(); ++i) {
      const std::string name = builder_.component("row_acc", running.reduction, i);
      running.states.push_back(
          builder_.buffer(name, reduction.state[i], Space::local, states_of_walk(), true));
    }
    const std::string which = builder_.unique("v");
    builder_.loop({.name = which, .begin = 0, .end = states_of_walk(), .unrolled = true, .body = {}}, [&] {
      for (std::size_t i = 0; i < running.states.size(); ++i) {
        const VarId identity = builder_.value(reduction.state[i], reduction.identity[i]);
        builder_.append(Store{running.states[i], Dim::index(which, states_of_walk()), identity});
      }
    });
    result.push_back(std::move(running));
  }
  return result;
}

std::vector<RowLoops::Running> RowLoops::each_row_of(const std::vector<Running>& walked) {
  if (states_of_walk() == 1) return walked;
  std::vector<Running> result;
  for (const Running& running : walked) {
    for (int which = 0; which < rows_side_by_side(); ++which) {
      builder_.at(running.root());
      result.push_back(
          {.stage = running.stage,
           .reduction = running.reduction,
           .state = builder_.declare(running.reduction, "acc", load_state(running.states, which)),
           .which = which});
      for (int other = 1; other < accumulators(); ++other)
        builder_.append(Combine{running.reduction, result.back().state, load_state(running.states, other)});
    }
  }
  return result;
}

void RowLoops::walk_row(const Walk& walk, const std::vector<Stage>& stages,
                        const std::vector<Running>& running) {
  bool loops = false;
  for (const Stage& stage : stages) {
    loops = loops || walks(stage.form);
    if (stage.form != Stage::Form::row) continue;
    if (rows_side_by_side() > 1) {
      store_rows_side_by_side(walk, stage.root);
      continue;
    }
    store_row(walk, stage.root, to_.elements.value(stage.root, row_coordinates(stage.root, walk.row)));
  }
  if (!loops) return;
  compute_row_values(walk, stages);
  elements_per_thread_ > 0 ? unrolled_loop(walk, stages, running) : plain_loop(walk, stages, running);
}

void RowLoops::store_rows_side_by_side(const Walk& walk, NodeId root) {
  for (int which = 0; which < rows_side_by_side(); ++which) {
    const Walk row = walk_of_row(walk, which);
    to_.elements.enter_scope();
    for (const Running& total : totals_) {
      if (total.which == which) define_total(row, total);
    }
    store_row(row, root, to_.elements.value(root, row_coordinates(root, row.row)));
    to_.elements.leave_scope();
  }
}

void RowLoops::plain_loop(const Walk& walk, const std::vector<Stage>& stages,
                          const std::vector<Running>& running) {
  const int pass = stages.front().pass;
  const std::string name = builder_.unique(vector() == 1 ? "c" : "g");
  builder_.loop({.name = name, .begin = walk.first, .end = groups(), .step = walk.step, .body = {}}, [&] {
    to_.elements.enter_scope();
    const Group group{.number = Dim::index(name, groups())};
    if (rows_side_by_side() > 1) {
      to_.side_by_side(walk.row, [&](const Index& which, const Index& row) {
        Walk own = walk;
        own.row = row;
        visit(own, stages, running, group.number, 0, which);
      });
      return to_.elements.leave_scope();
    }
    const std::map<NodeId, BufferId> taken = take_shared(walk, group, pass);
    const std::map<NodeId, BufferId> left = arrays_to_leave(group, pass);
    each_element(group, [&](const Index& which, const Index& c) {
      const Coordinates at = to_.operand_coordinates(shape_, walk.row, c);
      for (const auto& [node, buffer] : taken) to_.elements.keep(node, at, buffer, which);
      visit(walk, stages, running, c, 0, which % accumulators());
      for (const auto& [node, buffer] : left) {
        const VarId value = to_.elements.value(node, at);
        const bool whole = buffer == shared_.at(node);
        builder_.at(node);
        builder_.append(Store{buffer, whole ? shared_index(walk, group, which) : which, value});
      }
    });
    leave_shared(walk, group, left);
    to_.elements.leave_scope();
  });
}

Index RowLoops::shared_index(const Walk& walk, const Group& group, const Index& which) const {
  const int blocks = to_.launch.cluster,
            threads = units_of(nest_, walked(), Level::warp) * units_of(nest_, walked(), Level::lane);
  const Index number =
      blocks == 1 ? group.number : group.number / (blocks * threads) * threads + group.number % threads;
  return walk.slot * shared_cache() + number * vector() + which;
}

std::vector<IndexLess> RowLoops::is_shared(const Group& group) const {
  const int cached = shared_cache() * to_.launch.cluster / vector();
  if (groups().max() <= cached) return {};
  return {{group.number, cached}};
}

void RowLoops::guarded(const std::vector<IndexLess>& conditions, const std::function<void()>& fill) {
  to_.elements.enter_scope();
  builder_.when(conditions, fill);
  to_.elements.leave_scope();
}

std::map<NodeId, BufferId> RowLoops::take_shared(const Walk& walk, const Group& group, int pass) {
  std::map<NodeId, BufferId> taken;
  for (const schedule::CachedValue& cached : to_.phase.cached) {
    if (!shared_.contains(cached.node) || cached.first >= pass || pass > cached.last) continue;
    const DType dtype = to_.graph[cached.node].type.dtype;
    const BufferId local = own_array(cached.node);
    taken[cached.node] = local;
    builder_.at(cached.node);
    const std::vector<IndexLess> inside = is_shared(group);
    guarded(inside, [&] {
      each_element(group, [&](const Index& which, const Index&) {
        const VarId value =
            builder_.value(dtype, Load{shared_.at(cached.node), shared_index(walk, group, which), {}});
        builder_.append(Store{local, which, value});
      });
    });
    if (inside.empty()) continue;
    guarded({{inside[0].bound - 1, group.number}}, [&] {
      each_element(group, [&](const Index& which, const Index& c) {
        const VarId value = to_.elements.value(cached.node, to_.operand_coordinates(shape_, walk.row, c));
        builder_.at(cached.node);
        builder_.append(Store{local, which, value});
      });
    });
  }
  return taken;
}

std::map<NodeId, BufferId> RowLoops::arrays_to_leave(const Group& group, int pass) {
  std::map<NodeId, BufferId> arrays;
  for (const schedule::CachedValue& cached : to_.phase.cached) {
    if (!shared_.contains(cached.node) || cached.first != pass) continue;
    arrays[cached.node] = is_shared(group).empty() ? shared_.at(cached.node) : own_array(cached.node);
  }
  return arrays;
}

void RowLoops::leave_shared(const Walk& walk, const Group& group, const std::map<NodeId, BufferId>& arrays) {
  for (const auto& [node, buffer] : arrays) {
    if (buffer == shared_.at(node)) continue;
    builder_.at(node);
    guarded(is_shared(group), [&, node = node, buffer = buffer] {
      each_element(group, [&](const Index& which, const Index&) {
        const VarId value = builder_.value(to_.graph[node].type.dtype, Load{buffer, which, {}});
        builder_.append(Store{shared_.at(node), shared_index(walk, group, which), value});
      });
    });
  }
}

RowLoops::BufferId RowLoops::own_array(NodeId node) {
  return builder_.buffer("h" + to_.graph.value_name(node).substr(1), to_.graph[node].type.dtype, Space::local,
                         vector(), true);
}

void RowLoops::unrolled_loop(const Walk& walk, const std::vector<Stage>& stages,
                             const std::vector<Running>& running) {
  const int pass = stages.front().pass;
  const Visit element = [&](const Index& trip, const Index& c) {
    to_.elements.enter_scope();
    const Coordinates at = to_.operand_coordinates(shape_, walk.row, c);
    keep_loaded(at, trip);
    for (const schedule::CachedValue& cached : to_.phase.cached) {
      const bool taken = cached.first < pass && pass <= cached.last;
      if (taken) to_.elements.keep(cached.node, at, local_.at(cached.node), trip);
    }
    visit(walk, stages, running, c, trip, trip % accumulators());
    for (const schedule::CachedValue& cached : to_.phase.cached) {
      if (cached.first != pass) continue;
      const VarId value = to_.elements.value(cached.node, at);
      builder_.at(cached.node);
      builder_.append(Store{local_.at(cached.node), trip, value});
    }
    to_.elements.leave_scope();
  };
  each_group(walk, [&](const Group& group) {
    builder_.when({group.inside}, [&] { each_element(group, element); });
  });
  if (!to_.phase.choices.packed) return;
  for (const schedule::CachedValue& cached : to_.phase.cached) {
    if (cached.first > pass || pass >= cached.last) continue;
    builder_.at(cached.node);
    builder_.append(KeepPacked{local_.at(cached.node)});
  }
}

void RowLoops::visit(const Walk& walk, const std::vector<Stage>& stages, const std::vector<Running>& running,
                     const Index& c, const Index& trip, const Index& which) {
  auto next = running.begin();
  for (const Stage& stage : stages) {
    if (stage.form == Stage::Form::outer_reduce) {
      const auto column = std::find_if(columns_.begin(), columns_.end(),
                                       [&](const Column& each) { return each.root == stage.root; });
      accumulate_column(*column, walk.row, c, trip);
    }
    if (stage.form == Stage::Form::element) store_element(stage.root, walk.row, c);
    if (stage.form == Stage::Form::inner_reduce) accumulate(*next++, walk.row, c, which);
  }
}

void RowLoops::compute_row_values(const Walk& walk, const std::vector<Stage>& stages) {
  if (combines_partials() || rows_side_by_side() > 1) return;
  const Coordinates at = to_.operand_coordinates(shape_, walk.row, 0);
  const std::vector<Dim> dims = to_.elements.dims(to_.graph[dominant_].operands[0]);
  std::vector<NodeId> work;
  std::unordered_set<NodeId> seen;
  for (const Stage& stage : stages) {
    if (!walks(stage.form)) continue;
    work.push_back(element_of(to_.graph, stage));
  }
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    if (!seen.insert(id).second || to_.elements.is_defined(id) || to_.elements.is_loaded(id)) continue;
    const ir::Node& node = to_.graph[id];
    if (same_for_row(node) && to_.elements.dims(id) == dims) {
      to_.elements.value(node.operands[0], to_.elements.broadcast_coordinates(node, at));
    } else {
      work.insert(work.end(), node.operands.begin(), node.operands.end());
    }
  }
}

bool RowLoops::same_for_row(const ir::Node& node) const {
  if (info(node.op).relation != ir::Relation::broadcast) return false;
  const std::vector<std::int64_t>& map = ir::attr<ir::DimsAttr>(node).dims;
  const std::vector<Dim>& operand = to_.graph[node.operands[0]].type.dims;
  if (node.type.dims.size() != shape_.is_reduced.size()) return false;
  for (std::size_t i = 0; i < operand.size(); ++i) {
    if (!operand[i].is(1) && shape_.is_reduced[static_cast<std::size_t>(map[i])]) return false;
  }
  return true;
}

Coordinates RowLoops::row_coordinates(NodeId node, const Index& row) const {
  return unflatten(row, to_.elements.dims(node));
}

void RowLoops::store_element(NodeId root, const Index& row, const Index& c) {
  const Coordinates at = to_.operand_coordinates(shape_, row, c);
  const VarId value = to_.elements.value(root, at);
  builder_.at(root);
  to_.store(root, flatten(at, to_.elements.dims(root)), value);
}

void RowLoops::accumulate(const Running& running, const Index& row, const Index& c, const Index& which) {
  std::vector<VarId> incoming;
  builder_.at(running.root());
  if (combines_partials()) {
    const std::size_t first = schedule::scratch_index(to_.graph, to_.phase.computes, running.root());
    const bool columns = has_columns(to_.phase.computes);
    const Index at = columns ? c * to_.results + row : row * to_.reduced + c;
    for (std::size_t i = first; i < first + running.state.size(); ++i) {
      incoming.push_back(builder_.value(to_.phase.scratch[i].dtype, Load{to_.scratch[i], at, {}}));
    }
  } else {
    incoming.push_back(to_.elements.value(
        element_of(to_.graph, running.stage),
        to_.operand_coordinates(schedule::loop_shape(to_.graph, to_.graph[running.root()]), row, c)));
    builder_.at(running.root());
    if (running.stage.maximum) {
      incoming.push_back(builder_.value(to_.graph[running.root()].type.dtype, Constant{1, 1}));
    } else if (builder_.kernel.reductions[running.reduction].state.size() == 2) {
      incoming.push_back(builder_.value(i64, IndexValue{c}));
    }
  }
  if (running.states.empty()) {
    builder_.append(Combine{running.reduction, running.state, incoming});
    return;
  }
  const std::vector<VarId> state =
      builder_.declare(running.reduction, "acc", load_state(running.states, which));
  builder_.append(Combine{running.reduction, state, incoming});
  for (std::size_t i = 0; i < state.size(); ++i) builder_.append(Store{running.states[i], which, state[i]});
}

void RowLoops::finish(const Walk& walk, const Running& running) {
  const Walk row = walk_of_row(walk, running.which);
  const VarId value = define_total(row, running);
  if (to_.outputs.contains(running.root())) store_row(row, running.root(), value);
}

VarId RowLoops::define_total(const Walk& walk, const Running& running) {
  builder_.at(running.root());
  VarId value = running.state.back();  // argmax is the position
  if (const auto maximum = running.stage.maximum) {
    to_.elements.define(*maximum, row_coordinates(*maximum, walk.row), running.state.front());
    // Below a maximum that is infinite a distance is NaN. With no elements, the only sum of 0, there is no
    // distance.
    const DType dtype = to_.graph[running.root()].type.dtype;
    const VarId distance = builder_.compute(ir::Op::sub, dtype, {running.state[0], running.state[0]});
    const VarId sum = builder_.compute(ir::Op::add, dtype, {value, distance});
    const VarId none = builder_.compute(ir::Op::eq, boolean, {value, builder_.value(dtype, Constant{})});
    value = builder_.compute(ir::Op::select, dtype, {none, value, sum});
  }
  to_.elements.define(running.root(), row_coordinates(running.root(), walk.row), value);
  return value;
}

void RowLoops::store_row(const Walk& walk, NodeId root, VarId value) {
  builder_.at(root);
  builder_.when(walk.writer, [&] { to_.store(root, walk.row, value); });
}

}  // namespace fuse::codegen
