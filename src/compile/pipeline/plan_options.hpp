// The options of a compilation that decide how a graph is planned, as a line of a file of decisions: what a
// file was made with, it is compiled with. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "compile/pipeline/pipeline.hpp"

namespace fuse {

/// "rules = fuse, layers = 3, max_inputs = 48, baseline = off, stitch = yes, cooperative = gain, schemes =
/// fuse, merge_gemms = yes, streams = 4".
std::string plan_options_text(const PipelineOptions&);

/// Sets what the text says and leaves the rest. Throws Error with code parse, whose message begins with
/// `where`: the key, and what would be right.
void read_plan_options(std::string_view text, std::string_view where, PipelineOptions&);

}  // namespace fuse
