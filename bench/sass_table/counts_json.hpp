// The counts as JSON (bench/sass_table/schema.json), and how two of them differ.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "goals.hpp"
#include "report/bench_json.hpp"

namespace fuse::bench::sass {

/// The versions that counts depend on.
struct Versions {
  std::string nvrtc, nvdisasm;
  bool operator==(const Versions&) const = default;
};

/// A case on each GPU that it was counted for.
struct CaseResult {
  TableCase of;
  std::map<std::string, CaseCount, std::less<>> on;        ///< by GPU
  std::map<std::string, std::string, std::less<>> failed;  ///< why, by GPU
};

Json to_json(const std::vector<CaseResult>&, const std::vector<GoalResult>&, const Versions&);
/// A line for each case and goal: what changed is what a diff shows.
std::string one_case_a_line(const Json&);

/// The schema, and what of the counts does not fit it, a line each.
std::vector<std::string> schema_errors(const Json& counts);

Versions versions_of(const Json& counts);
/// What is worse in `now` than in `committed` by more than 3%, of the cases that both have: cycles, and the
/// width of accesses. A line each.
std::vector<std::string> regressions(const Json& committed, const Json& now);

}  // namespace fuse::bench::sass
