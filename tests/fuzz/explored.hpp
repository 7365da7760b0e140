// Programs that are run by an explorer: every run on the way is judged. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fuzz/grow/generated_program.hpp"

namespace fuse::fuzz {

struct Explored {
  std::string wrong{};  ///< what is wrong with which run; empty: nothing
  std::int64_t runs = 0, configurations = 0, dropped = 0;
  bool done = false;  ///< before the runs were over
};

/// Runs the case `runs` times by an explorer on an emulated device whose virtual clock makes every
/// configuration the fastest now and then. Each output of each run has to be what a right device may answer,
/// and where bits are kept, the same as in the first run. `bits_seed` says whether they are.
Explored explored(const Case&, int runs, std::uint64_t seed);

struct ExploreCampaign {
  std::uint64_t seed = 1;
  std::int64_t first = 0, count = 0;
  int runs = 20, jobs = 1;
};
struct ExploreTotals {
  std::int64_t programs = 0, runs = 0, configurations = 0, dropped = 0, done = 0;
  std::vector<std::string> failures{};
};
/// `progress` is called after each program, one call at a time.
ExploreTotals explore_programs(const ExploreCampaign&,
                               const std::function<void(const ExploreTotals&)>& progress);

}  // namespace fuse::fuzz
