// Build: what runs, for all dims or for a part of their range (docs/versions.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/program.hpp"
#include "runtime/device/backend.hpp"

namespace fuse::runtime {

/// A program with its kernels.
struct Build {
  std::shared_ptr<const Program> program;    ///< for the reference device, the signature alone
  std::shared_ptr<const Module> module{};    ///< null: it has no kernels
  std::vector<const Function*> functions{};  ///< for each kernel, its function
  /// Of several builds, the plan of the setup alone. Each run's setup is that of all builds, since the packed
  /// memory is the same for all dims; builds with equal setups share theirs. Empty: it is that of another
  /// one.
  std::optional<schedule::Plan> setup{};
  /// The plan with the fallback launches of all its cooperative kernels, for runs that find the device's
  /// slots taken. Empty: it has none.
  std::optional<schedule::Plan> split{};
  /// For each step of the plan, of `split`, and of the setup, step_text.
  std::vector<std::string> texts{}, split_texts{}, setup_texts{};
};

}  // namespace fuse::runtime
