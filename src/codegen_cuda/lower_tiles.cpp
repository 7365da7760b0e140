// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/lowering.hpp"
#include "schedule/transposed.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::NodeId;
using schedule::tile_pitch;
using schedule::tile_side;

namespace {

class TileLowering {
 public:
  explicit TileLowering(Lowering& to)
      : to_(to),
        builder_(to.builder),
        values_(schedule::transposed(to.graph, to.phase.segment).value()),
        dims_(to.elements.dims(to.root())),
        warps_(to.launch.block_threads / warp_size) {}

  void run() {
    for (const NodeId id : values_.nodes) {
      tiles_.push_back(builder_.buffer("tile", to_.graph[id].type.dtype, Space::shared,
                                       std::int64_t{tile_side} * tile_pitch, true));
    }
    to_.threads(builder_.unique("b"), [&](const ThreadIndex& at) {
      const Coordinates tile = unflatten(at.block, schedule::tile_dims(dims_, values_));
      // Lanes along the memory of what is transposed, then along the results'.
      each_element(
          tile, at, [&](const Index& row) { return std::pair(at.lane, row); },
          [&](const Index& row, const Coordinates& element) { fill(at.lane, row, element); });
      builder_.at(to_.root());
      builder_.append(Barrier{});
      each_element(
          tile, at, [&](const Index& row) { return std::pair(row, at.lane); },
          [&](const Index& row, const Coordinates& element) { store(row, at.lane, element); });
    });
  }

 private:
  /// `place`: for the warp's row of the tile, where in it the element lies along both dims.
  template <class Place, class Visit>
  void each_element(const Coordinates& tile, const ThreadIndex& at, const Place& place, const Visit& visit) {
    const std::string row = builder_.unique("r");
    builder_.loop({.name = row, .begin = at.warp, .end = tile_side, .step = warps_, .body = {}}, [&] {
      const Index number = Dim::index(row, tile_side);
      const auto [along, inner] = place(number);
      to_.elements.enter_scope();
      Coordinates element = tile;
      std::vector<IndexLess> inside;
      for (const auto& [dim, offset] : {std::pair(values_.along, along), std::pair(values_.inner, inner)}) {
        element[dim] = to_.bind(builder_.unique("c"), tile[dim] * tile_side + offset, dims_[dim]);
        inside.push_back({element[dim], dims_[dim]});
      }
      builder_.when(inside, [&] { visit(number, element); });
      to_.elements.leave_scope();
    });
  }

  static Index place_in_tile(const Index& along, const Index& inner) { return inner * tile_pitch + along; }

  void fill(const Index& along, const Index& inner, const Coordinates& element) {
    for (std::size_t i = 0; i < tiles_.size(); ++i) {
      const VarId value = to_.elements.value(values_.nodes[i], element);
      builder_.at(values_.nodes[i]);
      builder_.append(Store{tiles_[i], place_in_tile(along, inner), value});
    }
  }

  void store(const Index& along, const Index& inner, const Coordinates& element) {
    for (std::size_t i = 0; i < tiles_.size(); ++i)
      to_.elements.keep(values_.nodes[i], element, tiles_[i], place_in_tile(along, inner));
    for (const schedule::Stage& stage : to_.phase.segment.stages) {
      const VarId value = to_.elements.value(stage.root, element);
      builder_.at(stage.root);
      builder_.append(Store{to_.outputs.at(stage.root), flatten(element, dims_), value});
    }
  }

  Lowering& to_;
  KernelBuilder& builder_;
  const schedule::Transposed values_;
  const std::vector<Dim> dims_;
  const int warps_;
  std::vector<BufferId> tiles_;
};

}  // namespace

void lower_tiles(Lowering& to) { TileLowering(to).run(); }

}  // namespace fuse::codegen
