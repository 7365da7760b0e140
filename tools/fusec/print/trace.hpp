// A run as a Chrome trace, which chrome://tracing and ui.perfetto.dev show: streams as rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/executable.hpp>
#include <string>
#include <vector>

namespace fuse::fusec {

/// One process a profile, one thread a stream, in microseconds. JSON text.
std::string chrome_trace(const std::vector<Profile>& profiles);

}  // namespace fuse::fusec
