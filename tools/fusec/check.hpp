// Comparing what a device made with the reference. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "runtime/host_tensor.hpp"
#include "runtime/reference/reference_tensor.hpp"

namespace fuse::fusec {

struct Verdict {
  bool ok = false;
  std::string text;       ///< one line
  double over_bound = 0;  ///< largest error over its bound; of integers and bools, 0 where all are equal
};

/// Floats: an element may be off the exact value by 4 times the largest error that op-by-op evaluation in the
/// same types makes anywhere in this output, or by 4 units in the last place of its own. Where that
/// evaluation (or the exact one) is not finite, the element has to be what it is. Integers and bools equal
/// it.
Verdict check_output(const runtime::HostTensor& got, const runtime::ReferenceTensor& exact,
                     const runtime::ReferenceTensor& same_type);

}  // namespace fuse::fusec
