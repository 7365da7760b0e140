// The command line: options, their checks and helps. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace fuse::fusec {

/// Returns the exit status: 0, or 1 where a check failed. Throws Error.
using Action = std::function<int()>;

/// What the command line asks for; --help and --version are answered at once, and leave nothing to do. Wrong
/// use is a user Error.
Action parse_command_line(int argc, const char* const* argv);

}  // namespace fuse::fusec
