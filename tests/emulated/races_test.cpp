// Every barrier of a block reduction that is missing is found, whatever the order of execution.
// SPDX-License-Identifier: Apache-2.0
#include "emulated/support.hpp"
#include "support/sanitized.hpp"

namespace fuse::test {
namespace {

// Two reductions through the same shared array: three barriers, each needed. `without` leaves one out.
std::string block_reductions(int without) {
  const std::vector<std::string> barriers = {"  block_barrier();  // %2 reduce_max @norm.max barrier\n",
                                             "  block_barrier();  // %4 reduce_sum @norm.sum barrier\n",
                                             "  block_barrier();  // %4 reduce_sum @norm.sum barrier\n"};
  const auto barrier = [&](int i) { return i == without ? "\n" : barriers[static_cast<std::size_t>(i)]; };
  return R"(FUSE_KERNEL(128) norm(global<const float> x, global<float> y) {
  FUSE_SHARED(float, 4, partial);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int i = blockIdx.x * 128 + threadIdx.x;
  const float v = load(x, i);
  float m = warp_max(v);
  if (lane == 0) store(partial, warp, m);          // %1 part_max @norm.max
)" + barrier(0) +
         R"(  m = warp_max(load(partial, lane & 3));           // %2 reduce_max @norm.max
)" + barrier(1) +
         R"(  float s = warp_sum(v - m);
  if (lane == 0) store(partial, warp, s);          // %3 part_sum @norm.sum
)" + barrier(2) +
         R"(  s = warp_sum(lane < 4 ? load(partial, lane) : 0.0f);  // %4 reduce_sum @norm.sum
  store(y, i, v - m + s);
}
)";
}

Status run(int without, std::uint64_t seed, int threads) {
  EmulatedDevice d({.checked = true, .threads = threads, .shuffle_seed = seed});
  d.load(block_reductions(without));
  std::vector<float> x(512);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 97);
  const auto at = d.buffer(x);
  return d.run("norm", {4}, {at, d.buffer(at.bytes)});
}

}  // namespace

TEST_CASE("each missing barrier of a block reduction is found in every order", "[emulated][fault]") {
  const std::vector<std::string> stores = {"at line 8 (%1 part_max, norm.max)",
                                           "at line 13 (%3 part_sum, norm.sum)",
                                           "at line 13 (%3 part_sum, norm.sum)"};
  const std::vector<std::string> loads = {"at line 10 (%2 reduce_max, norm.max)",
                                          "at line 10 (%2 reduce_max, norm.max)",
                                          "at line 15 (%4 reduce_sum, norm.sum)"};
  for (std::uint64_t seed = 0; seed < fewer<std::uint64_t>(8, 4); ++seed) {
    CHECK(run(-1, seed, 2));
    for (int without = 0; without < 3; ++without) {
      const Status status = run(without, seed, seed % 2 ? 2 : 1);
      const std::string text(status.message());
      INFO("seed " << seed << ", without barrier " << without << ": " << text);
      CHECK(status.code() == ErrorCode::kernel_fault);
      CHECK(text.starts_with("norm: race on shared 'partial'["));
      CHECK(text.find(stores[static_cast<std::size_t>(without)]) != std::string::npos);
      CHECK(text.find(loads[static_cast<std::size_t>(without)]) != std::string::npos);
      CHECK(text.find("; missing barrier? (block ") != std::string::npos);
    }
  }
}

TEST_CASE("a race text names both threads and what they did", "[emulated][fault]") {
  EmulatedDevice d({.checked = true, .threads = 1});
  d.load(R"(
FUSE_KERNEL(64) pass(global<float> y) {
  FUSE_SHARED(float, 2, partial);
  if ((threadIdx.x & 31) == 0) store(partial, threadIdx.x >> 5, 1.0f);  // %6 part
  if (threadIdx.x == 32) store(y, 0, load(partial, 0));                 // %7 reduce_sum @softmax.sum
}
)");
  const Status status = d.run("pass", {1}, {d.buffer(4)});
  CHECK(std::string(status.message()) ==
        "pass: race on shared 'partial'[0]: thread 32 reads at line 5 (%7 reduce_sum, softmax.sum), thread 0 "
        "wrote "
        "at line 4 (%6 part); missing barrier? (block 0)");
}

TEST_CASE("a warp's rendezvous orders its own lanes only", "[emulated][fault]") {
  const char* body = R"(
FUSE_KERNEL(64) within(global<float> y) {
  FUSE_SHARED(float, 64, tile);
  store(tile, threadIdx.x, 1.0f);
  warp_barrier();
  store(y, threadIdx.x, load(tile, threadIdx.x ^ 1));
}
FUSE_KERNEL(64) across(global<float> y) {
  FUSE_SHARED(float, 64, tile);
  store(tile, threadIdx.x, 1.0f);
  warp_barrier();
  store(y, threadIdx.x, load(tile, threadIdx.x ^ 32));
}
FUSE_KERNEL(64) unordered(global<float> y) {
  FUSE_SHARED(float, 64, tile);
  store(tile, threadIdx.x, 1.0f);
  store(y, threadIdx.x, load(tile, threadIdx.x ^ 1));
}
FUSE_KERNEL(64) write_after_read(global<float> y) {
  FUSE_SHARED(float, 1, one);
  if (threadIdx.x == 0) store(one, 0, 1.0f);
  block_barrier();
  store(y, threadIdx.x, load(one, 0));
  if (threadIdx.x == 40) store(one, 0, 2.0f);
}
)";
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    EmulatedDevice d({.checked = true, .shuffle_seed = seed});
    d.load(body);
    const auto y = d.buffer(256);
    CHECK(d.run("within", {1}, {y}));
    for (const char* name : {"across", "unordered", "write_after_read"}) {
      const Status status = d.run(name, {1}, {y});
      INFO(name << ": " << status.message());
      CHECK(std::string(status.message()).find("race on shared") != std::string::npos);
    }
  }
}

TEST_CASE("a kernel without barriers is checked thread by thread", "[emulated][fault]") {
  EmulatedDevice d({.checked = true});
  d.load(R"(
FUSE_KERNEL(32) sum(global<const float> x, global<float> y) {
  store(y, 0, load(x, threadIdx.x));  // %1 reduce_sum
}
)");
  const Status status = d.run("sum", {1}, {d.buffer(std::vector<float>(32)), d.buffer(4)});
  CHECK(std::string(status.message()) ==
        "sum: race on global 'y'[0]: thread 1 writes at line 3 (%1 reduce_sum), thread 0 wrote at line 3 (%1 "
        "reduce_sum); missing barrier? (block 0)");
}

}  // namespace fuse::test
