// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulated/residents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <map>

#include "runtime/emulated/cluster_runner.hpp"

namespace fuse::runtime::emulated {
namespace {

/// A cluster whose blocks have slots; without clusters a block.
struct Resident {
  std::uint64_t cluster = 0;
  std::vector<BlockSlot> slots;
  std::unique_ptr<ClusterRunner> runner;
  bool started = false, waits = false;
  Runner::Stop stop = Runner::Stop::ended;  // what it came to last
  std::uint64_t group = 0;                  // blocks that it met last; 0: all
  std::uint32_t epoch = 0;                  // the epoch that it began in them
};

/// A launch among those that run.
struct Member {
  Launch* launch = nullptr;
  Share share{};
  std::uint64_t placed = 0, ended = 0;  // clusters
  std::vector<Resident> residents{};
  std::vector<bool> gone{};                     // for each cluster, whether it has ended
  std::map<const int*, std::int64_t> passed{};  // barriers, by their counter
  bool without_slot() const { return !launch->stop && placed < launch->clusters(); }
};

/// Slots for the blocks of a cluster: for all of them or none.
std::vector<BlockSlot> take(SmSlots& slots, const Member& member) {
  SmSlots after = slots;
  std::vector<BlockSlot> taken;
  while (taken.size() < member.launch->cluster) {
    const std::optional<BlockSlot> slot = after.take(member.share);
    if (!slot) return {};
    taken.push_back(*slot);
  }
  slots = std::move(after);
  return taken;
}

class Residents {
 public:
  Residents(std::span<Launch* const> launches, const LaunchContext& context)
      : context_(context), slots_(context.target) {
    for (Launch* launch : launches) {
      members_.push_back({.launch = launch,
                          .share = schedule::share_of_block(
                              residency_of(launch->kernel->info, launch->blocks), context.target),
                          .gone = std::vector<bool>(launch->clusters())});
    }
  }

  // All that decides is done here, between the rounds, on one thread: which OS threads run the blocks makes
  // no difference.
  void run() {
    for (;;) {
      context_.scheduling == BlockScheduling::gang ? place_whole() : place_in_turns();
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
        if (!member.without_slot()) continue;
        std::vector<BlockSlot> taken = take(slots_, member);
        if (taken.empty()) continue;
        add(member, std::move(taken));
        placed = true;
      }
    }
  }

  void place_whole() {
    for (Member& member : members_) {
      if (!member.without_slot()) continue;
      SmSlots after = slots_;
      std::vector<std::vector<BlockSlot>> clusters;
      while (clusters.size() < member.launch->clusters()) {
        clusters.push_back(take(after, member));
        if (clusters.back().empty()) break;
      }
      if (clusters.back().empty()) continue;
      slots_ = after;
      for (std::vector<BlockSlot>& taken : clusters) add(member, std::move(taken));
    }
  }

