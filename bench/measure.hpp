// Clocks and samples. Every sample is timed twice: by the wall clock, and by the CPU time of this process
// with the children it waited for. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include "report/report.hpp"

namespace fuse::bench {

struct Times {
  double wall = 0, cpu = 0;  ///< seconds
};

inline double cpu_seconds() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
      sum += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    }
  }
  return sum;
}

template <class F>
Times time_once(F&& work) {
  const double cpu = cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  work();
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return {wall, cpu_seconds() - cpu};
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Samples of one thing.
struct Samples {
  std::vector<double> wall{}, cpu{};  ///< seconds

  void add(const Times& times, double repeats = 1) {
    wall.push_back(times.wall / repeats);
    cpu.push_back(times.cpu / repeats);
  }

  /// `per_second(seconds)` turns a time into the figure; CPU time is spread over `threads` first.
  template <class F>
  Row row(std::string name, std::string unit, int threads, F&& per_second) const {
    Row row{.name = std::move(name), .unit = std::move(unit), .figure = per_second(median(wall))};
    row.n = static_cast<int>(wall.size());
    const auto [least, most] = std::minmax_element(wall.begin(), wall.end());
    row.min = std::min(per_second(*least), per_second(*most));
    row.max = std::max(per_second(*least), per_second(*most));
    row.cpu = per_second(median(cpu) / threads);
    return row;
  }
  Row rate(std::string name, std::string unit, int threads, double items) const {
    return row(std::move(name), std::move(unit), threads, [&](double seconds) { return items / seconds; });
  }
  Row seconds(std::string name, std::string unit, double scale = 1) const {
    return row(std::move(name), std::move(unit), 1, [&](double seconds) { return seconds * scale; });
  }
};

/// Repeats that make one sample last about `seconds`, after one call to warm up.
template <class F>
int repeats_for(double seconds, F&& work) {
  work();
  const double once = std::max(time_once(work).wall, 1e-7);
  return static_cast<int>(std::clamp(seconds / once, 1.0, 1e6));
}

}  // namespace fuse::bench
