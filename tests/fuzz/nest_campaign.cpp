// SPDX-License-Identifier: Apache-2.0
#include "fuzz/nest_campaign.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "fuzz/grow/random.hpp"
#include "fuzz/grow/random_choices.hpp"
#include "fuzz/judge/execute.hpp"
#include "schedule/mapping/schedule.hpp"
#include "support/nest_segments.hpp"
#include "support/stitch_cases.hpp"

namespace fuse::fuzz {
namespace {

using schedule::Choices;

constexpr const char* nest_profiles[] = {"h200", "tiny3", "tiny2"};

/// One way to run one phase.
struct Way {
  std::size_t phase = 0;
  const char* profile = "h200";
  Choices choices{};
  std::uint64_t shuffle = 1;
};

/// A phase as the compiler cuts it.
struct OnePhase {
  ir::Graph graph{};
  schedule::Segment segment{};
};

OnePhase one_phase(const test::NestPhase& phase, const Target& target) {
  const Compiled made = run_pipeline(ir_of(phase.graph), target, {});
  if (made.schedules.size() != 1 || made.partition.segments[0].phases.size() != 1)
    throw std::runtime_error(phase.name + " is not one kernel of one phase");
  return {made.graph, made.partition.segments[0]};
}

/// Deterministic: of the list, `count` that lie as far apart as they can, from a position that the seed
/// gives.
std::vector<Way> spread(std::vector<Way> ways, std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  for (std::size_t i = ways.size(); i > 1; --i) std::swap(ways[i - 1], ways[random.below(i)]);
  if (static_cast<std::int64_t>(ways.size()) > count) ways.resize(static_cast<std::size_t>(count));
  return ways;
}

class Campaign {
 public:
  Campaign(const NestSettings& settings, const std::function<void(const NestTotals&)>& progress)
      : settings_(settings), progress_(progress), phases_(test::nest_segments()) {}

  NestTotals run() {
    std::vector<Way> ways = enumerated();
    totals_.nests = static_cast<std::int64_t>(ways.size());
    const std::vector<Way> lists = random_lists();
    ways.insert(ways.end(), lists.begin(), lists.end());
    totals_.wanted = static_cast<std::int64_t>(ways.size());
    for (std::size_t i = 0; i < ways.size(); ++i) ways[i].shuffle = 2 * (settings_.seed + i) + 1;
    std::atomic<std::size_t> next = 0;
    std::vector<std::thread> workers;
    for (int job = 0; job < std::max(1, settings_.jobs); ++job) {
      workers.emplace_back([&] {
        const auto size = static_cast<std::size_t>(settings_.batch);
        for (std::size_t at = next.fetch_add(size); at < ways.size(); at = next.fetch_add(size))
          run_batch({ways.begin() + static_cast<std::ptrdiff_t>(at),
                     ways.begin() + static_cast<std::ptrdiff_t>(std::min(ways.size(), at + size))});
      });
    }
    for (std::thread& worker : workers) worker.join();
    return std::move(totals_);
  }

 private:
  std::vector<Way> enumerated() {
    std::vector<Way> all;
    std::map<std::string, std::set<std::string>> structures;
    for (std::size_t s = 0; s < phases_.size(); ++s) {
      for (const char* profile : nest_profiles) {
        const OnePhase cut = one_phase(phases_[s], target_profile(profile));
        schedule::each_legal_nest(cut.graph, cut.segment.phases[0], target_profile(profile), odd_numbers(),
                                  [&](const Choices& choices) {
                                    structures[phases_[s].name].insert(structure_of(choices));
                                    all.push_back({.phase = s, .profile = profile, .choices = choices});
                                  });
      }
    }
    for (const auto& [name, found] : structures) totals_.structures[name] = found.size();
    return spread(std::move(all), settings_.count, settings_.seed);
  }

  std::vector<Way> random_lists() {
    std::vector<Way> taken;
    std::vector<OnePhase> cuts;
    for (const test::NestPhase& phase : phases_) {
      for (const char* profile : nest_profiles) cuts.push_back(one_phase(phase, target_profile(profile)));
    }
    for (std::int64_t i = 0; i < settings_.lists; ++i) {
      ++totals_.drawn;
      const std::uint64_t seed = seed_of(settings_.seed, static_cast<std::uint64_t>(i));
      const std::size_t s = Random(seed).below(phases_.size());
      const std::size_t p = Random(~seed).below(std::size(nest_profiles));
      const OnePhase& cut = cuts[s * std::size(nest_profiles) + p];
      const Choices choices = random_list(seed, phases_[s].name == "transposed");
      if (!misfit(cut.graph, cut.segment, {{choices}}, target_profile(nest_profiles[p])).empty()) continue;
      ++totals_.taken;
      taken.push_back({.phase = s, .profile = nest_profiles[p], .choices = choices});
    }
    return taken;
  }

  void run_batch(const std::vector<Way>& ways) {
    std::vector<Case> cases;
    for (const Way& way : ways) {
      cases.push_back(test::case_of(phases_[way.phase].graph, {.profile = way.profile,
                                                               .checked = true,
                                                               .threads = 2,
                                                               .shuffle_seed = way.shuffle,
                                                               .optimization = 0}));
    }
    Batch batch(std::move(cases), {}, [&](const ir::Graph& graph, const schedule::Segment&, const Target&) {
      return schedule::KernelChoices{{ways[std::stoul(graph.name.substr(1))].choices}};
    });
    for (std::size_t i = 0; i < ways.size(); ++i) {
      Outcome outcome = batch.run(i);  // in order, too
      if (outcome.verdict == Verdict::ok) {
        batch.set_shuffle(i, ways[i].shuffle + 1);
        outcome = batch.run(i);
      }
      const std::lock_guard lock(mutex_);
      ++totals_.runs;
      if (is_failure(outcome.verdict))
        totals_.failures.push_back(fmt::format("{} on {} {{{}}}: {}: {}", phases_[ways[i].phase].name,
                                               ways[i].profile, ways[i].choices.to_string(),
                                               to_string(outcome.verdict), outcome.text));
      progress_(totals_);
    }
  }

  const NestSettings settings_;
  const std::function<void(const NestTotals&)>& progress_;
  const std::vector<test::NestPhase> phases_;
  std::mutex mutex_;
  NestTotals totals_;
};

}  // namespace

schedule::NestNumbers odd_numbers() {
  return {.warps = {1, 2, 3},
          .lanes = {1, 4, 32},
          .vectors = {1, 2, 4},
          .blocks_per_row = {1, 3},
          .turns = {0, 1, 2, 5},
          .register_cache = {32},
          .shared_cache = {24},
          .accumulators = {2},
          .row_to_row = true};
}

NestTotals run_nests(const NestSettings& settings, const std::function<void(const NestTotals&)>& progress) {
  return Campaign(settings, progress).run();
}

}  // namespace fuse::fuzz
