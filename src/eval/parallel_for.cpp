// SPDX-License-Identifier: Apache-2.0
#include "eval/parallel_for.hpp"

#include <algorithm>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace fuse::runtime::reference {

std::size_t thread_count() {
  static const std::size_t count = std::clamp(std::thread::hardware_concurrency(), 1U, 16U);
  return count;
}

void parallel_for(std::size_t count, std::size_t grain,
                  const std::function<void(std::size_t begin, std::size_t end)>& body) {
  const std::size_t parts =
      std::clamp<std::size_t>(count / std::max<std::size_t>(grain, 1), 1, thread_count());
  if (parts == 1) {
    if (count > 0) body(0, count);
    return;
  }
  std::vector<std::exception_ptr> failures(parts);
  const auto run = [&](std::size_t part) noexcept {
    // Two steps, so that part * count cannot overflow.
    const auto edge = [&](std::size_t p) { return count / parts * p + std::min(p, count % parts); };
    try {
      body(edge(part), edge(part + 1));
    } catch (...) {
      failures[part] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(parts - 1);
  std::size_t next = 1;
  try {
    for (; next < parts; ++next) threads.emplace_back(run, next);
  } catch (const std::system_error&) {  // no more threads: the rest runs here
  }
  run(0);
  for (; next < parts; ++next) run(next);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace fuse::runtime::reference
