// SPDX-License-Identifier: Apache-2.0
#include "schedule/search/couple.hpp"

#include <algorithm>
#include <limits>

namespace fuse::schedule {
namespace {

constexpr std::int64_t most_designs = std::numeric_limits<std::int64_t>::max();

std::int64_t times(std::int64_t designs, std::int64_t options) {
  return designs > most_designs / options ? most_designs : designs * options;
}

bool same_access(const Loop& a, const Loop& b) {
  return a.extent == b.extent && a.may_be_blocks == b.may_be_blocks && a.may_be_threads == b.may_be_threads;
}

}  // namespace

std::int64_t options_of(const Loop& loop) {
  return (loop.may_be_blocks ? 2 : 1) * (loop.may_be_threads ? 2 : 1);
}

CoupledLoops coupled(const std::vector<Loop>& loops) {
  constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> first(loops.size());  // the first loop of each loop's class
  for (std::size_t i = 0; i < loops.size(); ++i) {
    first[i] = i;
    for (const std::size_t parent : loops[i].descends_from) {
      if (!same_access(loops[i], loops[parent]) || first[i] == first[parent]) continue;
      const std::size_t kept = std::min(first[i], first[parent]), gone = std::max(first[i], first[parent]);
      for (std::size_t j = 0; j <= i; ++j) first[j] = first[j] == gone ? kept : first[j];
    }
  }
  CoupledLoops result;
  std::vector<std::size_t> number(loops.size(), none);
  for (std::size_t i = 0; i < loops.size(); ++i) {
    result.designs_before = times(result.designs_before, options_of(loops[i]));
    std::size_t& own = number[first[i]];
    if (own == none) {
      own = result.classes.size();
      result.classes.emplace_back();
      result.designs_after = times(result.designs_after, options_of(loops[i]));
    } else {
      ++result.coupled;
    }
    result.class_of.push_back(own);
    result.classes[own].push_back(i);
  }
  return result;
}

}  // namespace fuse::schedule
