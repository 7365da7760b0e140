// F_max as a variable of the search: the most inputs of a kernel, which Dali's rule of fusion (2.2) takes as
// given. The paper finds 3 the best of those that it tried, and 6 forty times slower.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace fuse::schedule {

struct BestMaxInputs {
  int max_inputs = 0;
  double seconds = 0;
  int tried = 0;
};

/// Numbers that are tried instead of a larger one.
inline constexpr int fewer_inputs[] = {24, 12, 6, 3};

/// The number with which `predicted`, the seconds of the whole graph, is least: the usual one, or one of
/// `fewer_inputs` below it. Where several are equal it is the largest.
BestMaxInputs best_max_inputs(int usual, const std::function<double(int max_inputs)>& predicted);

}  // namespace fuse::schedule
