// A Binary of shared libraries: its kernels with their entry points.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/binary.hpp"
#include "plan/emulated_abi.hpp"
#include "runtime/device/backend.hpp"

namespace fuse::runtime::emulated {

struct Kernel final : Function, std::enable_shared_from_this<Kernel> {
  std::shared_ptr<const void> library;  ///< keeps the code loaded
  codegen::KernelInfo info;
  Entry entry = nullptr;
};

class EmulatedModule final : public Module {
 public:
  /// Throws io where the temporary directory is to blame, broken_install for libraries of another machine.
  explicit EmulatedModule(std::shared_ptr<const Binary> loaded);
  const Function& function(const std::string& name) const override;

 private:
  std::unordered_map<std::string, std::shared_ptr<const Kernel>> kernels_;
};

}  // namespace fuse::runtime::emulated
