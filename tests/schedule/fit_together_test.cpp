// What fit_together admits, against every way in which blocks can come and every slot that each may take.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <random>
#include <set>

#include "support/catch.hpp"
#include "target/residency.hpp"

namespace fuse::test {
namespace {

using schedule::Residency;
using schedule::Share;
using schedule::SubPartition;

/// Plays all ways to place the blocks of some launches, one block at a time.
class AllPlacings {
 public:
  AllPlacings(const std::vector<Residency>& launches, const Target& target) {
    State empty;
    Room room{.slots = target.max_blocks_per_sm, .shared = target.shared_per_sm};
    room.subpartitions.fill({target.max_threads_per_sm / target.warp_size / 4, target.registers_per_sm / 4});
    empty.rooms.assign(static_cast<std::size_t>(target.sms), room);
    for (const Residency& launch : launches) {
      shares_.push_back(share_of_block(launch, target));
      empty.left.push_back(launch.blocks);
    }
    visit(std::move(empty));
  }
  /// Whether in some of them a block finds no slot.
  bool stuck() const { return stuck_; }

 private:
  struct Room {
    std::int64_t slots = 0, shared = 0;
    std::array<SubPartition, 4> subpartitions{};
  };
  struct State {
    std::vector<Room> rooms;
    std::vector<std::int64_t> left;  // blocks of each launch
  };

  /// Rooms, and the subpartitions of one, are alike but for what they hold.
  static std::vector<std::int64_t> key_of(const State& state) {
    std::vector<std::vector<std::int64_t>> rooms;
    for (const Room& room : state.rooms) {
      std::array<std::pair<std::int64_t, std::int64_t>, 4> subpartitions;
      for (std::size_t i = 0; i < 4; ++i)
        subpartitions[i] = {room.subpartitions[i].warps, room.subpartitions[i].registers};
      std::sort(subpartitions.begin(), subpartitions.end());
      rooms.push_back({room.slots, room.shared});
      for (const auto& [warps, registers] : subpartitions) {
        rooms.back().push_back(warps);
        rooms.back().push_back(registers);
      }
    }
    std::sort(rooms.begin(), rooms.end());
    std::vector<std::int64_t> key = state.left;
    for (const auto& room : rooms) key.insert(key.end(), room.begin(), room.end());
    return key;
  }

  void visit(State state) {
    if (stuck_ || !seen_.insert(key_of(state)).second) return;
    for (std::size_t launch = 0; launch < shares_.size(); ++launch) {
      if (state.left[launch] == 0) continue;
      std::vector<State> next;
      for (std::size_t sm = 0; sm < state.rooms.size(); ++sm) {
        State after = state;
        Room& room = after.rooms[sm];
        --after.left[launch];
        --room.slots;
        room.shared -= shares_[launch].shared;
        if (room.slots >= 0 && room.shared >= 0)
          place(std::move(after), sm, 0, shares_[launch].warps, shares_[launch], next);
      }
      if (next.empty()) stuck_ = true;
      for (State& after : next) visit(std::move(after));
    }
  }

  /// Every way in which the warps can lie in the subpartitions from `subpartition` on.
  static void place(State state, std::size_t sm, std::size_t subpartition, int warps, const Share& share,
                    std::vector<State>& next) {
    if (warps == 0) {
      next.push_back(std::move(state));
      return;
    }
    if (subpartition == 4) return;
    place(state, sm, subpartition + 1, warps, share, next);
    SubPartition& room = state.rooms[sm].subpartitions[subpartition];
    if (room.warps < 1 || room.registers < share.registers) return;
    --room.warps;
    room.registers -= share.registers;
    place(std::move(state), sm, subpartition, warps - 1, share, next);
  }

  std::vector<Share> shares_;
  std::set<std::vector<std::int64_t>> seen_;
  bool stuck_ = false;
};

/// Two multiprocessors of four subpartitions, each of so many warps and six units of registers.
Target small_target(int warps) {
  Target target = target_profile("tiny2");
  target.max_threads_per_block = target.max_threads_per_sm = 4 * 32 * warps;
  target.max_blocks_per_sm = 4;
  target.registers_per_sm = 4 * 6 * 256;
  target.shared_per_sm = 4 * 1280;
  return target;
}

TEST_CASE("residency: warps may lie so that registers are left in segments", "[schedule][residency]") {
  const Target target = small_target(3);
  // A multiprocessor holds two blocks of either: six warps of two units of registers, four warps of three.
  // But the four may lie in one subpartition each, and of the three units left there one warp of the six
  // takes two.
  const Residency six{.blocks = 1, .threads = 6 * 32, .registers = 16};
  const Residency four{.blocks = 2, .threads = 4 * 32, .registers = 24};
  CHECK(blocks_per_sm(six, target) == 2);
  CHECK(blocks_per_sm(four, target) == 2);
  CHECK(AllPlacings({six, four}, target).stuck());
  CHECK_FALSE(fit_together(std::vector{six, four}, target));
  CHECK(fit_together(std::vector{six, six, six}, target));
  CHECK(fit_together(std::vector{four, four}, target));
}

TEST_CASE("residency: of what fits together no block is ever without a slot", "[schedule][residency]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
  int fitted = 0, refused_rightly = 0, refused = 0;
  for (int round = 0; round < 800; ++round) {
    const Target target = small_target(draw(2, 4));
    std::vector<Residency> launches(static_cast<std::size_t>(draw(2, 3)));
    for (Residency& launch : launches) {
      launch = {.blocks = draw(1, 2),
                .threads = 32 * draw(1, 6),
                .registers = 8 * draw(1, 6),
                .shared_bytes = draw(0, 2) == 0 ? draw(1, 1536) : 0};
    }
    const bool fits = fit_together(launches, target);
    if (!fits && round % 4 != 0) continue;
    const bool stuck = AllPlacings(launches, target).stuck();
    std::string text;
    for (const Residency& l : launches) {
      text += std::to_string(l.blocks) + " blocks of " + std::to_string(l.threads) + " threads, " +
              std::to_string(l.registers) + " registers, " + std::to_string(l.shared_bytes) + " bytes; ";
    }
    INFO(text);
    if (fits) REQUIRE_FALSE(stuck);
    fitted += fits;
    refused += !fits;
    refused_rightly += !fits && stuck;
  }
  CHECK(fitted > 30);
  CHECK(refused_rightly > refused / 2);
}

}  // namespace
}  // namespace fuse::test
