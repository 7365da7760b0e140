// What the tests of decisions share: graphs compiled by a text, and what is said of a wrong one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/fuse.hpp>
#include <string>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "schedule/decisions/gemm_decisions.hpp"
#include "support/catch.hpp"

namespace fuse::test {

inline const Target& h200_target() {
  static const Target target = target_profile("h200");
  return target;
}

/// `versions`: of a kernel, at most.
inline Compiled compiled_with(const Graph& g, const std::string& decisions, bool skip = false,
                              const char* profile = "h200", int versions = 1) {
  CompileOptions options{.versions = versions};
  options.decisions = decisions;
  options.skip_unfit_decisions = skip;
  PipelineOptions how = pipeline_options(options);
  how.record = true;
  return run_pipeline(ir_of(g), target_profile(profile), how);
}

inline std::string decisions_text(const Compiled& compiled, const Target& target = h200_target()) {
  return print(decisions_of(compiled, target));
}

/// A file of no entry.
inline std::string no_decisions(const Target& target = h200_target()) {
  return "fuse decisions 4\ntarget {" + schedule::target_text(target) + "}\n";
}

/// "user: the message\n  hint: the hint", with the code; "no error".
template <class F>
std::string refusal_of(F action) {
  try {
    action();
  } catch (const Error& error) {
    return std::string(to_string(error.code())) + ": " + error.info().message +
           "\n  hint: " + error.info().hint;
  }
  return "no error";
}

inline std::string refusal(const Graph& g, const std::string& decisions) {
  return refusal_of([&] { compiled_with(g, decisions); });
}

}  // namespace fuse::test
