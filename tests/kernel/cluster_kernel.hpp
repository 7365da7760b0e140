// A kernel of clusters, built by hand: every block adds up what all blocks of its cluster loaded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "ir/kernel/kernel.hpp"
#include "kernel/sum_reduction.hpp"

namespace fuse::test {

/// y[64 b + t] = the sum over the blocks of b's cluster of x[64 block + t], by way of their shared memory.
struct ClusterSum {
  enum : kernel::VarId { left, right, combined, v, acc, part };
  enum : kernel::BufferId { x, y, tile };
  /// Of the statements for a thread.
  enum : std::size_t { load, put, before, declare, add, store, behind };

  int cluster;
  kernel::Kernel kernel{};
  kernel::Index b, t = Dim::index("t", 64), r;
  std::vector<kernel::Stmt> body{};  ///< of a thread
  kernel::Index index = t, rank;     ///< of what is read of another block

  ClusterSum(int blocks_of_cluster, int clusters)
      : cluster(blocks_of_cluster),
        b(Dim::index("b", blocks_of_cluster * clusters)),
        r(Dim::index("r", blocks_of_cluster)),
        rank(r) {
    using namespace fuse::kernel;  // NOLINT
    kernel.name = "cluster_sum";
    kernel.block_threads = 64;
    kernel.cluster = cluster;
    kernel.grid = cluster * clusters;
    kernel.index_type = i32;
    const Dim elements = 64 * kernel.grid;
    kernel.buffers = {{"x", i32, Space::global, elements, false},
                      {"y", i32, Space::global, elements, true},
                      {"tile", i32, Space::shared, 64, true}};
    kernel.vars = {{"left", i32}, {"right", i32}, {"combined", i32}, {"v", i32}, {"acc", i32}, {"part", i32}};
    kernel.reductions = {sum_reduction(i32, left, right, combined)};
    body = {{Let{v, Load{x, 64 * b + t, {}}}, {"%1 load", "", ""}},
            {Store{tile, t, v}, {"%2 put", "sum", ""}},
            {ClusterBarrier{}, {"%2 put", "sum", ""}},
            {Declare{0, {acc}}, {"%3 reduce_sum", "sum", ""}},
            {For{.name = "r", .begin = 0, .end = cluster, .body = {}}, {}},
            {Store{y, 64 * b + t, acc}, {"%4 store", "", ""}},
            {ClusterBarrier{}, {"%5 leave", "", ""}}};
  }

  /// The first barrier is of shared memory alone, and threads arrive for the last one before they store.
  ClusterSum&& split() && {
    using namespace fuse::kernel;  // NOLINT
    body[before].node = ClusterBarrier{.shared = true};
    body[behind].node = ClusterWait{};
    body.insert(body.begin() + store, Stmt{ClusterArrive{}, {"%3 reduce_sum", "sum", ""}});
    return std::move(*this);
  }
  enum : std::size_t { split_arrive = store, split_wait = behind + 1 };

  kernel::Kernel made() const {
    using namespace fuse::kernel;  // NOLINT
    std::vector<Stmt> thread = body;
    for (Stmt& stmt : thread) {
      auto* const loop = std::get_if<For>(&stmt.node);
      if (!loop || loop->name != "r") continue;
      loop->body = {{Let{part, Load{tile, index, {}, rank}}, {"%3 reduce_sum", "sum", ""}},
                    {Combine{0, {acc}, {part}}, {"%3 reduce_sum", "sum", ""}}};
    }
    Kernel whole = kernel;
    std::vector<Stmt> block;
    block.push_back({loop_of("t", 64, Parallel::block, std::move(thread)), {}});
    whole.body.push_back({loop_of("b", kernel.grid, Parallel::grid, std::move(block)), {}});
    return whole;
  }

  /// Statement `at` only where the condition holds.
  void guard(std::size_t at, const kernel::IndexLess& condition) {
    std::vector<kernel::Stmt> inner = {body[at]};
    body[at] = {kernel::If{{condition}, std::move(inner)}, {}};
  }
  void remove(std::size_t at) { body.erase(body.begin() + static_cast<std::ptrdiff_t>(at)); }

 private:
  static kernel::For loop_of(const char* name, const Dim& end, kernel::Parallel parallel,
                             std::vector<kernel::Stmt> body) {
    return {.name = name, .begin = 0, .end = end, .parallel = parallel, .body = std::move(body)};
  }
};

}  // namespace fuse::test
