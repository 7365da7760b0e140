// Program: a compiled graph as runs and their errors need it, without the graph and the compiler's stages.
// What is saved and cached is a program with its binary. SPDX-License-Identifier: Apache-2.0
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
  std::string lines;  ///< the user's lines of all that it computes: "main.cpp:4, main.cpp:7", as many as fit
  std::string op, type;       ///< op and type of the last value that it makes: "reduce_sum", "f32[4]"
  SourceLocation location{};  ///< the user's line of that value
};

struct Program {
  Signature signature;
  schedule::Plan plan{};              ///< the nodes of its steps belong to a graph that is gone: see origins
  schedule::StreamChoices streams{};  ///< choices for the steps that have work
  schedule::RunDecision run{};        ///< the decision for all steps, which comes first
  std::string source_name{};          ///< "softmax": the file of the kernels is softmax.cu
  std::vector<codegen::KernelInfo> kernels{};  ///< the same as the source's
  std::vector<StepOrigin> origins{};           ///< by Step::origin
  std::vector<std::string> groups{};           ///< ops of each group, by number: "max, sub, exp in softmax"
  /// What the setup computes, and where in the packed memory: equal texts, equal memory.
  std::string setup{};
  /// Of the first of several builds (docs/versions.md): which of them runs for which dims.
  schedule::VersionTable builds{};
};

/// Throws an internal Error unless plan, kernels, slots and origins fit each other.
void verify(const Program&);

}  // namespace fuse::runtime
