// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace fuse::fusec {

Progress::Progress(std::string what)
    : what_(std::move(what)),
      since_(std::chrono::steady_clock::now()),
      terminal_(::isatty(STDERR_FILENO) == 1) {
  thread_ = std::thread([this] { show(); });
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Progress::now(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
  since_ = std::chrono::steady_clock::now();
  next_ = first_line;
}

void Progress::at(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
}

void Progress::print(const std::string& line) {
  const std::lock_guard lock(mutex_);
  clear();
  fmt::print("{}\n", line);
  std::fflush(stdout);  // before the progress that follows
}

void Progress::clear() {
  if (!std::exchange(shown_, false)) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
}

void Progress::show() {
  using namespace std::chrono_literals;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, 250ms, [this] { return done_; })) {
    const auto passed = std::chrono::steady_clock::now() - since_;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(passed);
    if (terminal_ && passed >= 2s) {
      fmt::print(stderr, "\r\033[K{} ... {} s", what_, seconds.count());
      std::fflush(stderr);
      shown_ = true;
    } else if (!terminal_ && passed >= next_) {
      fmt::print(stderr, "{} ... {} s\n", what_, seconds.count());
      next_ *= 2;
    }
  }
  clear();
}

}  // namespace fuse::fusec
