// Measured: the line of a file of decisions that has the device, its clock and the library of GEMMs with
// which they were measured.
//
//   measured {device = NVIDIA H200 by CUDA events, gemms = cuBLASLt 130002, default_us = 901.25, tuned_us =
//   812.3}
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace fuse::schedule {

struct Measured {
  std::string device{};   ///< its name, and what its clock is
  std::string gemms{};    ///< the library of GEMMs and its version, which number the algorithms; empty: none
  double default_us = 0;  ///< a run by the defaults; 0: not measured
  double tuned_us = 0;    ///< a run by the decisions; 0: not measured
  int line = 0;           ///< line of the text; 0: none
};

/// What stands in the braces. Commas, braces and signs of equality in names become blanks.
std::string to_string(const Measured&);
/// Throws Error with code parse: the line, the key, and what would be right.
Measured parse_measured(std::string_view text, int line);

}  // namespace fuse::schedule
