// SPDX-License-Identifier: Apache-2.0
#include "schedule/search/max_inputs.hpp"

namespace fuse::schedule {

BestMaxInputs best_max_inputs(const std::function<double(int max_inputs)>& predicted) {
  BestMaxInputs best;
  for (const int max_inputs : {48, 24, 12, 6, 3}) {
    const double seconds = predicted(max_inputs);
    if (best.tried == 0 || seconds < best.seconds) {
      best.max_inputs = max_inputs;
      best.seconds = seconds;
    }
    ++best.tried;
  }
  return best;
}

}  // namespace fuse::schedule
