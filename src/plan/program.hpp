// Program: a compiled graph as a run needs it, and as its errors tell of it: no graph, no stage of the
// compiler. What is saved and cached is a program with its binary. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/binary.hpp"
#include "plan/group_id.hpp"
#include "plan/plan.hpp"
#include "plan/run_decision.hpp"
#include "plan/signature.hpp"
#include "plan/stream_plan.hpp"

namespace fuse::runtime {

/// What a step of the plan was made of.
struct StepOrigin {
  std::string ops;  ///< "reduce_sum in layer_norm.mean; sub, exp in softmax"
  schedule::GroupId group = schedule::no_group;
  std::string lines;     ///< the user's, of all that it computes: "main.cpp:4, main.cpp:7", as many as fit
  std::string op, type;  ///< of the value that it makes last: "reduce_sum", "f32[4]"
  SourceLocation location{};  ///< and the user's line
};

struct Program {
  Signature signature;
  schedule::Plan plan{};                       ///< its steps' nodes are of no graph that is here: see origins
  schedule::StreamChoices streams{};           ///< of the steps that have work
  schedule::RunDecision run{};                 ///< of all steps, before those
  std::string source_name{};                   ///< "softmax": the file of the kernels is softmax.cu
  std::vector<codegen::KernelInfo> kernels{};  ///< as the source's
  std::vector<StepOrigin> origins{};           ///< by Step::origin
  std::vector<std::string> groups{};           ///< by number: what the group has, "max, sub, exp in softmax"
};

/// Throws an internal Error unless plan, kernels, slots and origins fit each other.
void verify(const Program&);

}  // namespace fuse::runtime
