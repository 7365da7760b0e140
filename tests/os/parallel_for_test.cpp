// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "os/parallel.hpp"
#include "support/catch.hpp"

namespace fuse::test {

TEST_CASE("a parallel loop calls its work once for each index, also on the caller's thread", "[os]") {
  const std::thread::id caller = std::this_thread::get_id();
  for (const int threads : {1, 2, 4}) {
    INFO(threads << " threads");
    std::vector<std::atomic<int>> calls(8);
    std::atomic<bool> caller_works = false;
    parallel_for(threads, calls.size(), [&](std::size_t i) {
      ++calls[i];
      if (std::this_thread::get_id() == caller) caller_works = true;
      // The others leave something to do.
      const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (!caller_works && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    });
    CHECK(caller_works);
    for (const std::atomic<int>& count : calls) CHECK(count == 1);
  }
}

TEST_CASE("a parallel loop throws what the lowest index that failed threw", "[os]") {
  for (const int threads : {1, 3}) {
    try {
      parallel_for(threads, 100, [](std::size_t i) {
        if (i == 7 || i == 8 || i == 99) throw std::runtime_error(std::to_string(i));
      });
      FAIL("no error");
    } catch (const std::runtime_error& error) {
      CHECK(std::string(error.what()) == "7");
    }
  }
}

}  // namespace fuse::test
