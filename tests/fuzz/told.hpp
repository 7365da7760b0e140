// Programs compiled again by the decisions that were written of them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "fuzz/grow/generated_program.hpp"

namespace fuse::fuzz {

struct Told {
  std::string differs{};       ///< what is not the same by the same decisions, and both texts; empty: nothing
  std::size_t decisions = 0;   ///< answers and kernels
  bool model_differs = false;  ///< without them, the other costs give another plan or text
};

/// Compiles the case, writes its decisions, and compiles it by them for a device of other speeds: so no cost
/// may decide anything that the text does not say.
Told told_again(const Case&);

}  // namespace fuse::fuzz
