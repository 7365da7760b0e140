// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace fuse::fusec {

Progress::Progress(std::string what) : what_(std::move(what)), since_(std::chrono::steady_clock::now()) {
  if (::isatty(STDERR_FILENO) == 1) thread_ = std::thread([this] { show(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
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
}

void Progress::show() {
  using namespace std::chrono_literals;
  std::unique_lock lock(mutex_);
  bool shown = false;
  while (!changed_.wait_for(lock, 250ms, [this] { return done_; })) {
    const auto passed = std::chrono::steady_clock::now() - since_;
    if (passed < 2s) continue;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(passed).count();
    fmt::print(stderr, "\r\033[K{} ... {} s", what_, seconds);
    std::fflush(stderr);
    shown = true;
  }
  if (shown) fmt::print(stderr, "\r\033[K");
}

}  // namespace fuse::fusec
