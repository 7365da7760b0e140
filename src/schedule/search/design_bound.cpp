// SPDX-License-Identifier: Apache-2.0
#include "schedule/search/design_bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/divide_up.hpp"
#include "schedule/choosers/segment_cost.hpp"
#include "schedule/mapping/schedule.hpp"
#include "target/step_cost.hpp"

namespace fuse::schedule {
namespace {

using Var = DesignVariable;

/// The rows that a block has at a time, at least.
std::int64_t fewest_rows(const DesignFacts& facts, const PartialDesign& design, int row_warps) {
  std::int64_t rows = row_warps;
  if (facts.form == DesignForm::elements) rows *= 32;
  if (design.is_fixed(Var::lanes)) rows *= design.row_lanes;
  if (design.is_fixed(Var::vector) && design.vector_of_rows) rows *= design.vector;
  return rows;
}

/// The blocks of the grid, at most, and those of them that have work.
std::int64_t blocks_without_turns(const DesignFacts& facts, const PartialDesign& design, int row_warps) {
  if (facts.form == DesignForm::tiles) {
    std::size_t at = 0;
    if (design.is_fixed(Var::vector)) {
      while ((1 << at) < design.vector) ++at;
    }
    return facts.tiles[at];
  }
  constexpr std::int64_t plenty = std::int64_t{1} << 40;  // more than any device has slots for
  const std::int64_t rows = fewest_rows(facts, design, row_warps);
  return divide_up(std::min(facts.results, plenty), rows) * design.parts;
}

/// Costs of one pair of warps of rows and warps walking.
class Bound {
 public:
  Bound(const ir::Graph& graph, const DesignFacts& facts, const PartialDesign& design, int row_warps,
        int walking_warps, const Target& target)
      : graph_(graph),
        facts_(facts),
        design_(design),
        target_(target),
        row_warps_(row_warps),
        walking_warps_(walking_warps),
        threads_(32 * row_warps * walking_warps),
        blocks_(blocks_at_most(facts, design, row_warps)),
        apart_(design.leaves_parts()),
        moved_(facts.moved + wasted()) {}

  double seconds() const {
    const bool side_by_side =
        design_.is_fixed(Var::vector) && design_.vector_of_rows && facts_.form == DesignForm::rows;
    const bool may_be =
        facts_.form == DesignForm::rows && facts_.widest_rows > 1 && !design_.is_fixed(Var::vector);
    if (side_by_side) return of_side_by_side();
    return may_be ? std::min(of_side_by_side(), of_launches()) : of_launches();
  }

 private:
  /// The cost model rounds bytes down, maybe from just below a whole number.
  static double rounded(double bytes) { return std::max(0.0, std::ceil(bytes) - 1); }

  /// Memory moves whole sectors, of which a warp that walks down may take a part.
  double wasted() const {
    constexpr double sector = 32;
    if (!facts_.walks_down) return 0;
    const double lanes = design_.is_fixed(Var::lanes) ? design_.row_lanes : 32;
    const double vector = !design_.is_fixed(Var::vector) ? facts_.widest_rows
                          : design_.vector_of_rows       ? design_.vector
                                                         : 1;
    const auto element = static_cast<double>(facts_.narrowest);
    const double moved =
        std::min(sector, static_cast<double>(facts_.results) * element) / (lanes * vector * element);
    return rounded(std::max(0.0, moved - 1) * facts_.inputs);
  }

  /// What passes load again, at least.
  double again() const {
    using Cache = PartialDesign::Cache;
    if (facts_.rereads == 0) return 0;
    const double cluster = design_.cluster ? design_.parts : 1;
    const double row = std::max(1.0, static_cast<double>(facts_.reduced));
    double share = 1;  // of a row that is loaded again
    if (!design_.is_fixed(Var::cache)) {
      if (registers_may_do()) return 0;
      const bool shared = facts_.loaded_bytes > 0 && !apart_ && !facts_.columns;
      const double most = shared ? static_cast<double>(target_.shared_per_block / facts_.loaded_bytes) : 0;
      share = std::max(0.0, 1 - most * cluster / row);
    } else if (design_.cache == Cache::registers || design_.cache == Cache::packed) {
      return 0;
    } else if (design_.cache == Cache::shared) {
      share = std::max(0.0, 1 - design_.cache_size * cluster / row);
    } else if (facts_.cached.empty()) {
      return 0;
    }
    constexpr double second_level_of_cpu = 8;
    return rounded(facts_.rereads * share * facts_.inputs /
                   (is_cpu(target_) ? second_level_of_cpu : l2_speed));
  }

