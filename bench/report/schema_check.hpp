// Checks results against bench/schema.json. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "report/bench_json.hpp"

namespace fuse::bench {

/// What is wrong, a line each: "cases[3].device_us: misses median". Empty where the value fits. Knows the
/// keywords that bench/schema.json uses; throws std::runtime_error for any other.
std::vector<std::string> schema_errors(const Json& value, const Json& schema);

}  // namespace fuse::bench
