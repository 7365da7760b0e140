// F_max as a variable of the search: the most inputs of a kernel, which Dali's rule of fusion (2.2) takes as
// given. The paper finds 3 the best of those that it tried, and 6 forty times slower.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace fuse::schedule {

struct BestMaxInputs {
  int max_inputs = 48;
  double seconds = 0;
  int tried = 0;
};

/// The number with which `predicted`, the seconds of the whole graph, is least, of 3, 6, 12, 24 and the
/// default, 48. Where several are equal it is the default, or else the largest.
BestMaxInputs best_max_inputs(const std::function<double(int max_inputs)>& predicted);

}  // namespace fuse::schedule
