// The ways to spread equivalent kernels over streams (Astra, 4.5.5). SPDX-License-Identifier: Apache-2.0
#include "explore/enumerate.hpp"

#include <numeric>
#include <set>

#include "support/catch.hpp"

using namespace fuse::explore;

TEST_CASE("ten equivalent kernels on two streams are spread in 5 ways, or 6 with an empty stream",
          "[explore]") {
  CHECK(stream_counts(10, 2, false).size() == 5);
  CHECK(stream_counts(10, 2, true).size() == 6);
  CHECK(stream_counts(10, 2, true).front() == std::vector<int>{10, 0});
  CHECK(stream_counts(10, 2, false).front() == std::vector<int>{9, 1});
  CHECK(stream_counts(10, 2, false).back() == std::vector<int>{5, 5});
}

TEST_CASE("each way to spread kernels is there once, whatever the number of streams", "[explore]") {
  for (int kernels = 0; kernels <= 7; ++kernels) {
    for (int streams = 1; streams <= 4; ++streams) {
      for (const bool may_be_empty : {false, true}) {
        INFO(kernels << " kernels, " << streams << " streams, empty " << may_be_empty);
        // All assignments of kernels to streams, as sorted counts.
        std::set<std::vector<int>> ways;
        int assignments = 1;
        for (int i = 0; i < kernels; ++i) assignments *= streams;
        for (int number = 0; number < assignments; ++number) {
          std::vector<int> counts(static_cast<std::size_t>(streams));
          for (int i = 0, rest = number; i < kernels; ++i, rest /= streams)
            ++counts[static_cast<std::size_t>(rest % streams)];
          std::sort(counts.rbegin(), counts.rend());
          if (may_be_empty || counts.back() > 0) ways.insert(counts);
        }
        const std::vector<std::vector<int>> found = stream_counts(kernels, streams, may_be_empty);
        CHECK(found.size() == ways.size());
        CHECK(std::set(found.begin(), found.end()) == ways);
      }
    }
  }
}
