// Launches that spin, of several workspaces at a time: each has its slots, or runs in parts.
// SPDX-License-Identifier: Apache-2.0
#include <fuse/fuse.hpp>
#include <random>
#include <thread>

#include "base/access.hpp"
#include "compile/compile.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "runtime/device/residency_ledger.hpp"
#include "support/branches.hpp"
#include "support/catch.hpp"
#include "support/grid_kernels.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

using runtime::ResidencyLedger;
using schedule::Residency;

/// On tiny2 two such blocks fit a multiprocessor, by its block slots: four in all.
schedule::Alternatives one(std::int64_t blocks) {
  return {{Residency{.blocks = blocks, .threads = 64, .registers = 32}}};
}

Graph sums(const CustomKernel& kernel) {
  Graph g("sums");
  g.output("y", custom_call(kernel, {g.input("x", i32, {kernel.grid, 64})}, i32, {2 * kernel.grid}));
  return g;
}

/// Fills x with `seed` and its followers; whether y is right.
class Numbers {
 public:
  Numbers(WholeRun& run, std::int32_t seed) : run_(run) {
    const std::int64_t rows = run.prepared.shape(0)[0];
    std::vector<std::int32_t> x;
    std::int32_t total = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      expected_.push_back(0);
      for (int i = 0; i < 64; ++i) {
        x.push_back(seed++ % 1000);
        expected_.back() += x.back();
      }
      total += expected_.back();
    }
    expected_.resize(static_cast<std::size_t>(2 * rows), total);
    run.buffers[0].upload(std::as_bytes(std::span(x)));
  }
  bool right() const {
    std::vector<std::int32_t> y(expected_.size());
    run_.buffers[1].download(std::as_writable_bytes(std::span(y)));
    return y == expected_;
  }

 private:
  WholeRun& run_;
  std::vector<std::int32_t> expected_;
};

}  // namespace

TEST_CASE("the ledger grants what fits beside what it granted", "[runtime][residency]") {
  const Target tiny2 = target_profile("tiny2");
  const auto ledger = std::make_shared<ResidencyLedger>();
  auto three = ledger->reserve(one(3), nullptr, tiny2);
  REQUIRE(three);
  CHECK_FALSE(ledger->reserve(one(2), nullptr, tiny2));
  CHECK(ledger->reserve(one(1), nullptr, tiny2));  // and given back at once
  CHECK(ledger->reserve({}, nullptr, tiny2));      // nothing is always granted
  auto last = ledger->reserve(one(1), nullptr, tiny2);
  CHECK_FALSE(ledger->reserve(one(1), nullptr, tiny2));
  three.reset();
  CHECK(ledger->reserve(one(3), nullptr, tiny2));
  last.reset();
  CHECK(ledger->reserve(one(4), nullptr, tiny2));
  CHECK_FALSE(ledger->reserve(one(5), nullptr, tiny2));
}

TEST_CASE("reservations that take turns hold the slots of one of them", "[runtime][residency]") {
  const Target tiny2 = target_profile("tiny2");
  const auto ledger = std::make_shared<ResidencyLedger>();
  const int memory = 0, other = 0;
  const auto three = ledger->reserve(one(3), &memory, tiny2);
  auto four = ledger->reserve(one(4), &memory, tiny2);
  CHECK(four);
  CHECK_FALSE(ledger->reserve(one(1), &other, tiny2));  // beside the four
  four.reset();
  CHECK(ledger->reserve(one(1), &other, tiny2));
  // What a run has beside itself counts together, what it orders counts by the worst.
  const schedule::Alternatives beside = {{one(2)[0][0], one(2)[0][0]}}, ordered = {one(2)[0], one(1)[0]};
  const auto fresh = std::make_shared<ResidencyLedger>();
  const auto held = fresh->reserve(ordered, nullptr, tiny2);
  REQUIRE(held);
  CHECK_FALSE(fresh->reserve(beside, nullptr, tiny2));
  CHECK(fresh->reserve(ordered, nullptr, tiny2));
}

TEST_CASE("alternatives fit where each choice of them fits", "[runtime][residency]") {
  const Target target = target_profile("tiny3");
  const auto seed = std::random_device()();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
  int fit = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<schedule::Alternatives> runs(static_cast<std::size_t>(draw(1, 3)));
    for (schedule::Alternatives& run : runs) {
      run.resize(static_cast<std::size_t>(draw(1, 2)));
      for (auto& list : run) {
        for (int n = draw(1, 2); n > 0; --n) {
          list.push_back({.blocks = draw(1, 3), .threads = 32 * draw(1, 4), .registers = draw(16, 64)});
        }
      }
    }
    // Every choice of a list from each run, as one run of all its launches.
    bool all = true;
    const auto count = [&](std::size_t i) { return i < runs.size() ? runs[i].size() : 1; };
    for (std::size_t i = 0; i < count(0); ++i) {
      for (std::size_t j = 0; j < count(1); ++j) {
        for (std::size_t k = 0; k < count(2); ++k) {
          std::vector<Residency> there;
          const std::size_t choice[] = {i, j, k};
          for (std::size_t r = 0; r < runs.size(); ++r)
            there.insert(there.end(), runs[r][choice[r]].begin(), runs[r][choice[r]].end());
          all = all && schedule::fit_together(there, target);
        }
      }
    }
    CHECK(schedule::fit_together(runs, target) == all);
    fit += all;
  }
  CHECK(fit > 10);
  CHECK(fit < 290);
}

