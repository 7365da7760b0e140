// One case on one device, measured. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/session.hpp>

#include "cases/cases.hpp"
#include "copy_rate.hpp"
#include "report/bench_json.hpp"
#include "timing.hpp"

namespace fuse::bench {

/// The case's name, dims and tags, by `by`; what was measured follows.
Json case_header(const Case& c, const std::string& by);

/// Bytes of a case without symbols: those that have to be read and written once, and those that its steps
/// move.
struct CaseTraffic {
  std::int64_t read = 0, written = 0, moved = 0;
  double elements = 0;  ///< of all values, temporaries too
};
CaseTraffic case_traffic(const Executable& executable);

/// A row of bench/schema.json's cases. Throws what compiling and running throw.
/// At most `check_elements` are checked, as check_case has it; of 0 nothing is.
Json measure_case(const Case& c, const Device& device, DeviceTimer& timer, CopyYardstick& yardstick,
                  double check_elements, const CompileOptions& options);

/// One line for a person, and the line above the first.
std::string case_line(const Json& row);
std::string case_heading();

}  // namespace fuse::bench
