// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "codegen_cuda/lowering.hpp"
#include "schedule/shape.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::NodeId;
using schedule::KernelSchedule;
using schedule::Mapping;
using schedule::Stage;

namespace {

class RowLowering {
 public:
  explicit RowLowering(Lowering& to)
      : to_(to),
        builder_(to.builder),
        stages_(stages_of(to.graph, to.schedule.piece)),
        dominant_(schedule::dominant(to.graph, to.schedule.piece)),
        shape_(schedule::loop_shape(to.graph, to.graph[dominant_])),
        warps_(to.launch.block_threads / warp_size) {}

  void run() {
    for (const schedule::Held& held : to_.schedule.held) {
      const std::string name = "h" + to_.graph.value_name(held.node).substr(1);
      local_[held.node] =
          builder_.buffer(name, to_.graph[held.node].type.dtype, Space::local, to_.schedule.trips, true);
    }
    switch (to_.launch.mapping) {
      case Mapping::row_warp:
        return by_warp();
      case Mapping::column_tile:
        return by_tile();
      default:
        return by_block(to_.launch.mapping == Mapping::split ? to_.schedule.choices.parts : 1);
    }
  }

 private:
  /// What a thread does of a row.
  struct Walk {
    Index row{}, first{};
    Dim step{};
    std::vector<IndexLess> inside{};  ///< holds where the thread has a row
    std::vector<IndexLess> writer{};  ///< holds for one thread a row
    Index part{};                     ///< of a partial launch: where its scratch is
  };
  struct Running {
    NodeId root = 0;
    ReductionId reduction = 0;
    std::vector<VarId> state{};
  };
  /// Makes each state the row's total, in all threads that have the row.
  using Combiner = std::function<void(std::vector<Running>&)>;

  // A warp a row; its lanes walk it and combine by a butterfly.
  void by_warp() {
    const std::string block = builder_.unique("b"), warp = builder_.unique("warp"),
                      lane = builder_.unique("lane"), name = builder_.unique("row");
    to_.parallel(Parallel::grid, block, builder_.kernel.grid, [&] {
      to_.parallel(Parallel::warp, warp, warps_, [&] {
        to_.parallel(Parallel::lane, lane, warp_size, [&] {
          const Index row = to_.bind(
              name, Dim::index(block, builder_.kernel.grid) * warps_ + Dim::index(warp, warps_), to_.results);
          const Index l = Dim::index(lane, warp_size);
          builder_.when({{row, to_.results}}, [&] {
            passes({.row = row, .first = l, .step = warp_size, .writer = {{l, 1}}},
                   [&](std::vector<Running>& running) { combine_lanes(running); });
          });
        });
      });
    });
  }

  // A block a row, or `parts` blocks: each warp combines its lanes, then every warp combines the warps.
  void by_block(int parts) {
    const std::string block = builder_.unique(parts == 1 ? "row" : "b"), warp = builder_.unique("warp"),
                      lane = builder_.unique("lane");
    const int threads = to_.launch.block_threads;
    to_.parallel(Parallel::grid, block, builder_.kernel.grid, [&] {
      to_.parallel(Parallel::warp, warp, warps_, [&] {
        to_.parallel(Parallel::lane, lane, warp_size, [&] {
          const Index b = Dim::index(block, builder_.kernel.grid), w = Dim::index(warp, warps_),
                      l = Dim::index(lane, warp_size);
          passes({.row = b / parts,
                  .first = (b % parts) * threads + w * warp_size + l,
                  .step = threads * parts,
                  .writer = {{w, 1}, {l, 1}},
                  .part = b},
                 [&](std::vector<Running>& running) {
                   const auto shared = shared_states(running, warps_);
                   combine_lanes(running);
                   builder_.when({{l, 1}}, [&] { put(shared, w, running); });
                   builder_.append(Barrier{});
                   declare_totals(running);
                   builder_.when({{l, warps_}}, [&] { take(shared, Dim::index(lane, warps_), running); });
                   combine_lanes(running);
                 });
        });
      });
    });
  }

