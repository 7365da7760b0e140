// A picture of the times of runs while ways to run were explored. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/explore.hpp>
#include <string>
#include <vector>

namespace fuse::fusec {

struct RunTime {
  double seconds = 0;
  bool is_usual = false;  ///< a run of the default
};

/// "3.506 us", "12.5 ms".
std::string time_text(double seconds);

/// As SVG: a dot for each measured run in their order, and lines where the default and what won lie.
std::string run_times_svg(const std::string& title, const std::vector<RunTime>& times,
                          const ExploreProgress& end);

}  // namespace fuse::fusec
