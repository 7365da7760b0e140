// SPDX-License-Identifier: Apache-2.0
#include "schedule/choosers/tile_cost.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "schedule/choosers/segment_cost.hpp"

namespace fuse::schedule {
namespace {

double elements_of(const std::vector<std::int64_t>& extents) {
  double elements = 1;
  for (const std::int64_t extent : extents) elements *= static_cast<double>(extent);
  return elements;
}

}  // namespace

TileCost::TileCost(const ir::Graph& graph, const Segment& segment, HaloTiles tiles, const Target& target)
    : tiles_(std::move(tiles)), target_(target) {
  constexpr int costly = 8, usual = 2;
  const auto elements = [&](ir::NodeId id) {
    return static_cast<double>(product(graph[id].type.dims).hint());
  };
  const auto of_element = [&](ir::NodeId id) { return static_cast<double>(size_of(graph[id].type.dtype)); };
  for (std::size_t i = 0; i < tiles_.dims.size(); ++i) {
    if (!tiles_.dims[i].is(1)) innermost_ = i;
  }
  for (const ir::NodeId result : segment.results) results_ += elements(result) * of_element(result);
  for (const Phase& phase : segment.phases) {
    Load load{.elements = std::max(1.0, elements(phase.root)), .instructions = 1};
    for (const ir::NodeId input : phase.inputs) {
      if (std::binary_search(segment.inputs.begin(), segment.inputs.end(), input))
        load.inputs.push_back({elements(input) * of_element(input), of_element(input)});
    }
    for (const ir::NodeId result : phase.results) {
      if (!std::binary_search(segment.results.begin(), segment.results.end(), result))
        load.passed_on += static_cast<std::int64_t>(size_of(graph[result].type.dtype));
    }
    for (const ir::NodeId id : phase.nodes) {
      const bool is_costly = info(graph[id].op).has(ir::Trait::costly);
      load.instructions += is_costly ? costly : usual;
      load.costly += is_costly ? 1 : 0;
    }
    loads_.push_back(std::move(load));
  }
}

std::int64_t TileCost::shared_bytes(const std::vector<int>& tile) const {
  double bytes = 0;
  for (std::size_t i = 0; i < loads_.size(); ++i)
    bytes += static_cast<double>(loads_[i].passed_on) * elements_of(extents_of(tiles_.phases[i], tile));
  return static_cast<std::int64_t>(std::min(bytes, 0x1p58));
}

bool TileCost::repeats_little(const std::vector<int>& tile) const {
  constexpr double most_costly = 1.1, most = 2;
  double all = 0, costly = 0, all_needed = 0, costly_needed = 0;
  const double needed = elements_of({tile.begin(), tile.end()});
  for (std::size_t i = 0; i < loads_.size(); ++i) {
    const double computed = elements_of(extents_of(tiles_.phases[i], tile));
    all += loads_[i].instructions * computed;
    all_needed += loads_[i].instructions * needed;
    costly += loads_[i].costly * computed;
    costly_needed += loads_[i].costly * needed;
  }
  return all <= most * all_needed && costly <= most_costly * costly_needed;
}

double TileCost::seconds(const std::vector<int>& tile, int threads) const {
  constexpr int registers = 64;
  constexpr double sector = 32;
  double blocks = 1;
  for (std::size_t i = 0; i < tile.size(); ++i)
    blocks *= std::max(1.0, std::ceil(static_cast<double>(tiles_.dims[i].hint()) / tile[i]));
  const Residency residency{.blocks = static_cast<std::int64_t>(blocks),
                            .threads = threads,
                            .registers = registers,
                            .shared_bytes = shared_bytes(tile)};
  BlockWork work{.moved = results_};
  for (std::size_t i = 0; i < loads_.size(); ++i) {
    const Load& load = loads_[i];
    const std::vector<std::int64_t> extents = extents_of(tiles_.phases[i], tile);
    const double elements = elements_of(extents);
    // Memory moves whole sectors. What neighbours read, too, comes from the L2 cache.
    const double again = std::max(0.0, elements * blocks / load.elements - 1) / l2_speed;
    for (const Input& input : load.inputs) {
      const double of_run = static_cast<double>(extents[innermost_]) * input.of_element;
      work.moved += input.bytes * (1 + again) * std::ceil(of_run / sector) * sector / of_run;
    }
    work.operations += 2.0 * load.instructions * elements * blocks;
    work.stalls += BlockWork::turn * std::max(0.0, std::ceil(elements / threads) - 1);
    work.stalls += i > 0 ? BlockWork::wait : 0;
  }
  return seconds_of(work, residency, target_);
}

}  // namespace fuse::schedule
