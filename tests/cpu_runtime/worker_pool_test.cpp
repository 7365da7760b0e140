// The threads of the cpu device: every chunk once, whoever calls, and no deadlock.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/cores/worker_pool.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "support/catch.hpp"
#include "support/sanitized.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fuse::test {
namespace {

using runtime::cpu::WorkerPool;

/// Counts the calls for each chunk, and sees whether a thread number is used twice at a time.
class Record {
 public:
  Record(std::int64_t chunks, int helpers)
      : calls_(static_cast<std::size_t>(chunks)), busy_(static_cast<std::size_t>(helpers) + 1) {}
  void operator()(std::int64_t chunk, int thread) const noexcept {
    if (thread < 0 || static_cast<std::size_t>(thread) >= busy_.size()) {
      wrong_ = true;
      return;
    }
    std::atomic<bool>& busy = busy_[static_cast<std::size_t>(thread)];
    if (busy.exchange(true)) wrong_ = true;
    ++calls_[static_cast<std::size_t>(chunk)];
    busy = false;
  }
  bool good() const {
    bool once = !wrong_;
    for (const auto& calls : calls_) once = once && calls == 1;
    return once;
  }

 private:
  mutable std::vector<std::atomic<int>> calls_;
  mutable std::vector<std::atomic<bool>> busy_;
  mutable std::atomic<bool> wrong_ = false;
};

bool runs_once(WorkerPool& pool, std::int64_t chunks) {
  const Record record(chunks, pool.helpers());
  const Status status = pool.run(chunks, record);
  return status && record.good();
}

/// Makes threads of its own for each call.
class PlainExecutor : public Executor {
 public:
  int threads() const override { return 3; }
  void run(int tasks, void (*task)(void*, int), void* context) override {
    std::vector<std::thread> threads;
    for (int i = 0; i < tasks; ++i) threads.emplace_back(task, context, i);
    for (std::thread& thread : threads) thread.join();
    ++runs;
  }
  int runs = 0;
};

TEST_CASE("a pool calls for every chunk once", "[runtime]") {
  for (const int threads : {1, 2, 3, 8}) {
    WorkerPool pool({.threads = threads});
    CHECK(pool.threads() == threads);
    for (const std::int64_t chunks : {0, 1, 2, 3, 7, 64, 1000}) {
      INFO(threads << " threads, " << chunks << " chunks");
      for (int round = 0; round < 20; ++round) CHECK(runs_once(pool, chunks));
    }
  }
}

TEST_CASE("workers that fell asleep are woken, and an idle pool ends", "[runtime]") {
  WorkerPool pool({.threads = 4, .pin = true});
  for (int round = 0; round < 20; ++round) {
    CHECK(runs_once(pool, 1 + round % 6));
    std::this_thread::sleep_for(std::chrono::microseconds(round * 100));
  }
  const WorkerPool unused({.threads = 8});
  for (int round = 0; round < 20; ++round) {
    WorkerPool short_lived({.threads = 3});
    CHECK(runs_once(short_lived, 3));
  }
}

TEST_CASE("a pool that ends right after a run does not wait for ever", "[runtime]") {
  const int pools = sanitized() ? 300 : 5000;
  for (int i = 0; i < pools; ++i) {
    WorkerPool pool({.threads = 2 + i % 3});
    REQUIRE(pool.run(2 + i % 5, [](std::int64_t, int) noexcept {}));
  }
}

TEST_CASE("slow chunks are waited for", "[runtime]") {
  WorkerPool pool({.threads = 4});
  std::atomic<int> done = 0;
  const auto slow = [&](std::int64_t chunk, int) noexcept {
    std::this_thread::sleep_for(std::chrono::milliseconds(chunk));
    ++done;
  };
  for (int round = 1; round < 6; ++round) {
    REQUIRE(pool.run(4, slow));
    CHECK(done == 4 * round);
  }
}

TEST_CASE("a run from inside a chunk runs there", "[runtime]") {
  WorkerPool pool({.threads = 4});
  std::atomic<int> calls = 0, elsewhere = 0;
  const Status status = pool.run(10, [&](std::int64_t, int) noexcept {
    const auto self = std::this_thread::get_id();
    const Status inner = pool.run(10, [&](std::int64_t, int thread) noexcept {
      if (thread != 0 || std::this_thread::get_id() != self) ++elsewhere;
      ++calls;
    });
    if (!inner) ++elsewhere;
  });
  CHECK(status);
  CHECK(calls == 100);
  CHECK(elsewhere == 0);
}

TEST_CASE("threads that run jobs at once do not wait for each other", "[runtime]") {
  WorkerPool pool({.threads = 3});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&, i] {
      for (int round = 0; round < 200; ++round) wrong += !runs_once(pool, 2 + (round + i) % 9);
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);

  // One holds the workers until the other is done.
  std::atomic<bool> other_done = false;
  std::thread other;
  const Status status = pool.run(3, [&](std::int64_t chunk, int) noexcept {
    if (chunk != 0) return;
    other = std::thread([&] {
      wrong += !runs_once(pool, 50);
      other_done = true;
    });
    while (!other_done) std::this_thread::yield();
  });
  other.join();
  CHECK(status);
  CHECK(wrong == 0);
}

