// Which of a kernel's buffers an instruction accesses: its address comes from that parameter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sass_table/sass/disassembly.hpp"

namespace fuse::bench::sass {

/// Of each instruction: the parameter, counted from 0, that its address comes from; -1 for instructions that
/// access no global memory, and where none of the first `buffers` parameters, which are pointers, is it.
std::vector<int> buffers_of(const std::vector<Instruction>&, int buffers, int arch);

}  // namespace fuse::bench::sass
