// The reduction that the tests' kernels built by hand have. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "ir/kernel/kernel.hpp"

namespace fuse::test {

/// combined = left + right, of values of one type.
inline kernel::Reduction sum_reduction(DType type, kernel::VarId left, kernel::VarId right,
                                       kernel::VarId combined) {
  kernel::Reduction sum{.op = ir::Op::reduce_sum,
                        .state = {type},
                        .identity = {{0, 0}},
                        .left = {left},
                        .right = {right},
                        .result = {combined},
                        .region = {},
                        .single = ir::Op::add};
  sum.region.push_back({kernel::Let{combined, kernel::Compute{ir::Op::add, {left, right}}}, {}});
  return sum;
}

}  // namespace fuse::test
