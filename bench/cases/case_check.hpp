// Is what a case computed right? SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "cases/cases.hpp"
#include "tensors/host_tensor.hpp"

namespace fuse::bench {

struct CaseError {
  std::optional<double> over_bound;  ///< empty where nothing was checked
  std::string checked;               ///< "all", "the first 128 of 65536 rows", or why nothing
  bool ok = true;
  std::string text{};  ///< what is wrong
};

/// Compares y with the exact reference, by the bound of `fusec run --check`. A large case is checked on its
/// first rows, where rows are independent. `elements` and `flops` say what evaluating all of it would cost;
/// the reference evaluates at most `most_elements`, which takes a few seconds on a few cores for 8e6.
CaseError check_case(const Case& c, const runtime::HostTensor& y, double elements, double flops,
                     double most_elements);

}  // namespace fuse::bench
