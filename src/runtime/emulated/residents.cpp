// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulated/residents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>

#include "runtime/emulated/cluster_runner.hpp"

namespace fuse::runtime::emulated {
namespace {

/// A cluster whose blocks have places; without clusters a block.
struct Resident {
  std::uint64_t cluster = 0;
  std::vector<std::size_t> multiprocessors;
  std::unique_ptr<ClusterRunner> runner;
  bool started = false, waits = false;
  Runner::Stop stop = Runner::Stop::ended;  // what it came to last
};

/// A launch among those that run.
struct Member {
  Launch* launch = nullptr;
  Share share{};
  std::uint64_t placed = 0, ended = 0;  // clusters
  std::vector<Resident> residents{};
  bool unplaced() const { return !launch->stop && placed < launch->clusters(); }
};

/// Places for the blocks of a cluster: for all of them or none.
std::vector<std::size_t> take(Places& places, const Member& member) {
  Places after = places;
  std::vector<std::size_t> taken;
  while (taken.size() < member.launch->cluster) {
    const auto multiprocessor = after.take(member.share);
    if (!multiprocessor) return {};
    taken.push_back(*multiprocessor);
  }
  places = std::move(after);
  return taken;
}

class Residents {
 public:
  Residents(std::span<Launch* const> launches, const Stage& stage) : stage_(stage), places_(stage.target) {
    for (Launch* launch : launches) {
      members_.push_back({launch, schedule::share_of_block(residency_of(launch->kernel->info, launch->blocks),
                                                           stage.target)});
    }
  }

  // All that decides is done here, between the rounds, on one thread: which OS threads run the blocks makes
  // no difference.
  void run() {
    for (;;) {
      stage_.scheduling == BlockScheduling::gang ? place_whole() : place_in_turns();
      if (!run_ready()) break;
      for (Member& member : members_) settle(member);
    }
    report_deadlock();
  }

 private:
  void place_in_turns() {
    for (bool placed = true; placed;) {
      placed = false;
      for (Member& member : members_) {
        if (!member.unplaced()) continue;
        std::vector<std::size_t> taken = take(places_, member);
        if (taken.empty()) continue;
        add(member, std::move(taken));
        placed = true;
      }
    }
  }

  void place_whole() {
    for (Member& member : members_) {
      if (!member.unplaced()) continue;
      Places after = places_;
      std::vector<std::vector<std::size_t>> clusters;
      while (clusters.size() < member.launch->clusters()) {
        clusters.push_back(take(after, member));
        if (clusters.back().empty()) break;
      }
      if (clusters.back().empty()) continue;
      places_ = after;
      for (std::vector<std::size_t>& taken : clusters) add(member, std::move(taken));
    }
  }

  void add(Member& member, std::vector<std::size_t> multiprocessors) {
    Resident& fresh = member.residents.emplace_back();
    fresh.cluster = member.launch->cluster_at(member.placed++);
    fresh.multiprocessors = std::move(multiprocessors);
    fresh.runner = std::make_unique<ClusterRunner>(stage_.runners, member.launch->cluster);
  }

  /// Every block that can go on does, up to its next grid barrier or its end. False: none can.
  bool run_ready() {
    std::vector<std::pair<Launch*, Resident*>> ready;
    for (Member& member : members_) {
      for (Resident& resident : member.residents) {
        if (!resident.waits) ready.emplace_back(member.launch, &resident);
      }
    }
    if (ready.empty()) return false;
    std::atomic<std::size_t> next = 0;
    const std::function<void()> work = [&]() noexcept {
      for (std::size_t i = next++; i < ready.size(); i = next++) {
        const auto& [launch, resident] = ready[i];
        resident->stop = resident->started ? resident->runner->resume()
                                           : resident->runner->start(*launch, resident->cluster);
        resident->started = true;
        resident->waits = resident->stop == Runner::Stop::grid_barrier;
      }
    };
    stage_.pool.run(work, static_cast<int>(std::min<std::size_t>(ready.size() - 1, 1024)));
    return true;
  }

  /// Blocks that ended leave; then the others pass their barrier, if all have come.
  void settle(Member& member) {
    Launch& launch = *member.launch;
    for (Resident& resident : member.residents) {
      if (resident.waits) continue;
      member.ended += resident.stop == Runner::Stop::ended;
      remove(member, resident);
    }
    std::erase_if(member.residents, [](const Resident& resident) { return !resident.runner; });
    if (!launch.stop && !member.residents.empty()) pass_barrier(member);
    if (launch.stop) leave(member);
  }

