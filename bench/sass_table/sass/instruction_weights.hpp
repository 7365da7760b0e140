// How often a warp issues each instruction of a kernel: the control flow of its SASS, with the counts of
// loops and conditions that its kernel IR has. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sass_table/sass/disassembly.hpp"
#include "sass_table/sass/executions.hpp"

namespace fuse::bench::sass {

/// Code that counts as never run: what calls a slow routine, or a warp whose threads have diverged.
struct Unweighted {
  std::string routine;
  int calls = 0;         ///< in the code
  int instructions = 0;  ///< of these calls; the routine's own are not in it
  bool operator==(const Unweighted&) const = default;
};

struct WeightedInstruction {
  Instruction instruction;
  double weight = 0;  ///< issues for each warp of the launch
  int buffer = -1;    ///< of a global access: the parameter that it accesses; -1 where that is not known
};

struct Weights {
  std::vector<WeightedInstruction> code;  ///< the kernel's, and what it calls that is not slow
  std::vector<Unweighted> slow;
  std::vector<std::string> waits;  ///< loops that wait for other blocks, counted once: their lines
};

/// `text`: the whole source, whose lines are those of the instructions. Throws std::runtime_error where a
/// loop of the SASS is none of the kernel IR.
Weights weights_of(const std::vector<Function>& functions, const Executions&, std::string_view text,
                   int arch);

}  // namespace fuse::bench::sass
