// Hand-written kernels, plain and checked, in order and shuffled: the results are the same bits.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "emulated/support.hpp"

namespace fuse::test {
namespace {

const char* const softmax_kernels = R"(// softmax: a row per block, and a row per warp
FUSE_KERNEL(256) softmax_block(global<const float> x, global<float> y, int cols) {
  FUSE_SHARED(float, 8, maxima);
  FUSE_SHARED(float, 8, sums);
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const long long base = static_cast<long long>(blockIdx.x) * cols;
  float m = -infinity_f32();
  for (int c = threadIdx.x; c < cols; c += 256) m = maximum(m, load(x, base + c));
  m = warp_max(m);
  if (lane == 0) store(maxima, warp, m);
  block_barrier();
  m = warp_max(load(maxima, lane & 7));
  float s = 0.0f;
  for (int c = threadIdx.x; c < cols; c += 256) s = s + expf(load(x, base + c) - m);
  s = warp_sum(s);
  if (lane == 0) store(sums, warp, s);
  block_barrier();
  s = warp_sum(lane < 8 ? load(sums, lane) : 0.0f);
  for (int c = threadIdx.x; c < cols; c += 256) store(y, base + c, expf(load(x, base + c) - m) / s);
}
FUSE_KERNEL(128) softmax_warp(global<const float> x, global<float> y, int rows, int cols) {
  const int lane = threadIdx.x & 31;
  const int row = blockIdx.x * 4 + (threadIdx.x >> 5);
  if (row < rows) {
    float m = -infinity_f32();
    for (int c = lane; c < cols; c += 32) m = maximum(m, load(x, row * cols + c));
    m = warp_max(m);
    float s = 0.0f;
    for (int c = lane; c < cols; c += 32) s = s + expf(load(x, row * cols + c) - m);
    s = warp_sum(s);
    for (int c = lane; c < cols; c += 32) store(y, row * cols + c, expf(load(x, row * cols + c) - m) / s);
  }
}
)";

std::vector<float> ramp(std::int64_t n) {
  std::vector<float> v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<float>(i * 2654435761u % 1000) / 100.0f - 5.0f;
  return v;
}

std::vector<runtime::EmulatedOptions> modes() {
  return {{.threads = 1},
          {.threads = 2},
          {.shuffle_seed = 11},
          {.checked = true},
          {.checked = true, .threads = 3, .shuffle_seed = 99}};
}

}  // namespace

TEST_CASE("softmax by block and by warp, in every mode", "[emulated]") {
  const std::int64_t rows = 37, cols = 300;
  const auto x = ramp(rows * cols);
  std::vector<float> block, warp;
  for (const auto& mode : modes()) {
    EmulatedDevice d(mode);
    d.load(softmax_kernels);
    const auto at = d.buffer(x), y = d.buffer(at.bytes);
    REQUIRE(d.run("softmax_block", {rows}, {at, y, extent(cols)}));
    const auto a = d.values<float>(y);
    REQUIRE(d.run("softmax_warp", {(rows + 3) / 4}, {at, y, extent(rows), extent(cols)}));
    const auto b = d.values<float>(y);
    if (block.empty()) {
      block = a;
      warp = b;
    }
    CHECK(a == block);
    CHECK(b == warp);
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    double sum = 0, most = -1e9;
    for (std::int64_t c = 0; c < cols; ++c)
      most = std::max<double>(most, x[static_cast<std::size_t>(r * cols + c)]);
    for (std::int64_t c = 0; c < cols; ++c) sum += std::exp(x[static_cast<std::size_t>(r * cols + c)] - most);
    for (std::int64_t c = 0; c < cols; c += 17) {
      const auto i = static_cast<std::size_t>(r * cols + c);
      CHECK(block[i] == Approx(std::exp(x[i] - most) / sum).epsilon(1e-5));
      CHECK(warp[i] == Approx(std::exp(x[i] - most) / sum).epsilon(1e-5));
    }
  }
}