  void remove(Member& member, Resident& resident) {
    for (const std::size_t multiprocessor : resident.multiprocessors) {
      places_.give_back(multiprocessor, member.share);
    }
    resident.runner.reset();
  }

  void leave(Member& member) {
    for (Resident& resident : member.residents) {
      if (resident.waits) resident.runner->leave();
      remove(member, resident);
    }
    member.residents.clear();
  }

  void pass_barrier(Member& member) {
    Launch& launch = *member.launch;
    std::sort(member.residents.begin(), member.residents.end(),
              [](const Resident& a, const Resident& b) { return a.cluster < b.cluster; });
    const Place first = member.residents.front().runner->waits();
    if (member.ended > 0) {
      launch.fail(
          {.kind = Fault::Kind::divergence, .here = first, .other = {.block = an_ended_block(member)}});
      return;
    }
    for (const Resident& resident : member.residents) {
      const Place other = resident.runner->waits();
      if (other.line == first.line && resident.runner->counter() == member.residents[0].runner->counter()) {
        continue;
      }
      launch.fail({.kind = Fault::Kind::divergence, .here = first, .other = other});
      return;
    }
    if (member.residents.size() < launch.clusters()) return;
    if (!count(launch, *member.residents[0].runner)) return;
    ++launch.grid_barriers;
    if (launch.checked) launch.first_block = launch.cells->prepare(launch.cell_count, launch.blocks);
    for (Resident& resident : member.residents) resident.waits = false;
  }

  /// The arrivals of all blocks, in the kernel's own counter.
  static bool count(Launch& launch, const ClusterRunner& runner) {
    int& counter = *runner.counter();
    const std::int64_t before = launch.grid_barriers * static_cast<std::int64_t>(launch.blocks);
    if (static_cast<unsigned>(counter) != static_cast<unsigned>(before)) {
      launch.fail(
          {.kind = Fault::Kind::wrong_count, .index = counter, .limit = before, .here = runner.waits()});
      return false;
    }
    counter = static_cast<int>(static_cast<unsigned>(before) + static_cast<unsigned>(launch.blocks));
    return true;
  }

  /// The first block that was placed and waits no more.
  static std::uint64_t an_ended_block(const Member& member) {
    std::vector<std::uint64_t> waiting;
    for (const Resident& resident : member.residents) waiting.push_back(resident.cluster);
    for (std::uint64_t i = 0; i < member.placed; ++i) {
      const std::uint64_t cluster = member.launch->cluster_at(i);
      if (!std::binary_search(waiting.begin(), waiting.end(), cluster)) {
        return cluster * member.launch->cluster;
      }
    }
    return 0;
  }

  void report_deadlock() {
    std::vector<Stuck> stuck;
    for (const Member& member : members_) {
      if (member.residents.empty() && !member.unplaced()) continue;
      const Launch& launch = *member.launch;
      stuck.push_back({.kernel = &launch.kernel->info,
                       .blocks = launch.blocks,
                       .waiting = member.residents.size() * launch.cluster,
                       .unplaced = launch.blocks - member.placed * launch.cluster,
                       .line = member.residents.empty() ? 0 : member.residents[0].runner->waits().line});
    }
    if (stuck.empty()) return;
    const std::string text =
        describe_deadlock(stuck, fmt::format("{} ({})", stage_.target.name,
                                             stage_.scheduling == BlockScheduling::gang ? "gang" : "greedy"));
    for (Member& member : members_) {
      if (member.residents.empty() && !member.unplaced()) continue;
      member.launch->deadlock = text;
      member.launch->fail({.kind = Fault::Kind::deadlock});
      leave(member);
    }
  }

  const Stage& stage_;
  Places places_;
  std::vector<Member> members_;
};

}  // namespace

schedule::Residency residency_of(const codegen::KernelInfo& kernel, std::uint64_t blocks) {
  return {.blocks = static_cast<std::int64_t>(blocks),
          .threads = kernel.block_threads,
          .shared_bytes = kernel.shared_bytes,
          .blocks_an_sm = kernel.blocks_an_sm};
}

void run_beside(std::span<Launch* const> launches, const Stage& stage) noexcept {
  try {
    Residents(launches, stage).run();
  } catch (const std::exception&) {
    for (Launch* launch : launches) launch->fail({.kind = Fault::Kind::memory});
  }
}

}  // namespace fuse::runtime::emulated
