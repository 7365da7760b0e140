// SPDX-License-Identifier: Apache-2.0
#include "schedule/search/max_inputs.hpp"

namespace fuse::schedule {

BestMaxInputs best_max_inputs(int usual, const std::function<double(int max_inputs)>& predicted) {
  BestMaxInputs best{usual, predicted(usual), 1};
  for (const int fewer : fewer_inputs) {
    if (fewer >= usual) continue;
    const double seconds = predicted(fewer);
    ++best.tried;
    if (seconds < best.seconds) best = {fewer, seconds, best.tried};
  }
  return best;
}

}  // namespace fuse::schedule
