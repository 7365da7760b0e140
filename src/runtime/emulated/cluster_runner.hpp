// The blocks of one cluster, beside each other: they run in turns on one OS thread at a time, from one
// barrier to the next, and may look into each other's shared memory. Without clusters it is one block.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/emulated/lender.hpp"
#include "runtime/emulated/runner.hpp"

namespace fuse::runtime::emulated {

class ClusterRunner {
 public:
  /// Runs clusters of so many blocks. Throws what making a runner throws.
  ClusterRunner(Lender<Runner>& lender, std::uint64_t blocks);
  ~ClusterRunner();
  ClusterRunner(const ClusterRunner&) = delete;
  ClusterRunner& operator=(const ClusterRunner&) = delete;

  /// Runs until all blocks have ended or wait in one grid barrier, or one has failed; resume only from a grid
  /// barrier. These do not throw.
  using Stop = Runner::Stop;
  Stop start(Launch& launch, std::uint64_t cluster) noexcept;
  Stop resume() noexcept;
  /// Goes on, without clusters, from a barrier of a group of so many blocks, which begins this epoch in all
  /// of them.
  Stop resume(std::uint32_t epoch, std::uint64_t blocks) noexcept;
  /// Gives up blocks that wait.
  void leave() noexcept;

  WaitPoint waits() const { return runners_[0]->waits(); }
  /// The counter of the grid barrier that they wait in.
  int* counter() const { return runners_[0]->counter(); }
  std::uint64_t group() const { return runners_[0]->group(); }
  std::uint32_t epoch() const { return runners_[0]->epoch(); }

 private:
  Stop advance() noexcept;
  bool meet(Stop& stop) noexcept;
  void pass_barrier(bool shared_only) noexcept;
  void judge_end() noexcept;
  void shuffle() noexcept;
  Stop stopped(Stop stop) noexcept;

  Lender<Runner>& lender_;
  std::vector<std::unique_ptr<Runner>> runners_;  // the runners by rank
  std::vector<Stop> stops_;
  std::vector<std::size_t> order_;
  Launch* launch_ = nullptr;
  std::uint64_t random_ = 0;
  std::int64_t barriers_ = 0;
};

/// Takes clusters from the launch until none is left or it failed. Does not throw.
void run_clusters(Launch& launch, Lender<Runner>& lender) noexcept;

}  // namespace fuse::runtime::emulated
