// Epochs, and the ways to spread equivalent work over streams (Astra, 4.5.3 to 4.5.5).
// SPDX-License-Identifier: Apache-2.0
#include "explore/epochs.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

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

TEST_CASE("an epoch is the work of one level, and its classes are what is alike", "[explore]") {
  // Three of kind 7, of which the last is followed by another kind; one that nothing places.
  const std::vector<Work> work = {{{}, 7, 1.0}, {{}, 7, 1.0}, {{}, 7, 1.0}, {{}, 0, 1.0},
                                  {{0, 1}, 8},  {{2, 3}, 9},  {{4, 5}, 8}};
  CHECK(levels_of(work) == std::vector<int>{0, 0, 0, 0, 1, 1, 2});
  const std::vector<Epoch> epochs = epochs_of(work);
  REQUIRE(epochs.size() == 2);  // the last level has one
  REQUIRE(epochs[0].classes.size() == 2);
  std::vector<std::vector<std::uint32_t>> members;
  for (const EquivalenceClass& each : epochs[0].classes) members.push_back(each.members);
  std::sort(members.begin(), members.end());
  CHECK(members == std::vector<std::vector<std::uint32_t>>{{0, 1}, {2}});
  CHECK(epochs[0].seconds() == 3);
  CHECK(epochs[1].level == 1);
  CHECK(epochs[1].classes.size() == 2);
  CHECK(epochs[0].key != epochs[1].key);
}

TEST_CASE("epochs that are alike have one key", "[explore]") {
  // Two steps in time of the same four kernels.
  std::vector<Work> work;
  for (std::uint32_t step = 0; step < 3; ++step) {
    const auto first = static_cast<std::uint32_t>(work.size());
    for (int i = 0; i < 2; ++i)
      work.push_back({first > 0 ? std::vector{first - 1} : std::vector<std::uint32_t>(), 3});
    work.push_back({{first, first + 1}, 4});
  }
  const std::vector<Epoch> epochs = epochs_of(work);
  REQUIRE(epochs.size() == 3);
  CHECK(epochs[0].key != epochs[1].key);  // nothing comes before the first
  CHECK(epochs[1].key == epochs[2].key);
}

TEST_CASE("an epoch is placed in each way once, the most balanced first", "[explore]") {
  const auto epoch_of = [](const std::vector<std::pair<int, double>>& classes) {
    Epoch epoch;
    std::uint32_t next = 0;
    for (const auto& [count, seconds] : classes) {
      EquivalenceClass& own = epoch.classes.emplace_back();
      own.seconds = seconds;
      for (int i = 0; i < count; ++i) own.members.push_back(next++);
    }
    return epoch;
  };
  const std::vector<Placement> ten = placements(epoch_of({{10, 1.0}}), 2, 100);
  REQUIRE(ten.size() == 6);
  CHECK(ten.front() == Placement{0, 0, 0, 0, 0, 1, 1, 1, 1, 1});
  CHECK(ten.back() == Placement(10, 0));
  CHECK(placements(epoch_of({{10, 1.0}}), 2, 3).size() == 3);
  // Three that differ: together, one beside two, and each by itself.
  CHECK(placements(epoch_of({{1, 1.0}, {1, 1.0}, {1, 1.0}}), 3, 100).size() == 5);
  // The long one is alone.
  CHECK(placements(epoch_of({{1, 5.0}, {2, 1.0}}), 2, 100).front() == Placement{0, 1, 1});
  // Many are moved in bundles.
  const std::vector<Placement> many = placements(epoch_of({{1000, 1.0}}), 4, 8);
  REQUIRE(many.size() == 8);
  for (const std::uint8_t stream : {0, 1, 2, 3}) CHECK(std::ranges::count(many.front(), stream) == 250);
}
