// A Source compiled for the host: its kernels with their entry points.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/backend.hpp"
#include "runtime/emulated/abi.hpp"
#include "runtime/emulated/compiler.hpp"

namespace fuse::runtime::emulated {

struct Kernel final : Function, std::enable_shared_from_this<Kernel> {
  std::shared_ptr<const void> library;  ///< keeps the code loaded
  codegen::KernelInfo info;
  Entry entry = nullptr;
  int first_line = 0, last_line = 0;  ///< of its text, for the checker's table of access sites
};

class EmulatedModule final : public Module {
 public:
  /// Compiles on at most `threads` processes at once; 0: one a core.
  EmulatedModule(const codegen::Source& source, const Compiler& compiler, bool checked, int threads);
  const Function& function(const std::string& name) const override;

 private:
  std::unordered_map<std::string, std::shared_ptr<const Kernel>> kernels_;
};

}  // namespace fuse::runtime::emulated
