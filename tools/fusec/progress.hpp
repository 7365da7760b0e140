// Progress: what goes on, once it has taken long enough that one may wonder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace fuse::fusec {

/// Writes to stderr. On a terminal it is one line, from two seconds on, which is cleared behind it and before
/// results; elsewhere a line after ten seconds, and after twice the time each. Thread safe.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// The next thing that goes on.
  void now(std::string what);
  /// How far it has come: the same thing goes on.
  void at(std::string what);
  /// A line of results, to stdout.
  void print(const std::string& line);

 private:
  static constexpr std::chrono::seconds first_line{10};

  void show();
  void clear();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_;
  std::chrono::steady_clock::time_point since_;
  std::chrono::seconds next_ = first_line;  // when the next line is due, where it is not a terminal
  const bool terminal_;
  bool shown_ = false;
  bool done_ = false;
  std::thread thread_;
};

/// Seconds since it was made.
class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace fuse::fusec