TEST_CASE("an executor runs the chunks", "[runtime]") {
  const auto executor = std::make_shared<PlainExecutor>();
  WorkerPool pool({.threads = 1024, .executor = executor});
  CHECK(pool.threads() == 3);
  for (const std::int64_t chunks : {0, 1, 2, 3, 7, 1000}) CHECK(runs_once(pool, chunks));
  CHECK(executor->runs == 4);  // what is one chunk needs no threads
  WorkerPool fewer({.threads = 2, .executor = executor});
  CHECK(fewer.threads() == 2);
  CHECK(runs_once(fewer, 100));
}

/// What an executor must not do.
enum class Misdeed { throws_first, throws_last, throws_number, runs_none, runs_twice, runs_late, no_memory };

class BadExecutor final : public PlainExecutor {
 public:
  explicit BadExecutor(Misdeed misdeed) : misdeed_(misdeed) {}
  void run(int tasks, void (*task)(void*, int), void* context) override {
    if (misdeed_ == Misdeed::throws_first) throw std::runtime_error("no threads today");
    if (misdeed_ == Misdeed::throws_number) throw 42;
    if (misdeed_ == Misdeed::no_memory) throw std::bad_alloc();
    if (misdeed_ == Misdeed::runs_none) return;
    if (misdeed_ == Misdeed::runs_late) {
      late = [=] { task(context, 0); };
      return;
    }
    PlainExecutor::run(tasks, task, context);
    if (misdeed_ == Misdeed::runs_twice) PlainExecutor::run(tasks, task, context);
    if (misdeed_ == Misdeed::throws_last) throw std::runtime_error("too late");
  }
  std::function<void()> late;

 private:
  const Misdeed misdeed_;
};

TEST_CASE("an executor that fails is a failure of the run", "[runtime]") {
  const auto outcome = [](Misdeed misdeed) {
    WorkerPool pool({.threads = 8, .executor = std::make_shared<BadExecutor>(misdeed)});
    Status status;
    for (int round = 0; round < 3; ++round) status = pool.run(20, [](std::int64_t, int) noexcept {});
    return status;
  };
  CHECK(outcome(Misdeed::throws_first).code() == ErrorCode::driver);
  CHECK(outcome(Misdeed::throws_first).message() ==
        "the executor of the cpu device failed: no threads today");
  CHECK(outcome(Misdeed::throws_last).message() == "the executor of the cpu device failed: too late");
  CHECK(outcome(Misdeed::throws_number).message() == "the executor of the cpu device failed");
  CHECK(outcome(Misdeed::no_memory).code() == ErrorCode::out_of_memory);
  CHECK(outcome(Misdeed::runs_none));
  CHECK(outcome(Misdeed::runs_twice));
}

TEST_CASE("what an executor leaves out the caller does, and what it calls late does nothing", "[runtime]") {
  const auto executor = std::make_shared<BadExecutor>(Misdeed::runs_late);
  WorkerPool pool({.threads = 8, .executor = executor});
  for (int round = 0; round < 3; ++round) {
    CHECK(runs_once(pool, 20));
    executor->late();
  }
}

/// What `body` returns in a child process.
template <class F>
int in_child(const F& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("a forked process has no workers", "[runtime]") {
  auto pool = std::make_unique<WorkerPool>(WorkerPool::Options{.threads = 3});
  const auto all = [&] { return runs_once(*pool, 20) ? 1 : 0; };
  CHECK(in_child(all) == 1);  // no thread was there yet
  CHECK(all() == 1);
  const auto refused = [&] {
    const auto nothing = [](std::int64_t, int) noexcept {};
    const Status status = pool->run(20, nothing);
    const bool told = status.message().find("open the device after the fork") != std::string_view::npos;
    const bool alone = static_cast<bool>(pool->run(1, nothing));
    pool.reset();
    return status.code() == ErrorCode::unsupported && told && alone ? 1 : 0;
  };
  CHECK(in_child(refused) == 1);
  CHECK(all() == 1);

  // A fork from inside a job: its child never waits for who holds the pool.
  std::atomic<int> result = 0;
  REQUIRE(pool->run(2, [&](std::int64_t chunk, int) noexcept {
    if (chunk == 0) result = in_child(refused);
  }));
  CHECK(result == 1);
}

#if defined(__x86_64__)
TEST_CASE("workers treat subnormals as the caller does", "[runtime]") {
  WorkerPool pool({.threads = 4});
  const volatile float smallest = std::numeric_limits<float>::min();
  const auto count_flushed = [&] {
    std::atomic<int> flushed = 0;
    CHECK(pool.run(64, [&](std::int64_t, int) noexcept {
      flushed += smallest * 0.5f == 0;
      std::this_thread::sleep_for(std::chrono::microseconds(20));  // so that others come to a chunk
    }));
    return flushed.load();
  };
  CHECK(count_flushed() == 0);
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | 0x8000);
  const int flushed = count_flushed();
  _mm_setcsr(mode);
  CHECK(flushed == 64);
  CHECK(count_flushed() == 0);
}
#endif

}  // namespace
}  // namespace fuse::test
