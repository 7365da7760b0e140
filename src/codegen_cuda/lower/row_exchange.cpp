// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "codegen_cuda/lower/row_loops.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using schedule::Level;

void RowLoops::combine_lanes(const std::vector<Running>& running, int lanes, int stride) {
  for (const Running& each : running) {
    builder_.at(each.root());
    builder_.append(WarpCombine{each.reduction, each.state, lanes, stride});
  }
}

RowLoops::Takers RowLoops::lanes_of_value(const ThreadIndex& at) const {
  return {.first = unit_of(nest_, walked(), Level::lane, at),
          .count = units_of(nest_, walked(), Level::lane),
          .stride = lane_stride(nest_, walked())};
}

void RowLoops::combine(const ThreadIndex& at, std::vector<Running>& running) {
  if (units_of(nest_, walked(), Level::warp) > 1)
    return values() == 1 ? combine_block(at, running) : combine_values(at, running);
  const Takers lanes = lanes_of_value(at);
  if (lanes.count > 1) combine_lanes(running, lanes.count, lanes.stride);
}

void RowLoops::combine_block(const ThreadIndex& at, std::vector<Running>& running) {
  const auto shared = shared_states(running, warps_);
  combine_lanes(running);
  builder_.when({{at.lane, 1}}, [&] { put(shared, at.warp, running); });
  builder_.append(Barrier{});
  // Neighbouring lanes take the states of all warps, so that a few steps combine them.
  const int lanes = static_cast<int>(std::bit_ceil(static_cast<unsigned>(warps_)));
  const LoadPartial load = [&](std::size_t i, const Index& warp) { return load_state(shared[i], warp); };
  if (lanes == warps_) {
    for (std::size_t i = 0; i < running.size(); ++i) {
      builder_.at(running[i].root());
      running[i].state = builder_.declare(running[i].reduction, "total", load(i, at.lane % lanes));
    }
  } else {
    declare_totals(running);
    const Index warp = to_.bind(builder_.unique("w"), at.lane % lanes, lanes);
    builder_.when({{warp, warps_}}, [&] { take(running, load, warp); });
  }
  combine_lanes(running, lanes);
}

void RowLoops::combine_values(const ThreadIndex& at, std::vector<Running>& running) {
  const int warps = units_of(nest_, walked(), Level::warp);
  const auto shared = shared_states(running, warps * values());
  const Index warp = unit_of(nest_, walked(), Level::warp, at),
              slot = position_of(nest_, kept(), at).in_block;
  const Takers lanes = lanes_of_value(at);
  if (lanes.count == 1) {
    put(shared, warp * values() + slot, running);
  } else if (lanes.stride > 1) {
    // The first lanes have a value each.
    combine_lanes(running, lanes.count, lanes.stride);
    schedule::Nest leaders = nest_;
    std::erase_if(leaders.splits, [&](const schedule::Split& split) {
      return split.dim == walked() && split.level == Level::lane;
    });
    const Index own = position_of(leaders, kept(), at).in_block;
    builder_.when({{at.lane, lanes.stride}}, [&] { put(shared, warp * values() + own, running); });
  } else {
    combine_lanes(running, lanes.count);
    builder_.when({{lanes.first, 1}}, [&] { put(shared, warp * values() + slot, running); });
  }
  builder_.append(Barrier{});
  declare_totals(running);
  // Neighbours take the partial results in turns; lanes that have a value each take all of them.
  const Takers takers = lanes.stride == 1 ? lanes : Takers{};
  take_in_turns(running, "w", warps, takers, of_value(shared, slot, values()));
}

void RowLoops::take_in_turns(const std::vector<Running>& running, const char* name, int parts,
                             const Takers& takers, const LoadPartial& load) {
  take_own(running, name, parts, takers, load);
  if (takers.count > 1) combine_lanes(running, takers.count, takers.stride);
}

void RowLoops::take_own(const std::vector<Running>& running, const char* name, int parts,
                        const Takers& takers, const LoadPartial& load) {
  const std::string part = builder_.unique(name);
  builder_.when(takers.inside, [&] {
    builder_.loop({.name = part, .begin = takers.first, .end = parts, .step = takers.count, .body = {}},
                  [&] { take(running, load, Dim::index(part, parts)); });
  });
}

void RowLoops::take_partials_of_blocks(const ThreadIndex& at, const Walk& walk, std::vector<Running>& running,
                                       const LoadPartial& load) {
  Takers takers = lanes_of_value(at);
  takers.inside = walk.inside;
  std::vector<IndexLess> here = walk.present;
  here.insert(here.end(), walk.takes.begin(), walk.takes.end());
  if (!schedule::warps_take_partials(to_.phase.choices))
    return builder_.when(here, [&] { take_in_turns(running, "p", blocks_per_row(), takers, load); });
  takers.first = position_of(nest_, walked(), at).in_block;
  takers.count *= units_of(nest_, walked(), Level::warp);
  builder_.when(here, [&] { take_own(running, "p", blocks_per_row(), takers, load); });
  combine(at, running);
}

void RowLoops::take(const std::vector<Running>& running, const LoadPartial& load, const Index& part) {
  for (std::size_t i = 0; i < running.size(); ++i) {
    builder_.at(running[i].root());
    builder_.append(Combine{running[i].reduction, running[i].state, load(i, part)});
  }
}

RowLoops::LoadPartial RowLoops::of_value(const std::vector<StateBuffers>& shared, const Index& slot,
                                         int values) {
  return [this, &shared, slot, values](std::size_t i, const Index& part) {
    return load_state(shared[i], part * values + slot);
  };
}

void RowLoops::declare_totals(std::vector<Running>& running) {
  for (Running& each : running) {
    builder_.at(each.root());
    each.state = builder_.declare(each.reduction, "total");
  }
}

std::vector<RowLoops::StateBuffers> RowLoops::shared_states(const std::vector<Running>& running,
                                                            int elements) {
  std::vector<StateBuffers> result;
  for (const Running& each : running) {
    StateBuffers shared;
    for (const DType dtype : builder_.kernel.reductions[each.reduction].state) {
      const std::string name = builder_.component("shared_acc", each.reduction, shared.size());
      shared.push_back(builder_.buffer(name, dtype, Space::shared, elements, true));
    }
    result.push_back(std::move(shared));
  }
  return result;
}

RowLoops::StateBuffers RowLoops::scratch_state(const Running& running) const {
  const auto first = to_.scratch.begin() + static_cast<std::ptrdiff_t>(schedule::scratch_index(
                                               to_.graph, to_.phase.computes, running.root()));
  return {first, first + static_cast<std::ptrdiff_t>(running.state.size())};
}

void RowLoops::put(const std::vector<StateBuffers>& buffers, const Index& at,
                   const std::vector<Running>& running) {
  for (std::size_t i = 0; i < running.size(); ++i) put(buffers[i], at, running[i]);
}

void RowLoops::put(const StateBuffers& buffers, const Index& at, const Running& running) {
  builder_.at(running.root());
  for (std::size_t k = 0; k < buffers.size(); ++k) builder_.append(Store{buffers[k], at, running.state[k]});
}

std::vector<VarId> RowLoops::load_state(const StateBuffers& buffers, const Index& at,
                                        const std::optional<Index>& rank) {
  std::vector<VarId> state;
  for (const BufferId buffer : buffers)
    state.push_back(builder_.value(builder_.kernel.buffers[buffer].dtype, Load{buffer, at, {}, rank}));
  return state;
}

}  // namespace fuse::codegen