  // 32 rows side by side, a lane each; every warp walks every n-th element of them, then each adds up all
  // warps.
  void by_tile() {
    const std::string block = builder_.unique("b"), warp = builder_.unique("warp"),
                      lane = builder_.unique("lane"), name = builder_.unique("column");
    to_.parallel(Parallel::grid, block, builder_.kernel.grid, [&] {
      to_.parallel(Parallel::warp, warp, warps_, [&] {
        to_.parallel(Parallel::lane, lane, warp_size, [&] {
          const Index w = Dim::index(warp, warps_), l = Dim::index(lane, warp_size);
          const Index column =
              to_.bind(name, Dim::index(block, builder_.kernel.grid) * warp_size + l, to_.results);
          const std::vector<IndexLess> inside = {{column, to_.results}};
          passes({.row = column,
                  .first = w,
                  .step = warps_,
                  .inside = inside,
                  .writer = {{w, 1}, {column, to_.results}}},
                 [&](std::vector<Running>& running) {
                   const auto shared = shared_states(running, warps_ * warp_size);
                   put(shared, w * warp_size + l, running);
                   builder_.append(Barrier{});
                   declare_totals(running);
                   const std::string other = builder_.unique("w");
                   builder_.loop({.name = other, .begin = 0, .end = warps_, .body = {}},
                                 [&] { take(shared, Dim::index(other, warps_) * warp_size + l, running); });
                 });
        });
      });
    });
  }

  /// Each pass walks the row once; what it reduces, the next ones have.
  void passes(const Walk& walk, const Combiner& combine) {
    for (int pass = 0; pass <= stages_.back().pass; ++pass) {
      std::vector<Stage> stages;
      std::copy_if(stages_.begin(), stages_.end(), std::back_inserter(stages),
                   [&](const Stage& stage) { return stage.pass == pass; });
      std::vector<Running> running;
      for (const Stage& stage : stages) {
        if (stage.form == Stage::Form::reduce) running.push_back(declare(stage.root));
      }
      const auto fill = [&] { walk_row(walk, stages, running); };
      if (walk.inside.empty()) {
        fill();
      } else {
        to_.elements.enter_scope();
        builder_.when(walk.inside, fill);
        to_.elements.leave_scope();
      }
      if (running.empty()) continue;
      combine(running);
      for (const Running& each : running) finish(walk, each);
    }
  }

  Running declare(NodeId root) {
    builder_.at(root);
    const ReductionId reduction =
        builder_.reduction(to_.graph[root].op, to_.graph[to_.graph[root].operands[0]].type.dtype);
    return {root, reduction, builder_.declare(reduction, "acc")};
  }

  void walk_row(const Walk& walk, const std::vector<Stage>& stages, const std::vector<Running>& running) {
    bool loops = false;
    for (const Stage& stage : stages) {
      loops = loops || stage.form != Stage::Form::row;
      if (stage.form != Stage::Form::row) continue;
      const VarId value = to_.elements.value(stage.root, row_coordinates(stage.root, walk.row));
      store_row(walk, stage.root, value);
    }
    if (!loops) return;
    compute_row_values(walk, stages);
    to_.schedule.trips > 0 ? unrolled_loop(walk, stages, running) : plain_loop(walk, stages, running);
  }

  void plain_loop(const Walk& walk, const std::vector<Stage>& stages, const std::vector<Running>& running) {
    const std::string name = builder_.unique("c");
    builder_.loop({.name = name, .begin = walk.first, .end = to_.reduced, .step = walk.step, .body = {}},
                  [&] {
                    to_.elements.enter_scope();
                    visit(walk, stages, running, Dim::index(name, to_.reduced));
                    to_.elements.leave_scope();
                  });
  }

