// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/cores/worker_pool.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>

#include "base/formatted_status.hpp"
#include "runtime/cpu/cores/machine.hpp"
#include "runtime/device/hot_path_check.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fuse::runtime::cpu {
namespace {

constexpr std::uint32_t one_seat = 1u << 16, inside_mask = one_seat - 1;
constexpr int most_pool_threads = 1024;
// A launch that follows another within this time finds the workers awake: a wake-up takes the kernel some 5
// to 50 us.
constexpr std::chrono::microseconds spin_time{100};

void relax() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Whether `done` came true before the time to spin was over.
template <class Done>
bool spin_until(const Done& done) noexcept {
  const auto until = std::chrono::steady_clock::now() + spin_time;
  do {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

/// How the calling thread rounds and treats subnormals. Elsewhere than on x86-64 threads are taken to agree.
unsigned float_mode() noexcept {
#if defined(__x86_64__)
  constexpr unsigned flags = 0x3f;  // what has happened, which is no mode
  return _mm_getcsr() & ~flags;
#else
  return 0;
#endif
}

/// While one lives, the calling thread has that mode.
class FloatMode {
 public:
  explicit FloatMode(unsigned mode) noexcept : own_(float_mode()), other_(mode != own_) {
    if (other_) set(mode);
  }
  ~FloatMode() {
    if (other_) set(own_);
  }
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
  static void set([[maybe_unused]] unsigned mode) noexcept {
#if defined(__x86_64__)
    _mm_setcsr(mode);
#endif
  }
  const unsigned own_;
  const bool other_;
};

void stay_on([[maybe_unused]] int core) noexcept {
#ifdef __linux__
  if (core < 0 || core >= CPU_SETSIZE) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  // Where it is refused the worker runs on any core, which is slower and not wrong.
  static_cast<void>(pthread_setaffinity_np(pthread_self(), sizeof set, &set));
#endif
}

/// Moves the calling thread to that core, which it may leave again. A thread begins on the core of the one
/// that made it, and the kernel may take tens of milliseconds to see that another core is idle.
void begin_on([[maybe_unused]] int core) noexcept {
#ifdef __linux__
  cpu_set_t before;
  if (pthread_getaffinity_np(pthread_self(), sizeof before, &before) != 0) return;
  stay_on(core);
  static_cast<void>(pthread_setaffinity_np(pthread_self(), sizeof before, &before));
#endif
}

/// The cores that the process may use, the one of the calling thread first.
std::vector<int> cores_from_here() {
  std::vector<int> cores = allowed_cores();
#ifdef __linux__
  const auto here = std::find(cores.begin(), cores.end(), sched_getcpu());
  if (here != cores.end()) std::rotate(cores.begin(), here, cores.end());
#endif
  return cores;
}

/// While one lives, threads that are made take no signals: handlers of the application run on its own
/// threads.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

int threads_of(const WorkerPool::Options& options) {
  const int most =
      options.executor ? std::min(options.executor->threads(), options.threads) : options.threads;
  return std::clamp(most, 1, most_pool_threads);
}

}  // namespace

WorkerPool::WorkerPool(Options options)
    : options_(std::move(options)), threads_(threads_of(options_)), process_(::getpid()) {}

WorkerPool::~WorkerPool() {
  if (::getpid() != process_) {
    for (std::thread& worker : workers_) worker.detach();  // there is nobody to join
    return;
  }
  stop_.store(true);
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

Status WorkerPool::run(std::int64_t chunks, Task task) noexcept {
  const auto alone = [&] {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) task.call(task.of, chunk, 0);
    return Status();
  };
  if (chunks <= 1 || threads_ == 1) return alone();
  if (::getpid() != process_) {
    if (!started_.load(std::memory_order_relaxed)) return alone();
    return {
        ErrorCode::unsupported,
        "this process was forked from the one that the cpu device's threads run in: open the device after "
        "the fork"};
  }
  if (held_.exchange(true, std::memory_order_acquire)) return alone();
  const int helpers = static_cast<int>(std::min<std::int64_t>(chunks - 1, this->helpers()));
  Status status;
  if (options_.executor) {
    started_.store(true, std::memory_order_relaxed);
    const int tasks = static_cast<int>(std::min<std::int64_t>(chunks, threads_));
    open(chunks, task, tasks);
    status = run_on_executor(tasks);
  } else {
    if (!started_.load(std::memory_order_relaxed)) start_workers();
    open(chunks, task, std::min(helpers, static_cast<int>(workers_.size())));
    wake(helpers);
  }
  if (status) work_from_front();
  close();
  held_.store(false, std::memory_order_release);
  return status;
}

// A task that the executor calls too often or too late, against its promise, finds no seat.
Status WorkerPool::run_on_executor(int tasks) noexcept {
  const auto task = [](void* context, int) noexcept {
    auto& pool = *static_cast<WorkerPool*>(context);
    const int seat = pool.join();
    if (seat == 0) return;
    {
      const FloatMode mode(pool.float_mode_);
      pool.work_from_back(seat);
    }
    pool.leave();
  };
  try {
    options_.executor->run(tasks, task, this);
    return {};
  } catch (const std::bad_alloc&) {
    return {ErrorCode::out_of_memory, "the executor of the cpu device ran out of memory"};
  } catch (const std::exception& error) {
    return status(ErrorCode::driver, "the executor of the cpu device failed: {}", error.what());
  } catch (...) {
    return {ErrorCode::driver, "the executor of the cpu device failed"};
  }
}

void WorkerPool::start_workers() noexcept {
  const contract::Pause once;  // the threads stay: later runs allocate nothing
  started_.store(true, std::memory_order_relaxed);
  try {
    const std::vector<int> cores = options_.pin ? allowed_cores() : cores_from_here();
    const SignalsBlocked blocked;
    workers_.reserve(static_cast<std::size_t>(threads_) - 1);
    for (int worker = 1; worker < threads_; ++worker) {
      // The first core is left to the calling thread.
      const int core = cores.empty() ? -1 : cores[static_cast<std::size_t>(worker) % cores.size()];
      workers_.emplace_back([this, worker, core] { serve(worker, core); });
    }
  } catch (const std::exception&) {  // no more threads: those that run do it all
  }
}

void WorkerPool::serve(int worker, int core) noexcept {
  options_.pin ? stay_on(core) : begin_on(core);
  for (std::uint32_t seen = 0;;) {
    await_change(seen);
    seen = epoch_.load();
    // Asked after the load: who has seen the last change waits for none.
    if (stop_.load()) return;
    if (join() == 0) continue;
    {
      const FloatMode mode(float_mode_);
      work_from_back(worker);
    }
    leave();
  }
}

void WorkerPool::await_change(std::uint32_t seen) noexcept {
  if (spin_until([&] { return epoch_.load(std::memory_order_acquire) != seen; })) return;
  // Either the next caller sees that somebody sleeps, or the wait sees that the number has changed.
  asleep_.fetch_add(1);
  epoch_.wait(seen);
  asleep_.fetch_sub(1);
}

void WorkerPool::wake(int wanted) noexcept {
  epoch_.fetch_add(1);
  const int asleep = asleep_.load();
  const int missing = wanted - (static_cast<int>(workers_.size()) - asleep);
  if (asleep == 0 || missing <= 0) return;
  if (missing >= asleep) return epoch_.notify_all();
  for (int i = 0; i < missing; ++i) epoch_.notify_one();
}

void WorkerPool::open(std::int64_t chunks, Task task, int seats) noexcept {
  chunks_ = chunks;
  task_ = task;
  float_mode_ = float_mode();
  taken_.store(0, std::memory_order_relaxed);
  taken_from_back_.store(0, std::memory_order_relaxed);
  gate_.store(static_cast<std::uint32_t>(seats) * one_seat, std::memory_order_release);
}

void WorkerPool::close() noexcept {
  gate_.fetch_and(inside_mask);
  if (spin_until([&] { return gate_.load(std::memory_order_acquire) == 0; })) return;
  caller_sleeps_.store(true);
  for (std::uint32_t inside = gate_.load(); inside != 0; inside = gate_.load()) gate_.wait(inside);
  caller_sleeps_.store(false);
}

/// The seat that was taken, counted from 1; 0: there was none.
int WorkerPool::join() noexcept {
  std::uint32_t gate = gate_.load(std::memory_order_relaxed);
  while (gate >= one_seat) {
    if (gate_.compare_exchange_weak(gate, gate - one_seat + 1, std::memory_order_acquire,
                                    std::memory_order_relaxed)) {
      return static_cast<int>(gate / one_seat);
    }
  }
  return 0;
}

void WorkerPool::leave() noexcept {
  if (gate_.fetch_sub(1) == 1 && caller_sleeps_.load()) gate_.notify_all();
}

// Chunks are handed out from both ends: the caller meets the same end of the arrays call after call, so that
// its core's caches have them, and one whose workers are still waking takes chunks instead of waiting.
void WorkerPool::work_from_front() noexcept {
  for (std::int64_t chunk = 0; taken_.fetch_add(1, std::memory_order_relaxed) < chunks_; ++chunk)
    task_.call(task_.of, chunk, 0);
}

void WorkerPool::work_from_back(int thread) noexcept {
  while (taken_.fetch_add(1, std::memory_order_relaxed) < chunks_) {
    const std::int64_t chunk = chunks_ - 1 - taken_from_back_.fetch_add(1, std::memory_order_relaxed);
    task_.call(task_.of, chunk, thread);
  }
}

}  // namespace fuse::runtime::cpu
