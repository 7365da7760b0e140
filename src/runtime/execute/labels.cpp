// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/labels.hpp"

namespace fuse::runtime {
namespace {

using schedule::Step;

/// A shared kernel names itself, its ops and its lines by the first segment that runs it: what the device
/// says is about that one, what stands before it is about this step.
std::string text_of_another(const Program& program, const Step& step) {
  const auto* work = std::get_if<schedule::KernelStep>(&step.work);
  if (!work) return {};
  const std::string& kernel = program.kernels[work->kernel].name;
  return kernel == step.name ? "" : fmt::format(", which runs '{}'", kernel);
}

}  // namespace

std::string step_text(const Program& program, const Step& step) {
  std::string ops = program.origins[step.origin].ops;
  // A status has 509 bytes in all; what the device says must fit too.
  constexpr std::size_t longest = 200;
  if (ops.size() > longest) ops.replace(longest, std::string::npos, "...");
  return fmt::format("'{}'{}{}{}{}", step.name, ops.empty() ? "" : " (", ops, ops.empty() ? "" : ")",
                     text_of_another(program, step));
}

}  // namespace fuse::runtime
