// The threads of a cpu device: with the thread that brings a job they take its chunks, one job at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <fuse/error.hpp>
#include <fuse/executor.hpp>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace fuse::runtime::cpu {

class WorkerPool {
 public:
  struct Options {
    int threads = 1;   ///< the calling thread counts as one; with an executor, at most so many of its tasks
    bool pin = false;  ///< each worker stays on one core; the calling thread is left alone
    std::shared_ptr<Executor> executor{};  ///< runs the chunks instead of threads of the pool
  };
  explicit WorkerPool(Options options);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int threads() const { return threads_; }
  /// The largest `thread` that a run passes.
  int helpers() const { return options_.executor ? threads_ : threads_ - 1; }
  bool has_executor() const { return options_.executor != nullptr; }

  /// Calls f(chunk, thread) once for every chunk from 0 to chunks - 1, and returns when all calls have
  /// returned. `thread` is 0 on the calling thread and from 1 to helpers() elsewhere: of the latter no two
  /// calls with one number run at once. While another thread's job runs, and from inside a chunk, the calling
  /// thread makes all calls itself. Fails where the executor threw, and in a process that was forked from the
  /// one whose threads ran jobs.
  template <class F>
  Status run(std::int64_t chunks, const F& f) noexcept {
    static_assert(std::is_nothrow_invocable_v<const F&, std::int64_t, int>);
    return run(chunks, Task{&f, [](const void* of, std::int64_t chunk, int thread) noexcept {
                              (*static_cast<const F*>(of))(chunk, thread);
                            }});
  }

 private:
  struct Task {  // a reference to a function
    const void* of = nullptr;
    void (*call)(const void* of, std::int64_t chunk, int thread) noexcept = nullptr;
  };

  Status run(std::int64_t chunks, Task task) noexcept;
  Status run_on_executor(int tasks) noexcept;
  void start_workers() noexcept;
  void serve(int worker, int core) noexcept;
  void await_change(std::uint32_t seen) noexcept;
  void wake(int wanted) noexcept;
  void open(std::int64_t chunks, Task task, int seats) noexcept;
  void close() noexcept;
  int join() noexcept;
  void leave() noexcept;
  void work_from_front() noexcept;
  void work_from_back(int thread) noexcept;

  const Options options_;
  const int threads_;
  const pid_t process_;  // in a fork of it the workers do not exist

  // The job. Only who holds `held_` writes it, while the gate is closed and nobody is inside.
  std::atomic<bool> held_ = false;
  std::int64_t chunks_ = 0;
  Task task_;
  unsigned float_mode_ = 0;  // the caller's, so that results do not depend on who computes them
  alignas(64) std::atomic<std::int64_t> taken_ = 0;  // chunks that somebody took
  std::atomic<std::int64_t> taken_from_back_ = 0;

  // Who may come into the job: the seats that are left in the upper half, who is inside in the lower one.
  // Nobody comes in where no seat is left, so that a worker that is late never sees the next job half
  // written.
  alignas(64) std::atomic<std::uint32_t> gate_ = 0;
  std::atomic<bool> caller_sleeps_ = false;

  alignas(64) std::atomic<std::uint32_t> epoch_ = 0;  // counts jobs; workers wait for it to change
  std::atomic<int> asleep_ = 0;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> started_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace fuse::runtime::cpu
