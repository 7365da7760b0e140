// SPDX-License-Identifier: Apache-2.0
#include "base/lists.hpp"

#include <algorithm>
#include <vector>

#include "support/catch.hpp"

namespace {

std::vector<std::vector<int>> as_vectors(const fuse::Lists<int>& lists) {
  std::vector<std::vector<int>> result;
  for (std::size_t i = 0; i < lists.size(); ++i) result.emplace_back(lists[i].begin(), lists[i].end());
  return result;
}

}  // namespace

TEST_CASE("lists: items go to the last list", "[base]") {
  fuse::Lists<int> lists;
  CHECK(as_vectors(lists).empty());
  lists.begin();
  lists.begin();
  for (const int item : {3, 1, 2}) lists.push_back(item);
  lists.begin();
  lists.push_back(4);
  CHECK(as_vectors(lists) == std::vector<std::vector<int>>{{}, {3, 1, 2}, {4}});
  std::sort(lists[1].begin(), lists[1].end());
  CHECK(as_vectors(lists) == std::vector<std::vector<int>>{{}, {1, 2, 3}, {4}});
}

TEST_CASE("lists: grouped items keep their order", "[base]") {
  const auto lists = fuse::Lists<int>::grouped(4, [](auto&& add) {
    for (const int item : {9, 4, 8, 1, 5, 6}) add(static_cast<std::size_t>(item % 3), item);
  });
  CHECK(as_vectors(lists) == std::vector<std::vector<int>>{{9, 6}, {4, 1}, {8, 5}, {}});
  CHECK(as_vectors(fuse::Lists<int>::grouped(0, [](auto&&) {})).empty());
}
