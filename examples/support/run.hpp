// What every example does around its own work: errors to an exit status, a sign of life on a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <fuse/error.hpp>
#include <mutex>
#include <string>
#include <thread>

namespace example {

/// Runs the body of main. Wrong use is status 2, everything else that throws is status 1.
template <class Body>
int run(Body&& body) {
  try {
    return body();
  } catch (const fuse::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return error.kind() == fuse::ErrorKind::user ? 2 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}

/// On a terminal, says after two seconds what takes so long.
class Progress {
 public:
  explicit Progress(std::string what) : what_(std::move(what)) {
    if (::isatty(STDERR_FILENO) == 1) thread_ = std::thread([this] { show(); });
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  void show() {
    std::unique_lock lock(mutex_);
    bool shown = false;
    while (!changed_.wait_for(lock, std::chrono::milliseconds(500), [this] { return done_; })) {
      if (seconds() < 2) continue;
      std::fprintf(stderr, "\r\033[K%s ... %.0f s", what_.c_str(), seconds());
      shown = true;
    }
    if (shown) std::fprintf(stderr, "\r\033[K");
  }

  const std::string what_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace example