TEST_CASE("a device has one ledger, however often a process opens it", "[runtime][residency]") {
  const int library = 0, gpu = 0, other = 0;
  const auto ledger = ResidencyLedger::of(&library, &gpu);
  CHECK(ResidencyLedger::of(&library, &gpu) == ledger);
  CHECK(ResidencyLedger::of(&library, &other) != ledger);
}

// Where nobody counted registers, tiny2 is taken to hold four blocks of 64 threads.
TEST_CASE("a workspace that finds no slots runs in parts", "[runtime][residency][emulated]") {
  const Device device = Device::emulated({.profile = "tiny2"});
  const Executable first = compile(sums(row_sums_and_total_in_parts(4)), device);
  const Executable second = compile(sums(row_sums_and_total_in_parts(1)), device);
  auto holder = std::make_unique<WholeRun>(first);
  CHECK_FALSE(holder->workspace.split());
  WholeRun parts(second);
  CHECK(parts.workspace.split());
  CHECK(parts.prepared.launches() == 1);
  CHECK(parts.prepared.explain().find("a workspace holds slots for step 1, kernel 'row_sums_and_total' "
                                      "(custom_call), or runs 2 launches where there are none") !=
        std::string::npos);
  const Numbers in_holder(*holder, 1), in_parts(parts, 7);
  REQUIRE(holder->run());
  REQUIRE(parts.run());
  holder->stream.synchronize().throw_if_failed();
  parts.stream.synchronize().throw_if_failed();
  CHECK(in_holder.right());
  CHECK(in_parts.right());

  // In the memory of the first its runs take turns with it, and so they do for slots.
  if (holder->prepared.workspace_bytes() > 0) {
    const Workspace turn = holder->prepared.workspace(holder->workspace.memory());
    CHECK_FALSE(turn.split());
  }
  holder.reset();
  WholeRun whole(second);
  CHECK_FALSE(whole.workspace.split());
  const Numbers in_whole(whole, 9);
  REQUIRE(whole.run());
  whole.stream.synchronize().throw_if_failed();
  CHECK(in_whole.right());
  CHECK(parts.workspace.split());
}

TEST_CASE("without parts a workspace that finds no slots is refused", "[runtime][residency][emulated]") {
  const Device device = Device::emulated({.profile = "tiny2"});
  const Executable executable = compile(sums(row_sums_and_total(4)), device);
  auto first = std::make_unique<WholeRun>(executable);
  const Prepared prepared = executable.prepare();
  try {
    const Workspace none = prepared.workspace();
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::out_of_residency);
    INFO(error.info().message);
    CHECK(error.info().message.find("tiny2") != std::string::npos);
    CHECK(error.info().message.find("kernel 'row_sums_and_total' (custom_call)") != std::string::npos);
    CHECK(error.info().hint.find("give the kernel parts") != std::string::npos);
  }
  const Numbers before(*first, 3);
  REQUIRE(first->run());
  first->stream.synchronize().throw_if_failed();
  CHECK(before.right());
  first.reset();
  WholeRun next(executable);
  const Numbers after(next, 4);
  REQUIRE(next.run());
  next.stream.synchronize().throw_if_failed();
  CHECK(after.right());
}

TEST_CASE("runs of two executables that reserve nothing deadlock", "[runtime][residency][emulated]") {
  const Device device = Device::emulated({.profile = "tiny2"});
  const Graph g = sums(row_sums_and_total_in_parts(3));
  for (const bool reserve : {true, false}) {
    INFO("reserve " << reserve);
    std::vector<std::unique_ptr<WholeRun>> runs;
    for (int i = 0; i < 2; ++i) {
      Compiled compiled = run_pipeline(ir_of(g), target_profile("tiny2"));
      compiled.streams.order_cooperative = reserve;
      runs.push_back(
          std::make_unique<WholeRun>(runtime::make_executable(ir_of(g), std::move(compiled), device)));
    }
    const Numbers a(*runs[0], 1), b(*runs[1], 2);
    REQUIRE(runs[0]->run());
    REQUIRE(runs[1]->run());
    const Status first = runs[0]->stream.synchronize(), second = runs[1]->stream.synchronize();
    if (reserve) {
      REQUIRE(first);
      REQUIRE(second);
      CHECK(a.right());
      CHECK(b.right());
      CHECK_FALSE(runs[0]->workspace.split());
      CHECK(runs[1]->workspace.split());
    } else {
      CHECK_FALSE(second);
      CHECK(std::string(first ? second.message() : first.message()).find("deadlock on tiny2 (greedy)") !=
            std::string::npos);
    }
  }
}

TEST_CASE("16 threads with a workspace each: some whole, some in parts", "[runtime][residency][emulated]") {
  const Device device = Device::emulated({.profile = "tiny2"});
  const Executable executable = compile(sums(row_sums_and_total_in_parts(3)), device);
  std::atomic<int> wrong{0}, whole{0}, parts{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 10; ++round) {
        WholeRun run(executable);
        ++(run.workspace.split() ? parts : whole);
        const Numbers numbers(run, 100 * t + round);
        const Status done = run.run();
        if (!done || !run.stream.synchronize() || !numbers.right()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(whole >= 1);
  CHECK(whole + parts == 160);
}
