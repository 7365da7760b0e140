// Fault: one thing that a compilation gets wrong on purpose, to see that the check, `fusec bisect` or the
// checked device finds it. Experiments::fault and FUSE_FAULT name it; a pipeline plants one at most.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/executable.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "ir/kernel/passes/plant_fault.hpp"
#include "passes/plant_rewrite.hpp"

namespace fuse {

using Fault = std::variant<kernel::PlantedFault, ir::WrongRewrite>;

/// "barrier.3", "extent.12+1", "rewrite.simplify.3".
std::string to_string(const Fault&);
std::optional<Fault> parse_fault(std::string_view);
/// The text of what the options ask for, else of FUSE_FAULT; empty: nothing.
std::string fault_text(const CompileOptions&);

}  // namespace fuse
