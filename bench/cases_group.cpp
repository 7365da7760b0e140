// The cases of bench/cases.json, on the device asked for. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <sstream>

#include "case_run.hpp"
#include "groups.hpp"

namespace fuse::bench {
namespace {

/// On a GPU a smoke case shows nothing, and on a CPU the others take hours.
bool wanted(const Case& c, const Settings& settings) {
  bool smoke = settings.device.kind() != DeviceKind::cuda;
  std::istringstream parts(settings.filter);
  for (std::string part; std::getline(parts, part, ',');) {
    smoke |= part == "smoke";
    if (part != "cases" && !c.tagged(part) && c.name.find(part) == std::string::npos) return false;
  }
  return c.tagged("smoke") == smoke;
}

}  // namespace

bool any_case(const Settings& settings) {
  for (const Case& c : all_cases()) {
    if (wanted(c, settings)) return true;
  }
  return false;
}

void bench_cases(Report& report, const Settings& settings) {
  DeviceTimer timer(settings.device);
  CopyYardstick yardstick(settings.device, timer);
  fmt::print("{} on {}, by {}\n{}\n", "cases", settings.device.name(), timer.backend().clock(),
             case_heading());
  for (const Case& c : all_cases()) {
    if (!wanted(c, settings)) continue;
    Json row = case_header(c, "fuse");
    try {
      row = measure_case(c, settings.device, timer, yardstick);
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
