// SPDX-License-Identifier: Apache-2.0
#include "serve/thread_copy.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace fuse::bench {
namespace {

using CopyPart = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);

void copy_plain(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

#if defined(__SSE2__)
/// Four stores fill a line of the cache, which goes to memory without being read first.
void copy_stream(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t whole = bytes / 64 * 64;
  for (std::size_t at = 0; at < whole; at += 64) {
    const auto* const source = reinterpret_cast<const __m128i*>(from + at);
    auto* const target = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  std::memcpy(to + whole, from + whole, bytes - whole);
  _mm_sfence();
}
#endif

CopyPart copy_by(std::string_view how) {
  if (how == "memcpy") return copy_plain;
#if defined(__SSE2__)
  if (how == "stream") return copy_stream;
#endif
  throw std::runtime_error("this program has no copy by '" + std::string(how) + "'");
}

/// Threads that wait for each other without sleeping, so that a short copy is not the time of waking.
class SpinMeeting {
 public:
  explicit SpinMeeting(int threads) : threads_(threads) {}
  void wait() {
    const int round = round_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins) {
      if (spins > 100000) std::this_thread::yield();  // where there are more threads than cores
    }
  }

 private:
  const int threads_;
  std::atomic<int> arrived_{0}, round_{0};
};

}  // namespace

double time_thread_copy(std::string_view how, void* to, const void* from, std::int64_t bytes, int threads,
                        std::int64_t runs) {
  using Clock = std::chrono::steady_clock;
  const CopyPart copy = copy_by(how);
  SpinMeeting meeting(threads);
  const std::int64_t part = (bytes / threads + 63) / 64 * 64;
  const auto work = [&](int thread) {
    const std::int64_t begin = std::min(bytes, part * thread), end = std::min(bytes, begin + part);
    for (std::int64_t run = 0; run < runs; ++run) {
      meeting.wait();
      copy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin,
           static_cast<std::size_t>(end - begin));
    }
    meeting.wait();
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) {
    others.emplace_back([&, thread] {
      meeting.wait();
      work(thread);
    });
  }
  meeting.wait();  // all have started
  const auto start = Clock::now();
  work(0);
  const std::chrono::duration<double> seconds = Clock::now() - start;
  for (std::thread& other : others) other.join();
  return seconds.count() / static_cast<double>(runs);
}

}  // namespace fuse::bench
