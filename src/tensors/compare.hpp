// Compares a result with the exact one, element by element, under a bound.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "tensors/host_tensor.hpp"

namespace fuse::runtime {

struct CompareResult {
  std::size_t mismatches = 0;  ///< elements beyond their bound; at least 1 when the shapes differ
  double max_abs = 0;  ///< the greatest of |got - exact|; infinite where just one of them is NaN or infinite
  double max_rel = 0;  ///< the greatest of |(got - exact) / exact|
  /// The greatest of |got - exact| / bound: at most 1 where nothing is beyond its bound.
  double max_bound_ratio = 0;
  std::size_t worst_index = 0;  ///< the first element with the greatest ratio
  std::string text{};           ///< one line for a person

  bool ok() const { return mismatches == 0; }
};

/// The error allowed at an element; 0 asks for equality.
using Bound = std::function<double(std::size_t index, double exact)>;

/// NaN equals NaN of any bits; an infinity equals only itself, whatever the bound; -0 equals 0. The dtypes
/// may differ (bf16 against an f64 oracle), the shapes may not. Two integer tensors are compared exactly.
/// Never throws for what the tensors hold.
CompareResult compare(const HostTensor& got, const HostTensor& exact, const Bound& bound);

/// bound = abs + rel * |exact|
CompareResult compare(const HostTensor& got, const HostTensor& exact, double abs, double rel);

}  // namespace fuse::runtime
