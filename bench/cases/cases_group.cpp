// The cases of bench/cases.json, on the device asked for. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "cases/case_run.hpp"
#include "groups/groups.hpp"

namespace fuse::bench {
namespace {

/// On a GPU a smoke case shows nothing unless it is asked for, and on a CPU the others take hours.
std::vector<Case> wanted(const Settings& settings) {
  const bool asked = (',' + settings.filter + ',').find(",smoke,") != std::string::npos;
  return cases_that_fit(settings.filter, asked || settings.device.kind() != DeviceKind::cuda);
}

/// The row of a case that did not run says why.
Json row_of(const Case& c, const Settings& settings, DeviceTimer& timer, CopyYardstick& yardstick,
            const CompileOptions& options) {
  try {
    return measure_case(c, settings.device, timer, yardstick, settings.check_elements, options);
  } catch (const std::exception& error) {
    Json row = case_header(c, "fuse");
    row["status"] = "failed";
    row["why"] = error.what();
    return row;
  }
}

void print_line(Report& report, const Json& row) {
  if (row["status"] != "ok") report.fail(row["name"], row["why"]);
  fmt::print("{}\n", case_line(row));
  std::fflush(stdout);
}

/// What fuse would not choose is no result of fuse, so the report gets none of it.
void run_by_decisions(const Case& c, Report& report, const Settings& settings, DeviceTimer& timer,
                      CopyYardstick& yardstick) {
  for (const DecisionsFile& file : settings.decisions) {
    fmt::print("by {}\n", file.path);
    print_line(report, row_of(c, settings, timer, yardstick, {.decisions = file.text}));
  }
}

}  // namespace

bool any_case(const Settings& settings) { return !wanted(settings).empty(); }

void bench_cases(Report& report, const Settings& settings) {
  DeviceTimer timer(settings.device);
  CopyYardstick yardstick(settings.device, timer);
  fmt::print("{} on {}, by {}\n{}\n", "cases", settings.device.name(), timer.backend().clock(),
             case_heading());
  for (const Case& c : wanted(settings)) {
    if (!settings.decisions.empty()) {
      run_by_decisions(c, report, settings, timer, yardstick);
      continue;
    }
    Json row = row_of(c, settings, timer, yardstick, {});
    print_line(report, row);
    report.add_case(std::move(row));
  }
  fmt::print("\n");
}

}  // namespace fuse::bench
