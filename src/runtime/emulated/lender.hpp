// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace fuse::runtime::emulated {

/// Objects that are costly to make, lent to one user at a time.
template <class T>
class Lender {
 public:
  /// May throw what T's constructor throws.
  std::unique_ptr<T> borrow() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto taken = std::move(idle_.back());
        idle_.pop_back();
        return taken;
      }
    }
    return std::make_unique<T>();
  }
  void give_back(std::unique_ptr<T> item) {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < most_idle) idle_.push_back(std::move(item));
  }

 private:
  // A cooperative kernel borrows one for each of its blocks: more than are worth keeping.
  static constexpr std::size_t most_idle = 64;
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> idle_;
};

}  // namespace fuse::runtime::emulated
