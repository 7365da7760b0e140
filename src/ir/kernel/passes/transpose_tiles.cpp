// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/transpose_tiles.hpp"

#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "ir/kernel/visit.hpp"

namespace fuse::kernel {
namespace {

/// An access of one element of a buffer.
struct Access {
  BufferId buffer = 0;
  Index* index = nullptr;
  bool writes = false;
};

std::optional<Access> access_of(Stmt& stmt) {
  if (auto* store = std::get_if<Store>(&stmt.node)) return Access{store->buffer, &store->index, true};
  auto* const let = std::get_if<Let>(&stmt.node);
  auto* const load = let ? std::get_if<Load>(&let->rhs) : nullptr;
  if (!load || load->rank) return std::nullopt;
  return Access{load->buffer, &load->index, false};
}

/// What a kernel does with an array.
struct TileUse {
  int loads = 0;
  std::optional<std::int64_t> pitch{};
  bool fits = true;  ///< all accesses write a row of the tile or read a column, and have the same pitch
};

class TileTransposer {
 public:
  explicit TileTransposer(Kernel& kernel) : kernel_(kernel) {
    for_each_stmt(kernel.body, [&](Stmt& stmt) {
      const auto* loop = std::get_if<For>(&stmt.node);
      if (loop && (loop->parallel == Parallel::lane || loop->parallel == Parallel::block)) lane_ = loop->name;
      for_each_access(stmt, [&](BufferId buffer, bool writes) {
        if (kernel.buffers[buffer].space == Space::shared) note(uses_[buffer], stmt, writes);
      });
    });
  }

  void run() {
    insert(kernel_.body);
    for_each_stmt(kernel_.body, [&](Stmt& stmt) {
      const std::optional<Access> access = access_of(stmt);
      if (!access || !turned_.contains(access->buffer)) return;
      const Index first = at_lane(*access->index, 0);
      const Index row = access->writes ? first / *uses_.at(access->buffer).pitch : first;
      *access->index = Dim::index(lane_, tile_side) + row * tile_side;
    });
    for (const BufferId buffer : turned_) kernel_.buffers[buffer].elements = tile_side * tile_side;
  }

 private:
  Index at_lane(const Index& index, const Dim& lane) const {
    return index.substitute([&](std::string_view name) { return name == lane_ ? &lane : nullptr; });
  }

  /// The distance of the rows that an access goes by; none where it is not of a row or a column.
  std::optional<std::int64_t> pitch_of(const Access& access, const Buffer& tile) const {
    const Index first = at_lane(*access.index, 0), step = at_lane(*access.index, 1) - first;
    const bool steady = *access.index - first == step * Dim::index(lane_, tile_side);
    if (!steady || !tile.elements.is_constant()) return std::nullopt;
    const std::int64_t pitch = tile.elements.constant() / tile_side;
    if (pitch < tile_side || !tile.elements.is(tile_side * pitch)) return std::nullopt;
    if (access.writes && !(step.is(1) && (first % pitch).is(0))) return std::nullopt;
    if (!access.writes && !step.is(pitch)) return std::nullopt;
    const Index row = access.writes ? first / pitch : first;
    if (row.min() < 0 || row.max() >= tile_side) return std::nullopt;
    return pitch;
  }

  void note(TileUse& use, Stmt& stmt, bool writes) const {
    const std::optional<Access> access = access_of(stmt);
    const std::optional<std::int64_t> pitch =
        access ? pitch_of(*access, kernel_.buffers[access->buffer]) : std::nullopt;
    use.fits = use.fits && pitch;
    if (pitch) use.pitch = pitch;
    use.loads += writes ? 0 : 1;
  }

  int loads_in(std::vector<Stmt>& statements, std::size_t first, BufferId buffer) const {
    int loads = 0;
    std::vector<Stmt> rest(statements.begin() + static_cast<std::ptrdiff_t>(first), statements.end());
    for_each_stmt(rest, [&](Stmt& stmt) {
      const std::optional<Access> access = access_of(stmt);
      loads += access && access->buffer == buffer ? (access->writes ? -1 : 1) : 0;
    });
    return loads;
  }

  /// Behind each barrier, transposes of the tiles whose loads all follow it, and whose stores do not.
  void insert(std::vector<Stmt>& statements) {
    for (std::size_t i = 0; i < statements.size(); ++i) {
      if (std::vector<Stmt>* inner = body_of(statements[i])) insert(*inner);
      if (!std::holds_alternative<Barrier>(statements[i].node)) continue;
      const Origin origin = statements[i].origin;
      std::vector<Stmt> transposes;
      for (const auto& [buffer, use] : uses_) {
        if (!use.fits || use.loads == 0 || loads_in(statements, i + 1, buffer) != use.loads) continue;
        if (!turned_.insert(buffer).second) continue;
        transposes.push_back({TransposeTile{buffer}, origin});
      }
      if (transposes.empty()) continue;
      transposes.push_back({Barrier{}, origin});
      const std::size_t count = transposes.size();
      statements.insert(statements.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                        std::make_move_iterator(transposes.begin()),
                        std::make_move_iterator(transposes.end()));
      i += count;
    }
  }

  Kernel& kernel_;
  std::string lane_{};
  std::map<BufferId, TileUse> uses_{};
  std::set<BufferId> turned_{};
};

}  // namespace

Kernel transpose_tiles(Kernel kernel) {
  if (kernel.block_threads == tile_side) TileTransposer(kernel).run();
  return kernel;
}

}  // namespace fuse::kernel
