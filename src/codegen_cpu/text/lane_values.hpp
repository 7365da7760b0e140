// Lane values: which values and indices of a kernel differ between the lanes of a warp. What is the same in
// all lanes is one number in the text of the cpu device, and what differs is 32.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "ir/kernel/kernel.hpp"

namespace fuse::codegen {

class LaneValues {
 public:
  explicit LaneValues(const kernel::Kernel&);
  bool differs(kernel::VarId var) const { return vars_[var]; }
  bool differs(const Dim& index) const;
  bool differs(const kernel::IndexLess& condition) const {
    return differs(condition.index) || differs(condition.bound);
  }

 private:
  void walk(const std::vector<kernel::Stmt>& body);
  bool differs(const kernel::Rhs& rhs) const;

  const kernel::Kernel& kernel_;
  std::set<std::string, std::less<>> names_{};  ///< indices that differ
  std::vector<bool> vars_{};
};

}  // namespace fuse::codegen
