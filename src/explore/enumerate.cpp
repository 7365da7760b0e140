// SPDX-License-Identifier: Apache-2.0
#include "explore/enumerate.hpp"

#include <algorithm>
#include <functional>

namespace fuse::explore {

std::vector<std::vector<int>> stream_counts(int kernels, int streams, bool may_be_empty) {
  std::vector<std::vector<int>> found;
  std::vector<int> counts;
  const int least = may_be_empty ? 0 : 1;
  const std::function<void(int, int)> put = [&](int left, int most) {
    const int after = streams - static_cast<int>(counts.size()) - 1;  // streams behind this one
    if (after < 0) {
      if (left == 0) found.push_back(counts);
      return;
    }
    for (int count = std::min(most, left - after * least); count >= least; --count) {
      if (std::int64_t{count} * (after + 1) < left) break;  // later streams have no more than this one
      counts.push_back(count);
      put(left - count, count);
      counts.pop_back();
    }
  };
  put(kernels, kernels);
  return found;
}

}  // namespace fuse::explore
