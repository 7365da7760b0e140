// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <map>

#include "codegen_cuda/lower/row_loops.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::NodeId;

Turns RowLoops::beside_turns() {
  const schedule::PhaseSchedule& phase = to_.phase;
  Turns turns;
  if (phase.ahead.empty() && phase.invariants.empty() && phase.columns_once.empty()) return turns;
  for (const NodeId id : phase.ahead) {
    next_[id] = array_of_trips("next", id);
    current_[id] = array_of_trips("row", id);
  }
  for (const schedule::RowInvariant& each : phase.invariants)
    invariant_[each.input] = array_of_trips("same", each.input);
  turns.before = [this](const ThreadIndex& first) {
    compute_columns(first);
    load_invariants(first);
    if (!next_.empty()) load_next_row(first);
  };
  if (next_.empty()) return turns;
  turns.start = [this](const ThreadIndex& at, const std::optional<ThreadIndex>& next) {
    take_next_row(at);
    if (next) load_next_row(*next);
  };
  return turns;
}

BufferId RowLoops::array_of_trips(const std::string& name, NodeId value) {
  return builder_.buffer(name + '_' + to_.graph.value_name(value).substr(1), to_.graph[value].type.dtype,
                         Space::local, elements_per_thread_, true);
}

void RowLoops::compute_columns(const ThreadIndex& at) {
  if (to_.phase.columns_once.empty() || combines_partials()) return;
  std::map<NodeId, BufferId> arrays;
  for (const NodeId id : to_.phase.columns_once) {
    const std::vector<Dim> dims = to_.elements.dims(id);
    const Dim elements = product(dims);
    builder_.at(id);
    arrays[id] = builder_.buffer("s" + to_.graph.value_name(id).substr(1), to_.graph[id].type.dtype,
                                 Space::shared, product(to_.graph[id].type.dims).max(), true);
    const std::string name = builder_.unique("e");
    builder_.loop({.name = name,
                   .begin = at.warp * warp_size + at.lane,
                   .end = elements,
                   .step = to_.launch.block_threads,
                   .body = {}},
                  [&] {
                    to_.elements.enter_scope();
                    const Index element = Dim::index(name, elements);
                    const VarId value = to_.elements.value(id, unflatten(element, dims));
                    builder_.at(id);
                    builder_.append(Store{arrays.at(id), element, value});
                    to_.elements.leave_scope();
                  });
  }
  builder_.append(Barrier{});
  for (const auto& [id, array] : arrays) to_.elements.read_from(id, array);
}

void RowLoops::load_invariants(const ThreadIndex& at) {
  if (invariant_.empty()) return;
  to_.elements.enter_scope();
  each_group(walk_of(at), [&](const Group& group) {
    builder_.when({group.inside}, [&] {
      each_element(group, [&](const Index& trip, const Index& c) {
        to_.elements.enter_scope();
        const Coordinates first_row = to_.operand_coordinates(shape_, 0, c);
        for (const schedule::RowInvariant& each : to_.phase.invariants) {
          const VarId value = to_.elements.value(
              each.input, to_.elements.broadcast_coordinates(to_.graph[each.broadcast], first_row));
          builder_.append(Store{invariant_.at(each.input), trip, value});
        }
        to_.elements.leave_scope();
      });
    });
  });
  to_.elements.leave_scope();
  keep_packed(invariant_);
}

void RowLoops::keep_packed(const std::map<NodeId, BufferId>& arrays) {
  for (const auto& [id, array] : arrays) {
    const std::size_t element = size_of(to_.graph[id].type.dtype);
    if (element >= 4 || static_cast<std::size_t>(elements_per_thread_) * element % 4 != 0) continue;
    builder_.at(id);
    builder_.append(KeepPacked{array});
  }
}

void RowLoops::each_own_element(
    const ThreadIndex& at, const std::string& name,
    const std::function<void(const Index& row, const Index& trip, const Index& c)>& fill) {
  const Walk walk = walk_of(at);
  const Index row = to_.bind(builder_.unique(name), walk.row, rows());
  builder_.when({{row, rows()}}, [&] {
    each_group(walk, [&](const Group& group) {
      builder_.when({group.inside}, [&] {
        each_element(group, [&](const Index& trip, const Index& c) {
          to_.elements.enter_scope();
          fill(row, trip, c);
          to_.elements.leave_scope();
        });
      });
    });
  });
}

void RowLoops::load_next_row(const ThreadIndex& at) {
  each_own_element(at, "next_row", [&](const Index& row, const Index& trip, const Index& c) {
    const Coordinates position = to_.operand_coordinates(shape_, row, c);
    for (const auto& [id, array] : next_) {
      const VarId value = to_.elements.value(id, position);
      builder_.append(Store{array, trip, value});
    }
  });
}

void RowLoops::take_next_row(const ThreadIndex& at) {
  each_own_element(at, "this_row", [&](const Index&, const Index& trip, const Index&) {
    for (const auto& [id, array] : next_) {
      builder_.at(id);
      const VarId value = builder_.value(to_.graph[id].type.dtype, Load{array, trip, {}});
      builder_.append(Store{current_.at(id), trip, value});
    }
  });
}

void RowLoops::keep_loaded(const Coordinates& at, const Index& trip) {
  for (const auto& [id, array] : current_) to_.elements.keep(id, at, array, trip);
  for (const schedule::RowInvariant& each : to_.phase.invariants)
    to_.elements.keep(each.input, to_.elements.broadcast_coordinates(to_.graph[each.broadcast], at),
                      invariant_.at(each.input), trip);
}

}  // namespace fuse::codegen
