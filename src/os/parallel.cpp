// SPDX-License-Identifier: Apache-2.0
#include "os/parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <fuse/error.hpp>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace fuse {
namespace {

constexpr int most_threads = 1024;

}  // namespace

std::size_t thread_count(int threads) {
  if (threads < 0 || threads > most_threads) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("compiling cannot run on {} threads", threads),
                 .hint = fmt::format("0 takes one a core; at most {}", most_threads)});
  }
  return static_cast<std::size_t>(threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency()));
}

void parallel_for(int threads, std::size_t count, const std::function<void(std::size_t)>& work) {
  const std::size_t wanted = std::min(thread_count(threads), count);
  if (wanted <= 1) {
    for (std::size_t i = 0; i < count; ++i) work(i);
    return;
  }
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;  // guards what failed
  std::size_t failed = count;
  std::exception_ptr failure;
  // Whatever stands before an index that fails was taken before it, and runs to its end.
  const auto take = [&]() noexcept {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (i < failed) failed = i, failure = std::current_exception();
        next = count;
      }
    }
  };
  std::vector<std::thread> others;
  others.reserve(wanted - 1);
  try {
    while (others.size() + 1 < wanted) others.emplace_back(take);
  } catch (const std::system_error&) {  // no more threads: those that run do it all
  }
  take();
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace fuse
