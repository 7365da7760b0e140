// What generated programs answer, for an evaluator outside of this process (tests/oracle).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fuse::fuzz {

/// Runs programs [first, first + count) of a run and writes to stdout what went in and came out, line by
/// line. All tensors are their bytes in hexadecimal digits, row-major; they stand in the order of the graph's
/// signature.
///   program INDEX                 says which program is next, before it runs
///   graph TEXT                    its `.fuse` text, in hexadecimal digits too
///   run VALUE...                  one run: the values of the declared dims, in their order
///   input BYTES
///   output DEVICE LEAST GREATEST  what the device answered, and its bounds (running_error.hpp)
///   done VERDICT TEXT             what this process thinks of it (execute.hpp)
int answer(std::uint64_t seed, std::uint64_t first, std::int64_t count);

}  // namespace fuse::fuzz
