// The cases of bench/cases.json, on the device asked for. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "case_run.hpp"
#include "groups.hpp"

namespace fuse::bench {
namespace {

/// On a GPU a smoke case shows nothing unless it is asked for, and on a CPU the others take hours.
std::vector<Case> wanted(const Settings& settings) {
  const bool asked = (',' + settings.filter + ',').find(",smoke,") != std::string::npos;
  return cases_that_fit(settings.filter, asked || settings.device.kind() != DeviceKind::cuda);
}

}  // namespace

bool any_case(const Settings& settings) { return !wanted(settings).empty(); }

void bench_cases(Report& report, const Settings& settings) {
  DeviceTimer timer(settings.device);
  CopyYardstick yardstick(settings.device, timer);
  fmt::print("{} on {}, by {}\n{}\n", "cases", settings.device.name(), timer.backend().clock(),
             case_heading());
  for (const Case& c : wanted(settings)) {
    Json row = case_header(c, "fuse");
    try {
      row = measure_case(c, settings.device, timer, yardstick, settings.check_elements);
    } catch (const std::exception& error) {
      row["status"] = "failed";
      row["why"] = error.what();
    }
    if (row["status"] != "ok") report.fail(c.name, row["why"].get<std::string>());
    fmt::print("{}\n", case_line(row));
    std::fflush(stdout);
    report.add_case(std::move(row));
  }
  fmt::print("\n");
}

}  // namespace fuse::bench
