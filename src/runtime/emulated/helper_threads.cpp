// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulated/helper_threads.hpp"

#include <algorithm>

namespace fuse::runtime::emulated {

Pool::Pool(int helpers) {
  for (int i = 0; i < helpers; ++i)
    threads_.emplace_back([this](const std::stop_token& stop) { serve(stop); });
}

void Pool::run(const std::function<void()>& work, int helpers) {
  helpers = std::min(helpers, static_cast<int>(threads_.size()));
  if (helpers <= 0) return work();
  Job job{&work, helpers, 0};
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(&job);
  }
  helpers == 1 ? wake_.notify_one() : wake_.notify_all();
  work();
  std::unique_lock lock(mutex_);
  if (job.wanted > 0) std::erase(jobs_, &job);
  done_.wait(lock, [&] { return job.active == 0; });
}

void Pool::serve(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [this] { return !jobs_.empty(); })) {
    Job& job = *jobs_.front();
    ++job.active;
    if (--job.wanted == 0) jobs_.pop_front();
    lock.unlock();
    (*job.work)();
    lock.lock();
    --job.active;
    done_.notify_all();
  }
}

}  // namespace fuse::runtime::emulated
