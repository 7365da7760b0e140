// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulated/cluster_runner.hpp"

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

namespace fuse::runtime::emulated {

ClusterRunner::ClusterRunner(Lender<Runner>& lender, std::uint64_t blocks)
    : lender_(lender), stops_(blocks), order_(blocks) {
  for (std::uint64_t i = 0; i < blocks; ++i) runners_.push_back(lender.borrow());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
}

ClusterRunner::~ClusterRunner() {
  for (auto& runner : runners_) lender_.give_back(std::move(runner));
}

ClusterRunner::Stop ClusterRunner::start(Launch& launch, std::uint64_t cluster) noexcept {
  launch_ = &launch;
  barriers_ = 0;
  random_ = launch.seed ^ (cluster + 1) * 0xd1342543de82ef95;
  std::uint64_t block = cluster * runners_.size();
  for (const auto& runner : runners_) {
    if (!runner->prepare(launch, block++, runners_)) return stopped(Stop::failed);
  }
  return advance();
}

// A barrier of the grid is one of each cluster too.
ClusterRunner::Stop ClusterRunner::resume() noexcept {
  for (const auto& runner : runners_) runner->pass_grid_barrier();
  if (runners_.size() > 1) pass_barrier(false);
  return advance();
}

ClusterRunner::Stop ClusterRunner::resume(std::uint32_t epoch, std::uint64_t blocks) noexcept {
  runners_[0]->pass_group_barrier(epoch, blocks);
  return advance();
}

void ClusterRunner::leave() noexcept { stopped(Stop::failed); }

// Runs once for each stretch between barriers. Its blocks stop at the same one, or something is wrong: so all
// of them run in every stretch.
ClusterRunner::Stop ClusterRunner::advance() noexcept {
  for (;;) {
    if (launch_->seed) shuffle();
    for (const std::size_t rank : order_) {
      stops_[rank] = runners_[rank]->go();
      if (stops_[rank] == Stop::failed) return stopped(Stop::failed);
    }
    Stop stop = stops_[0];
    if (!meet(stop)) return stopped(Stop::failed);
    if (stop == Stop::grid_barrier) return stop;
    if (stop == Stop::ended) {
      judge_end();
      return stopped(launch_->stop ? Stop::failed : Stop::ended);
    }
    ++barriers_;
    if (stop == Stop::cluster_wait) {
      for (const auto& runner : runners_) runner->pass_cluster_wait();
    } else {
      pass_barrier(stop == Stop::shared_barrier);
    }
  }
}

// Whether all blocks came to one stop: have ended, or wait at one line.
bool ClusterRunner::meet(Stop& stop) noexcept {
  std::size_t first = 0;  // the first block that waits
  while (first + 1 < runners_.size() && stops_[first] == Stop::ended) ++first;
  stop = stops_[first];
  const WaitPoint here = runners_[first]->waits();
  for (std::size_t rank = 0; rank < runners_.size(); ++rank) {
    const WaitPoint other = runners_[rank]->waits();
    if (stops_[rank] == stop && (stop == Stop::ended || other.line == here.line) &&
        (stop != Stop::grid_barrier || runners_[rank]->counter() == runners_[first]->counter())) {
      continue;
    }
    launch_->fail({.kind = Fault::Kind::divergence, .here = here, .other = other});
    return false;
  }
  return true;
}

void ClusterRunner::pass_barrier(bool shared_only) noexcept {
  std::uint32_t epoch = 0;
  for (const auto& runner : runners_) epoch = std::max(epoch, runner->epoch());
  for (const auto& runner : runners_) runner->pass_cluster_barrier(epoch, shared_only);
}

// A read of what nobody wrote is the better explanation.
void ClusterRunner::judge_end() noexcept {
  if (runners_.size() == 1) return;
  std::optional<Fault> found;
  for (const auto& runner : runners_) {
    const std::optional<Fault> fault = runner->last_fault();
    if (!fault) continue;
    if (!found || (fault->kind == Fault::Kind::unwritten && found->kind != fault->kind)) found = fault;
  }
  if (found) launch_->fail(*found);
}

void ClusterRunner::shuffle() noexcept {
  for (std::size_t i = order_.size(); i-- > 1;) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    std::swap(order_[i], order_[(random_ >> 33) % (i + 1)]);
  }
}

ClusterRunner::Stop ClusterRunner::stopped(Stop stop) noexcept {
  for (const auto& runner : runners_) runner->finish();
  const std::lock_guard lock(launch_->mutex);
  launch_->cluster_barriers += std::exchange(barriers_, 0);
  return stop;
}

void run_clusters(Launch& launch, Lender<Runner>& lender) noexcept {
  try {
    ClusterRunner cluster(lender, launch.cluster);
    while (!launch.stop) {
      const std::uint64_t i = launch.next.fetch_add(1);
      if (i >= launch.clusters()) break;
      if (cluster.start(launch, launch.cluster_at(i)) != ClusterRunner::Stop::ended) break;
    }
  } catch (const std::exception&) {
    launch.fail({.kind = Fault::Kind::memory});
  }
}

}  // namespace fuse::runtime::emulated
