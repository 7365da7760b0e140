// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "codegen_cuda/lower/lowering_context.hpp"
#include "schedule/segments/transposed.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::NodeId;

namespace {

class TileLowering {
 public:
  explicit TileLowering(Lowering& to)
      : to_(to),
        builder_(to.builder),
        values_(schedule::transposed(to.graph, to.phase.computes).value()),
        dims_(to.elements.dims(to.root())),
        warps_(to.launch.block_threads / warp_size),
        side_(schedule::tile_side(to.launch.vector)),
        pitch_(schedule::tile_pitch(to.launch.vector)) {}

  void run() {
    for (const NodeId id : values_.nodes) {
      tiles_.push_back(builder_.buffer("tile", to_.graph[id].type.dtype, Space::shared,
                                       std::int64_t{side_} * pitch_, true));
    }
    to_.threads(builder_.unique("b"), [&](const ThreadIndex& at) {
      const Coordinates tile = tile_of(at.block);
      // Lanes along the memory of what is transposed, then along the results'.
      each_element(tile, at, values_.inner, values_.along,
                   [&](const Index& row, const Index& lane, const Coordinates& element) {
                     fill(index_in_tile(lane, row), element);
                   });
      builder_.at(to_.root());
      builder_.append(Barrier{});
      each_element(tile, at, values_.along, values_.inner,
                   [&](const Index& row, const Index& lane, const Coordinates& element) {
                     store(index_in_tile(row, lane), element);
                   });
    });
  }

 private:
  /// The tile of a block. Neighbouring blocks have tiles side by side along the results' memory; blocks of
  /// one warp, as a CPU runs them one after another, along the memory of what is transposed.
  Coordinates tile_of(const Index& block) const {
    std::vector<Dim> dims = schedule::tile_dims(dims_, values_, to_.launch.vector);
    if (warps_ > 1) return unflatten(block, dims);
    std::swap(dims[values_.along], dims[values_.inner]);
    Coordinates tile = unflatten(block, dims);
    std::swap(tile[values_.along], tile[values_.inner]);
    return tile;
  }

  /// The rows of the tile lie along one dim, and along the other the lanes, which have elements side by side.
  /// `visit` gets an element's position in the tile along both, and in the results.
  template <class Visit>
  void each_element(const Coordinates& tile, const ThreadIndex& at, std::size_t down, std::size_t lanes,
                    const Visit& visit) {
    const int rounds =
        (side_ + warps_ - 1) / warps_;  // known to the compiler, which begins all loads before it waits
    const std::string round = builder_.unique("r");
    builder_.loop({.name = round, .begin = 0, .end = rounds, .unrolled = true, .body = {}}, [&] {
      const Index row = Dim::index(round, rounds) * warps_ + at.warp;
      to_.elements.enter_scope();
      const Dim groups = ceil_div(dims_[lanes], to_.launch.vector);
      Coordinates element = tile;
      element[down] = to_.bind(builder_.unique("c"), tile[down] * side_ + row, dims_[down]);
      const Index group = to_.bind(builder_.unique("g"), tile[lanes] * warp_size + at.lane, groups);
      std::vector<IndexLess> inside = {{element[down], dims_[down]}, {group, groups}};
      if (side_ % warps_ != 0) inside.push_back({row, side_});
      builder_.when(inside, [&] {
        to_.side_by_side(group, [&](const Index& which, const Index& c) {
          element[lanes] = c;
          visit(row, at.lane * to_.launch.vector + which, element);
        });
      });
      to_.elements.leave_scope();
    });
  }

  Index index_in_tile(const Index& along, const Index& inner) const { return inner * pitch_ + along; }

  void fill(const Index& index, const Coordinates& element) {
    for (std::size_t i = 0; i < tiles_.size(); ++i) {
      const VarId value = to_.elements.value(values_.nodes[i], element);
      builder_.at(values_.nodes[i]);
      builder_.append(Store{tiles_[i], index, value});
    }
  }

  void store(const Index& index, const Coordinates& element) {
    for (std::size_t i = 0; i < tiles_.size(); ++i)
      to_.elements.keep(values_.nodes[i], element, tiles_[i], index);
    for (const schedule::Stage& stage : to_.phase.computes.stages) {
      const VarId value = to_.elements.value(stage.root, element);
      builder_.at(stage.root);
      builder_.append(Store{to_.outputs.at(stage.root), flatten(element, dims_), value});
    }
  }

  Lowering& to_;
  KernelBuilder& builder_;
  const schedule::Transposed values_;
  const std::vector<Dim> dims_;
  const int warps_, side_, pitch_;
  std::vector<BufferId> tiles_;
};

}  // namespace

void lower_tiles(Lowering& to) { TileLowering(to).run(); }

}  // namespace fuse::codegen
