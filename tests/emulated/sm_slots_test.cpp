// SmSlots of blocks: one launch has as many as schedule::blocks_per_sm says, and launches that
// schedule::fit_together accepts all have theirs, in whatever order they come.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulated/sm_slots.hpp"

#include <algorithm>
#include <random>

#include "support/catch.hpp"

namespace fuse::test {

using runtime::emulated::SmSlots;
using schedule::Residency;

TEST_CASE("one launch fills the device with blocks_per_sm each", "[emulated]") {
  for (const std::string_view name : target_profile_names()) {
    const Target target = target_profile(name);
    for (const int threads : {32, 64, 96, 128, 224, 256, 512}) {
      for (const int registers : {0, 24, 33, 40, 129, 255}) {
        for (const std::int64_t shared : {0, 16, 5000, 16384}) {
          const Residency launch{.threads = threads, .registers = registers, .shared_bytes = shared};
          SmSlots slots(target);
          int held = 0;
          while (slots.take(schedule::share_of_block(launch, target))) ++held;
          INFO(name << ": " << threads << " threads, " << registers << " registers, " << shared << " bytes");
          CHECK(held == target.sms * schedule::blocks_per_sm(launch, target));
        }
      }
    }
  }
}

TEST_CASE("a slot that was given back is free", "[emulated]") {
  const Target target = target_profile("tiny2");
  const auto share = schedule::share_of_block({.threads = 256, .registers = 32}, target);
  SmSlots slots(target);
  const auto first = slots.take(share), second = slots.take(share);
  REQUIRE((first && second));
  CHECK(first->multiprocessor != second->multiprocessor);
  CHECK_FALSE(slots.take(share));
  slots.give_back(*first, share);
  CHECK(slots.take(share) == first);
  CHECK_FALSE(slots.take(share));
}

TEST_CASE("launches that fit together have a slot for every block", "[emulated]") {
  const auto seed = std::random_device()();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
  int fitting = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const Target target = target_profile(draw(0, 1) ? "tiny3" : "tiny2");
    std::vector<Residency> launches;
    for (int i = draw(2, 3); i > 0; --i) {
      launches.push_back({.blocks = draw(1, 4),
                          .threads = 32 * draw(1, 4),
                          .registers = draw(0, 3) ? draw(16, 64) : Residency::unknown,
                          .shared_bytes = draw(0, 1) * draw(1, 4000)});
    }
    if (!fit_together(launches, target)) continue;
    ++fitting;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < launches.size(); ++i) {
      order.insert(order.end(), static_cast<std::size_t>(launches[i].blocks), i);
    }
    std::shuffle(order.begin(), order.end(), random);
    SmSlots slots(target);
    for (const std::size_t i : order) {
      INFO("trial " << trial << " on " << target.name);
      REQUIRE(slots.take(schedule::share_of_block(launches[i], target)));
    }
  }
  CHECK(fitting > 100);
}

}  // namespace fuse::test
