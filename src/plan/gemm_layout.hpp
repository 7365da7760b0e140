// GemmLayout: where a GEMM reads or writes the matrices of an operand or its result, so that no step has to
// copy or transpose them (docs/gemm.md). SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/dim.hpp>
#include <string>

namespace fuse::schedule {

/// Strides are in elements. Element (i, j) of matrix q of call p is at
/// p * outer_stride + q * inner_stride + i * row + j.
struct GemmLayout {
  Dim row{};
  Dim inner = 1, inner_stride = 0;  ///< matrices per call
  Dim outer = 1, outer_stride = 0;  ///< calls
  bool operator==(const GemmLayout&) const = default;
};

/// "rows 768 apart, 12 matrices 64 apart, 2 calls 98304 apart"
std::string to_string(const GemmLayout&);

}  // namespace fuse::schedule
