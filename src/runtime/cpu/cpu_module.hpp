// A Binary of shared libraries that the cpu device runs: its kernels with their entry points.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "plan/binary.hpp"
#include "plan/cpu_abi.hpp"
#include "runtime/device/backend.hpp"

namespace fuse::runtime::cpu {

struct Kernel final : Function {
  std::shared_ptr<const void> library;  ///< keeps the code loaded
  codegen::KernelInfo info;
  Entry entry = nullptr;
};

/// The kernel, where the function is one of a cpu device; else null. Every cpu device of the process can run
/// it.
const Kernel* kernel_of(const Function& function) noexcept;

class CpuModule final : public Module {
 public:
  /// Throws io where the temporary directory is to blame, broken_install for libraries of another machine.
  explicit CpuModule(std::shared_ptr<const Binary> loaded);
  const Function& function(const std::string& name) const override;

 private:
  std::unordered_map<std::string, std::unique_ptr<const Kernel>> kernels_;
};

}  // namespace fuse::runtime::cpu
