// OS threads that help a launching thread to run its blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace fuse::runtime::emulated {

class Pool {
 public:
  explicit Pool(int helpers);
  /// Runs `work` on the calling thread and on up to `helpers` others at once; returns when all are out of
  /// it. `work` must not throw. Any number of threads may call this at a time.
  void run(const std::function<void()>& work, int helpers);

 private:
  struct Job {
    const std::function<void()>* work;
    int wanted;  // helpers still to come
    int active;  // helpers at work
  };
  void serve(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::condition_variable done_;
  std::deque<Job*> jobs_;
  std::vector<std::jthread> threads_;  // last: joined before the rest is destroyed
};

}  // namespace fuse::runtime::emulated