TEST_CASE("a grid has three dimensions", "[emulated]") {
  const char* body = R"(
FUSE_KERNEL(32) loop(global<int> y) {
  const int b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  store(y, b * 32 + threadIdx.x, (blockIdx.x * 100 + blockIdx.y) * 100 + blockIdx.z);
}
FUSE_KERNEL(32) fibers(global<int> y) {
  const int b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  block_barrier();
  store(y, b * blockDim.x + threadIdx.x, (blockIdx.x * 100 + blockIdx.y) * 100 + blockIdx.z);
}
)";
  for (const auto& mode : modes()) {
    EmulatedDevice d(mode);
    d.load(body);
    for (const char* name : {"loop", "fibers"}) {
      const auto y = d.buffer(3 * 4 * 5 * 32 * 4);
      REQUIRE(d.run(name, {3, 4, 5}, {y}));
      const auto got = d.values<int>(y);
      for (int z = 0, b = 0; z < 5; ++z) {
        for (int j = 0; j < 4; ++j) {
          for (int i = 0; i < 3; ++i, ++b) {
            CHECK(got[static_cast<std::size_t>(b) * 32 + 31] == (i * 100 + j) * 100 + z);
          }
        }
      }
    }
  }
}

TEST_CASE("every element type passes through a kernel", "[emulated]") {
  EmulatedDevice d({.checked = true});
  d.load(R"(
FUSE_KERNEL(32) types(global<const f16> h, global<const bf16> b, global<const bool> m, global<const long long> l, global<double> y, long long n) {
  FUSE_SHARED(bool, 32, flags);
  FUSE_SHARED(double, 32, sums);
  const int i = threadIdx.x;
  store(flags, i, load(m, i));
  store(sums, i, to_f64(load(h, i)) + to_f64(load(b, i)) + to_f64(load(l, i)));
  block_barrier();
  const int j = 31 - i;
  store(y, i, load(flags, j) ? load(sums, j) : to_f64(n));
}
)");
  std::vector<half> h(32, half(0.5));
  std::vector<bfloat16> b(32, bfloat16(3.0));
  std::vector<std::uint8_t> m(32);
  std::vector<std::int64_t> l(32);
  for (std::size_t i = 0; i < 32; ++i) {
    m[i] = i % 2;
    l[i] = static_cast<std::int64_t>(i) << 40;
  }
  const auto y = d.buffer(256);
  REQUIRE(d.run("types", {1}, {d.buffer(h), d.buffer(b), d.buffer(m), d.buffer(l), y, extent(1ll << 50)}));
  const auto got = d.values<double>(y);
  for (std::size_t i = 0; i < 32; ++i) {
    const std::size_t j = 31 - i;
    CHECK(got[i] == (m[j] ? 3.5 + static_cast<double>(l[j]) : 0x1p50));
  }
}

TEST_CASE("a large source is split over two compilers and keeps its lines", "[emulated]") {
  std::string body = "// forty kernels\n";
  for (int i = 0; i < 40; ++i) {
    body += "\n// kernel " + std::to_string(i) + "\nFUSE_KERNEL(32) k" + std::to_string(i) +
            "(global<int> y) {\n  store(y, threadIdx.x, " + std::to_string(i) + " * 100000 + __LINE__);\n}\n";
  }
  EmulatedDevice d({});
  d.load(body);
  const auto y = d.buffer(128);
  for (int i = 0; i < 40; ++i) {
    REQUIRE(d.run("k" + std::to_string(i), {1}, {y}));
    CHECK(d.values<int>(y)[31] == i * 100000 + 5 + i * 5);
  }
}

TEST_CASE("shuffled orders expose a dependence on the order of blocks", "[emulated]") {
  // Last block wins: a race that plain mode does not see, but that the order decides.
  const char* body = "FUSE_KERNEL(32) last(global<int> y) {\n  store(y, threadIdx.x, blockIdx.x);\n}\n";
  const auto run = [&](std::uint64_t seed) {
    EmulatedDevice d({.threads = 1, .shuffle_seed = seed});
    d.load(body);
    const auto y = d.buffer(128);
    REQUIRE(d.run("last", {97}, {y}));
    return d.values<int>(y)[0];
  };
  CHECK(run(0) == 96);
  CHECK(run(12345) != 96);
  CHECK(run(12345) == run(12345));
}

}  // namespace fuse::test
