// Runs an executable in the ways that a case asks for. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/executable.hpp>
#include <vector>

#include "fuzz/grow/generated_program.hpp"

namespace fuse::fuzz {

using Results = runtime::Values;

/// The outputs of each run. Every run has other buffers and other packed memory than the one before it, whose
/// memory is overwritten; all runs have one workspace. Throws what prepare and run report.
std::vector<Results> run_results(const Executable&, const RunOptions&, const runtime::Values& inputs,
                                 const DimValues& dims);

/// The same of two executables that run at once, on a thread each.
std::vector<Results> run_together(const Executable& a, const Executable& b, const RunOptions&,
                                  const runtime::Values& inputs, const DimValues& dims);

/// The executable, saved to a file and loaded again.
Executable through_file(const Executable&);

}  // namespace fuse::fuzz