  /// Trip by trip, so that what is held has a number known to the compiler.
  void unrolled_loop(const Walk& walk, const std::vector<Stage>& stages,
                     const std::vector<Running>& running) {
    const int trips = to_.schedule.trips, pass = stages.front().pass;
    const std::string trip_name = builder_.unique("k");
    builder_.loop({.name = trip_name, .begin = 0, .end = trips, .unrolled = true, .body = {}}, [&] {
      const Index trip = Dim::index(trip_name, trips);
      const Index c = to_.bind(builder_.unique("c"), walk.first + trip * walk.step, to_.reduced);
      const auto fill = [&] {
        to_.elements.enter_scope();
        const Coordinates at = to_.operand_coordinates(dominant_, walk.row, c);
        for (const schedule::Held& held : to_.schedule.held) {
          const bool taken = held.first < pass && pass <= held.last;
          if (taken) to_.elements.keep(held.node, at, local_.at(held.node), trip);
        }
        visit(walk, stages, running, c);
        for (const schedule::Held& held : to_.schedule.held) {
          if (held.first != pass) continue;
          const VarId value = to_.elements.value(held.node, at);
          builder_.at(held.node);
          builder_.append(Store{local_.at(held.node), trip, value});
        }
        to_.elements.leave_scope();
      };
      walk.step* trips == to_.reduced ? fill() : builder_.when({{c, to_.reduced}}, fill);
    });
  }

  void visit(const Walk& walk, const std::vector<Stage>& stages, const std::vector<Running>& running,
             const Index& c) {
    auto next = running.begin();
    for (const Stage& stage : stages) {
      if (stage.form == Stage::Form::element) store_element(stage.root, walk.row, c);
      if (stage.form == Stage::Form::reduce) accumulate(*next++, walk.row, c);
    }
  }

  /// What the loop repeats for each element though it is the same for all of the row goes before it.
  void compute_row_values(const Walk& walk, const std::vector<Stage>& stages) {
    if (to_.launch.role == KernelSchedule::Role::combine) return;
    const Coordinates at = to_.operand_coordinates(dominant_, walk.row, 0);
    const std::vector<Dim> dims = to_.elements.dims(to_.graph[dominant_].operands[0]);
    std::vector<NodeId> work;
    std::unordered_set<NodeId> seen;
    for (const Stage& stage : stages) {
      if (stage.form == Stage::Form::element) work.push_back(stage.root);
      if (stage.form == Stage::Form::reduce) work.push_back(to_.graph[stage.root].operands[0]);
    }
    while (!work.empty()) {
      const NodeId id = work.back();
      work.pop_back();
      if (!seen.insert(id).second || to_.elements.is_held(id) || to_.elements.is_loaded(id)) continue;
      const ir::Node& node = to_.graph[id];
      if (same_for_row(node) && to_.elements.dims(id) == dims) {
        to_.elements.value(node.operands[0], to_.elements.broadcast_coordinates(node, at));
      } else {
        work.insert(work.end(), node.operands.begin(), node.operands.end());
      }
    }
  }

  /// A broadcast that repeats along all dims that are reduced.
  bool same_for_row(const ir::Node& node) const {
    if (info(node.op).relation != ir::Relation::broadcast) return false;
    const std::vector<std::int64_t>& map = ir::attr<ir::DimsAttr>(node).dims;
    const std::vector<Dim>& operand = to_.graph[node.operands[0]].type.dims;
    if (node.type.dims.size() != shape_.is_reduced.size()) return false;
    for (std::size_t i = 0; i < operand.size(); ++i) {
      if (!operand[i].is(1) && shape_.is_reduced[static_cast<std::size_t>(map[i])]) return false;
    }
    return true;
  }

  Coordinates row_coordinates(NodeId node, const Index& row) const {
    return unflatten(row, to_.elements.dims(node));
  }

  void store_element(NodeId root, const Index& row, const Index& c) {
    const Coordinates at = to_.operand_coordinates(dominant_, row, c);
    const VarId value = to_.elements.value(root, at);
    builder_.at(root);
    builder_.append(Store{to_.outputs.at(root), flatten(at, to_.elements.dims(root)), value});
  }