  void add(Member& member, std::vector<BlockSlot> slots) {
    Resident& fresh = member.residents.emplace_back();
    fresh.cluster = member.launch->cluster_at(member.placed++);
    fresh.slots = std::move(slots);
    fresh.runner = std::make_unique<ClusterRunner>(context_.runners, member.launch->cluster);
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
        ClusterRunner& runner = *resident->runner;
        resident->stop = !resident->started    ? runner.start(*launch, resident->cluster)
                         : resident->group > 0 ? runner.resume(resident->epoch, resident->group)
                                               : runner.resume();
        resident->started = true;
        resident->waits = resident->stop == Runner::Stop::grid_barrier;
      }
    };
    context_.pool.run(work, static_cast<int>(std::min<std::size_t>(ready.size() - 1, 1024)));
    return true;
  }

  /// Blocks that ended leave; then the others pass their barrier, if all have come.
  void settle(Member& member) {
    Launch& launch = *member.launch;
    for (Resident& resident : member.residents) {
      if (resident.waits) continue;
      if (resident.stop == Runner::Stop::ended) {
        ++member.ended;
        member.gone[resident.cluster] = true;
      }
      remove(member, resident);
    }
    std::erase_if(member.residents, [](const Resident& resident) { return !resident.runner; });
    if (!launch.stop && !member.residents.empty()) pass_barrier(member);
    if (launch.stop) leave(member);
  }

  void remove(Member& member, Resident& resident) {
    for (const BlockSlot& slot : resident.slots) slots_.give_back(slot, member.share);
    resident.runner.reset();
  }

  void leave(Member& member) {
    for (Resident& resident : member.residents) {
      // Also one that passed its barrier and did not go on yet.
      if (resident.started && resident.stop == Runner::Stop::grid_barrier) resident.runner->leave();
      remove(member, resident);
    }
    member.residents.clear();
  }

  void pass_barrier(Member& member) {
    Launch& launch = *member.launch;
    std::sort(member.residents.begin(), member.residents.end(),
              [](const Resident& a, const Resident& b) { return a.cluster < b.cluster; });
    if (pass_groups(member)) return;
    const WaitPoint first = member.residents.front().runner->waits();
    if (member.ended > 0) {
      const auto gone = std::find(member.gone.begin(), member.gone.end(), true) - member.gone.begin();
      launch.fail({.kind = Fault::Kind::divergence,
                   .here = first,
                   .other = {.block = static_cast<std::uint64_t>(gone) * launch.cluster}});
      return;
    }
    for (const Resident& resident : member.residents) {
      if (meet(launch, member.residents.front(), resident)) continue;
      return;
    }
    if (member.residents.size() < launch.clusters()) return;
    if (!count(member, *member.residents[0].runner, launch.blocks)) return;
    ++launch.grid_barriers;
    if (launch.checked) launch.first_block = launch.cells->prepare(launch.cell_count, launch.blocks);
    for (Resident& resident : member.residents) {
      resident.waits = false;
      resident.group = 0;
    }
  }

  /// Blocks that wait for a group pass where all of it have come. Whether any did, waits on, or failed.
  bool pass_groups(Member& member) {
    bool any = false;
    for (auto first = member.residents.begin(); first != member.residents.end();) {
      const std::uint64_t size = first->runner->group();
      if (size == 0) {
        ++first;
        continue;
      }
      any = true;
      const std::uint64_t end = (first->cluster / size + 1) * size;
      const auto last = std::find_if(first, member.residents.end(),
                                     [&](const Resident& other) { return other.cluster >= end; });
      pass_group(member, std::span(first, last), size);
      if (member.launch->stop) return true;
      first = last;
    }
    return any;
  }

  /// `group`: its blocks that are on the device.
  static void pass_group(Member& member, std::span<Resident> group, std::uint64_t size) {
    Launch& launch = *member.launch;
    const std::uint64_t begin = group.front().cluster / size * size;
    const auto gone = std::find(member.gone.begin() + static_cast<std::ptrdiff_t>(begin),
                                member.gone.begin() + static_cast<std::ptrdiff_t>(begin + size), true);
    if (gone != member.gone.begin() + static_cast<std::ptrdiff_t>(begin + size)) {
      const auto block = static_cast<std::uint64_t>(gone - member.gone.begin());
      launch.fail({.kind = Fault::Kind::divergence,
                   .here = group.front().runner->waits(),
                   .other = {.block = block}});
      return;
    }
    std::uint32_t epoch = 0;
    for (const Resident& resident : group) {
      if (!meet(launch, group.front(), resident)) return;
      epoch = std::max(epoch, resident.runner->epoch());
    }
    if (group.size() < size) return;
    if (size > 1 && !count(member, *group.front().runner, size)) return;
    launch.grid_barriers += begin == 0;
    for (Resident& resident : group) {
      resident.waits = false;
      resident.group = size;
      resident.epoch = epoch;
    }
  }

  /// Whether both wait at one line, and count there alike; fails otherwise.
  static bool meet(Launch& launch, const Resident& a, const Resident& b) {
    const WaitPoint here = a.runner->waits(), there = b.runner->waits();
    if (there.line == here.line && a.runner->counter() == b.runner->counter()) return true;
    launch.fail({.kind = Fault::Kind::divergence, .here = here, .other = there});
    return false;
  }

  /// The arrivals of so many blocks, in the kernel's own counter.
  static bool count(Member& member, const ClusterRunner& runner, std::uint64_t blocks) {
    int& counter = *runner.counter();
    const std::int64_t before = member.passed[&counter]++ * static_cast<std::int64_t>(blocks);
    if (static_cast<unsigned>(counter) != static_cast<unsigned>(before)) {
      member.launch->fail(
          {.kind = Fault::Kind::wrong_count, .index = counter, .limit = before, .here = runner.waits()});
      return false;
    }
    counter = static_cast<int>(static_cast<unsigned>(before) + static_cast<unsigned>(blocks));
    return true;
  }

  void report_deadlock() {
    std::vector<Stuck> stuck;
    for (const Member& member : members_) {
      if (member.residents.empty() && !member.without_slot()) continue;
      const Launch& launch = *member.launch;
      const WaitPoint first = member.residents.empty() ? WaitPoint{} : member.residents[0].runner->waits();
      stuck.push_back({.kernel = &launch.kernel->info,
                       .blocks = launch.blocks,
                       .waiting = member.residents.size() * launch.cluster,
                       .without_slot = launch.blocks - member.placed * launch.cluster,
                       .line = first.line,
                       .what = first.what});
    }
    if (stuck.empty()) return;
    const std::string text = describe_deadlock(
        stuck, fmt::format("{} ({})", context_.target.name,
                           context_.scheduling == BlockScheduling::gang ? "gang" : "greedy"));
    for (Member& member : members_) {
      if (member.residents.empty() && !member.without_slot()) continue;
      member.launch->deadlock = text;
      member.launch->fail({.kind = Fault::Kind::deadlock});
      leave(member);
    }
  }

  const LaunchContext& context_;
  SmSlots slots_;
  std::vector<Member> members_;
};

}  // namespace

schedule::Residency residency_of(const codegen::KernelInfo& kernel, std::uint64_t blocks) {
  return {.blocks = static_cast<std::int64_t>(blocks),
          .threads = kernel.block_threads,
          .shared_bytes = kernel.shared_bytes,
          .blocks_per_sm = kernel.blocks_per_sm};
}

void run_beside(std::span<Launch* const> launches, const LaunchContext& context) noexcept {
  try {
    Residents(launches, context).run();
  } catch (const std::exception&) {
    for (Launch* launch : launches) launch->fail({.kind = Fault::Kind::memory});
  }
}

}  // namespace fuse::runtime::emulated
