// A worker process runs one batch and tells its parent line by line how far it came, so that a crash or a
// hang is known by its program:
//   begin INDEX
//   done INDEX VERDICT ELEMENTS EXACT UNDECIDED CHECKED FORMS TEXT
//   cover OP DTYPE COUNT
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fuzz/coverage.hpp"
#include "fuzz/judge/execute.hpp"

namespace fuse::fuzz {

struct RunSettings {
  std::uint64_t seed = 1;
  std::int64_t count = 1000;
  double minutes = 0;       ///< 0: until `count`
  int jobs = 0;             ///< worker processes at once; 0: one a core
  std::int64_t batch = 32;  ///< programs compiled together
  double patience =
      180;  ///< seconds without a line before a worker counts as hung; more where others want the cores
  std::int64_t most_failures = 20;
  std::string cpu{};     ///< the cpu device to run on, instead of the emulated one
  bool dynamic = false;  ///< programs of generate_dynamic
};

/// Program `index` of a run.
Case drawn(const RunSettings&, std::uint64_t index);

struct Failure {
  std::uint64_t index = 0;
  Verdict verdict = Verdict::ok;
  std::string text;
};

struct RunTotals {
  std::int64_t programs = 0, checked = 0, wasted = 0;
  Shares shares;
  Coverage coverage;
  FormCounts forms;
  std::vector<Failure> failures;
  double seconds = 0;
};

/// The worker's side: programs [first, first + count) of the run with that seed.
int work(const RunSettings&, std::uint64_t first);
/// The parent's side: starts workers until the run is done. `progress` is called often.
RunTotals run_workers(const RunSettings&, const std::function<void(const RunTotals&)>& progress);

}  // namespace fuse::fuzz
