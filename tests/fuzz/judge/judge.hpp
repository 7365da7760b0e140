// Generated programs under the judgement of `fusec run --check` and `fusec bisect`: whether it accuses a
// right result, and whether it names the op of a wrong one. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fuzz/grow/generated_program.hpp"

namespace fuse::fuzz {

struct JudgeSettings {
  std::uint64_t seed = 1;
  std::int64_t first = 0;     ///< the index of the first program
  std::int64_t right = 0;     ///< programs as they are: no output is wrong by `run --check`
  std::int64_t searched = 0;  ///< programs as they are: no value is wrong by bisect, which keeps all
  std::int64_t named = 0;     ///< programs with a planted wrong op, which bisect has to name
};

struct JudgeTotals {
  std::int64_t right = 0, searched = 0, named = 0;
  std::int64_t skipped = 0;  ///< drawn programs that have no float to judge, or nothing to plant
  std::int64_t outputs = 0;
  std::int64_t bare = 0;  ///< outputs that are all NaN, all infinite or constant
  std::vector<std::string> failures{};
};

/// Programs whose floats are f64, but for a few that their ops ask for. Program `index` of a seed is always
/// the same.
JudgeTotals judge(const JudgeSettings&, const std::function<void(const JudgeTotals&)>& progress);

}  // namespace fuse::fuzz