  bool registers_may_do() const {
    if (facts_.cached.empty()) return true;
    const std::int64_t most = facts_.row.max();
    if (most / 8 > facts_.reduced) return false;
    const std::int64_t lanes = 32 / (design_.is_fixed(Var::lanes) ? design_.row_lanes : 1);
    const std::int64_t along = design_.is_fixed(Var::vector) && !design_.vector_of_rows ? design_.vector : 1;
    const std::int64_t step = lanes * walking_warps_ * design_.parts * along;
    const std::int64_t trips = (most / step + std::int64_t{most % step != 0}) * along;
    std::int64_t registers = cache_registers(graph_, facts_.cached, trips, false);
    if (!facts_.loaded.empty())
      registers = std::min(registers, cache_registers(graph_, facts_.loaded, trips, true));
    PartialDesign own = design_;
    own.row_warps = row_warps_;
    own.walking_warps = walking_warps_;
    return registers + trips * facts_.column_words <= cache_limit(facts_, own, target_);
  }

  /// The arithmetic of elements that are walked several times.
  double operations() const {
    using Cache = PartialDesign::Cache;
    if (!facts_.works_again) return 0;
    double work = std::min({facts_.uncached_work, facts_.cached_work, facts_.loaded_work});
    if (design_.is_fixed(Var::cache)) {
      work = design_.cache == Cache::none        ? facts_.uncached_work
             : design_.cache == Cache::registers ? facts_.cached_work
                                                 : facts_.loaded_work;
    }
    return 2.0 * work * static_cast<double>(facts_.results) * static_cast<double>(facts_.reduced);
  }

  /// One launch that moves these bytes or more.
  double of_launch(double bytes, std::int64_t blocks, double operations) const {
    const Residency residency{.blocks = blocks, .threads = threads_};
    const auto seconds = [&](double moved) {
      return kernel_cost(static_cast<std::int64_t>(std::min(moved, 0x1p60)), residency, target_, 1,
                         operations)
          .seconds;
    };
    const double least = seconds(bytes);
    if (!is_cpu(target_)) return least;
    // More bytes may take less time where they are worth another core.
    return std::min(least, seconds((std::floor(bytes / bytes_of_chunk) + 1) * bytes_of_chunk + 1));
  }

  double of_memory(double bytes, double share = 1) const {
    return memory_cost(static_cast<std::int64_t>(std::min(bytes, 0x1p60)), share, target_).seconds;
  }

  double scratch() const {
    const int parts = facts_.columns ? design_.turns : apart_ ? design_.parts : 0;
    return std::floor(facts_.scratch_of_part * parts);
  }

  /// Whether blocks wait for each other: by what was chosen, or else if that is less.
  double handoff() const {
    if (design_.is_fixed(Var::handoff))
      return design_.blocks > 0 ? target_.barrier_seconds : target_.launch_seconds;
    return std::min(target_.barrier_seconds, target_.launch_seconds);
  }

  double of_side_by_side() const {
    const double grid =
        static_cast<double>(design_.turns > 0 ? std::int64_t{design_.turns} * design_.parts
                                              : blocks_without_turns(facts_, design_, row_warps_));
    const double share = std::min(1.0, grid / target_.sms);
    return of_memory(moved_ + 2 * scratch(), share) + (apart_ ? handoff() : 0);
  }