  /// state = combine(state, element c of the row)
  void accumulate(const Running& running, const Index& row, const Index& c) {
    std::vector<VarId> incoming;
    builder_.at(running.root);
    if (to_.launch.role == KernelSchedule::Role::combine) {
      for (std::size_t i = 0; i < to_.scratch.size(); ++i) {
        incoming.push_back(
            builder_.value(to_.schedule.scratch[i], Load{to_.scratch[i], row * to_.reduced + c, {}}));
      }
    } else {
      incoming.push_back(to_.elements.value(to_.graph[running.root].operands[0],
                                            to_.operand_coordinates(running.root, row, c)));
      builder_.at(running.root);
      if (running.state.size() == 2) incoming.push_back(builder_.value(i64, IndexValue{c}));
    }
    builder_.append(Combine{running.reduction, running.state, incoming});
  }

  void finish(const Walk& walk, const Running& running) {
    builder_.at(running.root);
    if (to_.launch.role == KernelSchedule::Role::partial) {
      builder_.when(walk.writer, [&] {
        for (std::size_t i = 0; i < to_.scratch.size(); ++i) {
          builder_.append(Store{to_.scratch[i], walk.part, running.state[i]});
        }
      });
      return;
    }
    const VarId value = running.state.back();  // argmax is the position
    to_.elements.hold(running.root, row_coordinates(running.root, walk.row), value);
    if (to_.outputs.contains(running.root)) store_row(walk, running.root, value);
  }

  void store_row(const Walk& walk, NodeId root, VarId value) {
    builder_.at(root);
    builder_.when(walk.writer, [&] { builder_.append(Store{to_.outputs.at(root), walk.row, value}); });
  }

  void combine_lanes(const std::vector<Running>& running) {
    for (const Running& each : running) {
      builder_.at(each.root);
      builder_.append(WarpCombine{each.reduction, each.state});
    }
  }

  void declare_totals(std::vector<Running>& running) {
    for (Running& each : running) {
      builder_.at(each.root);
      each.state = builder_.declare(each.reduction, "total");
    }
  }

  using SharedState = std::vector<BufferId>;

  std::vector<SharedState> shared_states(const std::vector<Running>& running, int elements) {
    std::vector<SharedState> result;
    for (const Running& each : running) {
      SharedState shared;
      for (const DType dtype : builder_.kernel.reductions[each.reduction].state) {
        const char* name = shared.empty() ? "shared_acc" : "shared_index";
        shared.push_back(builder_.buffer(name, dtype, Space::shared, elements, true));
      }
      result.push_back(std::move(shared));
    }
    return result;
  }

  void put(const std::vector<SharedState>& shared, const Index& at, const std::vector<Running>& running) {
    for (std::size_t i = 0; i < running.size(); ++i) {
      builder_.at(running[i].root);
      for (std::size_t k = 0; k < shared[i].size(); ++k) {
        builder_.append(Store{shared[i][k], at, running[i].state[k]});
      }
    }
  }

  void take(const std::vector<SharedState>& shared, const Index& at, const std::vector<Running>& running) {
    for (std::size_t i = 0; i < running.size(); ++i) {
      builder_.at(running[i].root);
      std::vector<VarId> incoming;
      for (const BufferId buffer : shared[i]) {
        incoming.push_back(builder_.value(builder_.kernel.buffers[buffer].dtype, Load{buffer, at, {}}));
      }
      builder_.append(Combine{running[i].reduction, running[i].state, incoming});
    }
  }

  Lowering& to_;
  KernelBuilder& builder_;
  const std::vector<Stage> stages_;
  const NodeId dominant_;
  const schedule::LoopShape shape_;
  const int warps_;
  std::map<NodeId, BufferId> local_{};  // of what is held
};

}  // namespace

void lower_rows(Lowering& to) { RowLowering(to).run(); }

}  // namespace fuse::codegen
