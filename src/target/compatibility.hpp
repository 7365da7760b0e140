// Fit: a property of the device that a plan and its kernels were made for. They run where all of these are
// the same. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "target/target.hpp"

namespace fuse::runtime {

struct Fit {
  std::string field, value;  ///< "multiprocessors", "132"
  bool operator==(const Fit&) const = default;
};

/// The properties of fuse and of the target that a plan depends on. Backend::fits adds what its kernels
/// depend on.
std::vector<Fit> fits_of(const Target&);

/// "multiprocessors is 132, here 108; arch is sm_90, here sm_80"; empty where nothing differs.
std::string differences(const std::vector<Fit>& made_for, const std::vector<Fit>& here);

}  // namespace fuse::runtime
