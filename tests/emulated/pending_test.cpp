// When a launch that waits runs, and which queue hears of its failure.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulated/pending.hpp"

#include <atomic>
#include <thread>

#include "support/catch.hpp"

namespace fuse::test {
namespace {

using runtime::emulated::Launch;
using runtime::emulated::Pending;

/// Launches are told apart by their seeds. Those above 100 fail.
struct Log {
  std::vector<std::vector<std::uint64_t>> runs;
  std::vector<std::uint64_t> finished;
  Pending pending{[this](std::span<Launch* const> launches) {
                    runs.emplace_back();
                    for (const Launch* launch : launches) runs.back().push_back(launch->seed);
                  },
                  [this](Launch& launch) {
                    finished.push_back(launch.seed);
                    return launch.seed > 100 ? Status(ErrorCode::kernel_fault, std::to_string(launch.seed))
                                             : Status();
                  }};

  void add(Pending::Slot& slot, std::uint64_t seed) {
    auto launch = std::make_unique<Launch>();
    launch->seed = seed;
    pending.add(slot, std::move(launch));
  }
};

}  // namespace

TEST_CASE("a launch runs when its queue is settled, with those of other queues", "[emulated]") {
  Log log;
  Pending::Slot a, b, idle;
  log.add(b, 2);
  log.add(a, 1);
  CHECK(log.pending.settle(idle));
  CHECK(log.runs.empty());
  CHECK(log.pending.settle(a));
  CHECK(log.runs == std::vector<std::vector<std::uint64_t>>{{2, 1}});
  CHECK(log.finished == std::vector<std::uint64_t>{2, 1});
  CHECK(log.pending.settle(b));
  CHECK(log.pending.settle(a));
  CHECK(log.runs.size() == 1);
  log.add(a, 3);
  log.pending.settle_all();
  CHECK(log.runs.back() == std::vector<std::uint64_t>{3});
}

TEST_CASE("a failure is told once to its own queue, and to each that waits for it before", "[emulated]") {
  Log log;
  Pending::Slot a, b;
  log.add(a, 101);
  log.add(b, 5);
  CHECK(log.pending.settle(b));
  CHECK(std::string(log.pending.await(a).message()) == "101");
  CHECK(std::string(log.pending.await(a).message()) == "101");
  CHECK(std::string(log.pending.settle(a).message()) == "101");
  CHECK(log.pending.settle(a));
  CHECK(log.pending.await(a));
  log.add(a, 102);
  CHECK(std::string(log.pending.await(a).message()) == "102");
  CHECK(log.runs.size() == 2);
  CHECK_FALSE(log.pending.settle(a));
}

TEST_CASE("what waits has run when the device goes", "[emulated]") {
  Log log;
  Pending::Slot a;
  log.add(a, 103);
  log.pending.close();
  CHECK(log.finished.size() == 1);
  CHECK(std::string(log.pending.settle(a).message()) == "103");
  log.pending.settle_all();
  CHECK(log.pending.settle(a));
}

TEST_CASE("queues of several threads: each launch runs once", "[emulated]") {
  Log log;
  constexpr int repeats = 5000;
  std::atomic<int> wrong = 0;
  const auto work = [&](std::uint64_t id) {
    Pending::Slot slot;
    for (int i = 0; i < repeats; ++i) {
      log.add(slot, id);
      const Status status = log.pending.settle(slot);
      wrong += bool(status) != (id <= 100);
    }
  };
  std::vector<std::thread> threads;
  for (const std::uint64_t id : {1, 2, 101, 102}) threads.emplace_back(work, id);
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(log.finished.size() == 4 * repeats);
}

}  // namespace fuse::test
