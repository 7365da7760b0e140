// One device, one module, launches from several host threads at a time.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "emulated/support.hpp"

namespace fuse::test {

TEST_CASE("launches from several host threads do not disturb each other", "[emulated]") {
  for (const bool checked : {false, true}) {
    EmulatedDevice d({.checked = checked, .threads = 3});
    d.load(R"(
FUSE_KERNEL(64) sums(global<const int> x, global<int> y, int n) {
  FUSE_SHARED(int, 2, part);
  int s = 0;
  for (int c = threadIdx.x; c < n; c += 64) s = s + load(x, blockIdx.x * n + c);
  s = warp_sum(s);
  if ((threadIdx.x & 31) == 0) store(part, threadIdx.x >> 5, s);
  block_barrier();
  if (threadIdx.x == 0) store(y, blockIdx.x, load(part, 0) + load(part, 1));
}
FUSE_KERNEL(64) twice(global<const int> x, global<int> y) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  store(y, i, load(x, i) * 2);
}
)");
    constexpr int n = 100, rows = 64;
    std::atomic<int> wrong = 0;
    const auto work = [&](int id) {
      const auto queue = d.backend->create_queue();
      std::vector<int> x(static_cast<std::size_t>(n) * rows, id), got(rows);
      void* in = d.backend->allocate(n * rows * 4);
      void* mid = d.backend->allocate(n * rows * 4);
      void* out = d.backend->allocate(rows * 4);
      for (int repeat = 0; repeat < 10; ++repeat) {
        bool good = bool(d.backend->upload(*queue, in, x.data(), n * rows * 4));
        const runtime::Argument twice[] = {{in, n * rows * 4, 0}, {mid, n * rows * 4, 0}};
        good = good && d.backend->launch(*queue, d.module->function("twice"), {n}, twice, 2);
        const runtime::Argument sums[] = {{mid, n * rows * 4, 0}, {out, rows * 4, 0}, {nullptr, 0, n}};
        good = good && d.backend->launch(*queue, d.module->function("sums"), {rows}, sums, 3);
        good = good && d.backend->download(*queue, got.data(), out, rows * 4);
        for (int v : got) good = good && v == 2 * n * id;
        wrong += !good;
      }
      for (void* address : {in, mid, out}) d.backend->free(address);
    };
    std::vector<std::thread> threads;
    for (int id = 1; id <= 4; ++id) threads.emplace_back(work, id);
    for (std::thread& t : threads) t.join();
    CHECK(wrong == 0);
  }
}

TEST_CASE("a fault in one launch leaves the others alone", "[emulated][fault]") {
  EmulatedDevice d({.checked = true, .threads = 2});
  d.load(R"(
FUSE_KERNEL(32) faulty(global<int> y) {
  store(y, threadIdx.x + 1, warp_sum(1));
}
FUSE_KERNEL(32) good(global<int> y) {
  store(y, blockIdx.x * 32 + threadIdx.x, warp_sum(1));
}
)");
  const auto bad = d.buffer(128), fine = d.buffer(128 * 50);
  std::atomic<int> wrong = 0;
  std::thread other([&] {
    const auto queue = d.backend->create_queue();
    for (int i = 0; i < 20; ++i) {
      wrong += bool(d.backend->launch(*queue, d.module->function("faulty"), {50}, &bad, 1));
    }
  });
  for (int i = 0; i < 20; ++i) wrong += !d.run("good", {50}, {fine});
  other.join();
  CHECK(wrong == 0);
  CHECK(d.values<int>(fine) == std::vector<int>(32 * 50, 32));
}

}  // namespace fuse::test
