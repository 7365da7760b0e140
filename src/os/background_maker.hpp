// BackgroundMaker: makes things on a thread of its own, one after the other, while others go on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace fuse {

/// Several threads may ask and take.
template <class Wanted, class Made>
class BackgroundMaker {
 public:
  /// Does not throw.
  using Make = std::function<Made(const Wanted&)>;

  explicit BackgroundMaker(Make make) : make_(std::move(make)), thread_([this] { work(); }) {}
  BackgroundMaker(const BackgroundMaker&) = delete;
  BackgroundMaker& operator=(const BackgroundMaker&) = delete;
  /// Waits for what is being made.
  ~BackgroundMaker() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  /// Asks for one, unless it was asked for and not taken.
  void ask(const Wanted& wanted) {
    const std::lock_guard lock(mutex_);
    if (made_.contains(wanted) || std::find(asked_.begin(), asked_.end(), wanted) != asked_.end()) return;
    asked_.push_back(wanted);
    changed_.notify_all();
  }
  /// What was made, once; null: nothing yet.
  std::unique_ptr<Made> take(const Wanted& wanted) {
    const std::lock_guard lock(mutex_);
    const auto found = made_.find(wanted);
    if (found == made_.end()) return nullptr;
    auto made = std::make_unique<Made>(std::move(found->second));
    made_.erase(found);
    return made;
  }
  /// Waits until nothing is asked for.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return asked_.empty(); });
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ends_ || !asked_.empty(); });
      if (ends_) return;
      const Wanted wanted = asked_.front();
      lock.unlock();
      Made made = make_(wanted);
      lock.lock();
      made_.emplace(wanted, std::move(made));
      asked_.pop_front();
      changed_.notify_all();
    }
  }

  const Make make_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Wanted> asked_;     // the first is being made
  std::map<Wanted, Made> made_;  // and not taken
  bool ends_ = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace fuse