  double of_launches() const {
    if (facts_.columns)
      return of_launch(moved_ + again() + scratch(), blocks_, operations()) + of_memory(scratch()) +
             handoff() - target_.launch_seconds;
    if (!apart_) {
      const double waits = design_.cluster ? facts_.meetings * target_.cluster_seconds : 0;
      return of_launch(moved_ + again(), blocks_, operations()) + waits;
    }
    const bool may_wait = !design_.is_fixed(Var::handoff) || design_.blocks > 0;
    const bool may_launch = !design_.is_fixed(Var::handoff) || design_.blocks == 0;
    double least = std::numeric_limits<double>::infinity();
    if (may_wait) least = std::min(least, of_waiting());
    if (may_launch) least = std::min(least, of_sections());
    return least;
  }

  double of_waiting() const {
    const auto waits = static_cast<double>(std::max<std::int64_t>(1, facts_.sections - 1));
    const double bytes = moved_ + again() + 2 * scratch();
    if (!design_.is_fixed(Var::handoff)) return of_memory(bytes) + waits * target_.barrier_seconds;
    const double at_once = static_cast<double>(std::max(1, design_.blocks / design_.parts));
    const double groups = std::ceil(static_cast<double>(facts_.results) / at_once);
    return of_launch(bytes, design_.blocks, 0) + groups * waits * target_.barrier_seconds;
  }

  double of_sections() const {
    if (!facts_.splits_stages)
      return of_launch(moved_ + again() + scratch(), blocks_, operations()) + of_memory(scratch());
    return static_cast<double>(facts_.sections - 1) *
               of_launch(facts_.inputs + scratch(), blocks_, operations()) +
           of_memory(moved_ + scratch());
  }

  const ir::Graph& graph_;
  const DesignFacts& facts_;
  const PartialDesign& design_;
  const Target& target_;
  const int row_warps_, walking_warps_, threads_;
  const std::int64_t blocks_;
  const bool apart_;
  const double moved_;
};

}  // namespace

std::int64_t blocks_at_most(const DesignFacts& facts, const PartialDesign& design, int row_warps) {
  if (facts.columns) return design.turns;
  const std::int64_t blocks = blocks_without_turns(facts, design, row_warps);
  return design.turns > 0 ? std::min(blocks, std::int64_t{design.turns} * design.parts) : blocks;
}

int cache_limit(const DesignFacts& facts, const PartialDesign& design, const Target& target) {
  constexpr int words_of_lane = 255, large_block = 512;
  if (is_cpu(target)) return words_of_lane;
  if (32 * design.row_warps * design.walking_warps > large_block) return most_cached / 2;
  return facts.columns ? most_cached * 5 / 4 : most_cached;
}

double design_bound(const ir::Graph& graph, const DesignFacts& facts, const PartialDesign& design,
                    const DesignNumbers& numbers, int threads, const Target& target) {
  if (!design.is_fixed(Var::turns)) {
    const double bytes = std::min(facts.moved, 0x1p60);
    return memory_cost(static_cast<std::int64_t>(bytes), 1, target).seconds;
  }
  const int warps = threads / 32;
  std::vector<int> of_rows = {design.row_warps};
  if (!design.is_fixed(Var::row_warps)) {
    const bool all = threads > 0 && facts.form != DesignForm::rows;
    of_rows = all ? std::vector<int>{warps} : numbers.warps;
  }
  const auto of_walking = [&](int row_warps) -> std::vector<int> {
    if (design.is_fixed(Var::walking_warps)) return {design.walking_warps};
    if (facts.form != DesignForm::rows) return {1};
    return threads > 0 ? std::vector<int>{std::max(1, warps / row_warps)} : numbers.warps;
  };
  double least = std::numeric_limits<double>::infinity();
  for (const int row_warps : of_rows) {
    for (const int walking_warps : of_walking(row_warps)) {
      if (32 * row_warps * walking_warps > target.max_threads_per_block) continue;
      least = std::min(least, Bound(graph, facts, design, row_warps, walking_warps, target).seconds());
    }
  }
  return least;
}

}  // namespace fuse::schedule
