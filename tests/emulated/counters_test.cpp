// Checked mode counts elements, bytes, 32-byte sectors a warp access, barriers and launches, exactly.
// SPDX-License-Identifier: Apache-2.0
#include "emulated/support.hpp"

namespace fuse::test {
namespace {

const char* const counted_kernels = R"(
FUSE_KERNEL(64) coalesced(global<const float> x, global<bf16> y) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  store(y, i, to_bf16(load(x, i)));
}
FUSE_KERNEL(64) strided(global<const float> x, global<float> y) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  store(y, i, load(x, i * 8));
}
FUSE_KERNEL(64) broadcast(global<const float> x, global<float> y) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  store(y, i, load(x, 3) + load(x, blockIdx.x));
}
FUSE_KERNEL(64) rows(global<const float> x, global<float> y, int n) {
  FUSE_SHARED(float, 2, part);
  float s = 0.0f;
  for (int c = threadIdx.x; c < n; c += 64) s = s + load(x, blockIdx.x * n + c);
  s = warp_sum(s);
  if ((threadIdx.x & 31) == 0) store(part, threadIdx.x >> 5, s);
  block_barrier();
  s = load(part, 0) + load(part, 1);
  for (int c = threadIdx.x; c < n; c += 64) store(y, blockIdx.x * n + c, s * load(x, blockIdx.x * n + c));
}
FUSE_KERNEL(64) vectors(global<const float> x, global<float> y) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  FUSE_LOCAL(float, 4, own);
  load_vector(own, x, 4 * i);
  store_vector(y, 4 * i, own);
}
FUSE_KERNEL(32) late(global<const float> x, global<float> y) {
  float s = 0.0f;
  for (int k = 0; k < 2; ++k) {
    if (k > 0 || threadIdx.x < 4) s = s + load(x, 8 * k);
    block_barrier();
  }
  store(y, threadIdx.x, s);
}
)";

struct Counted {
  EmulatedDevice d;
  runtime::Argument x, y;
  explicit Counted(std::uint64_t seed, int threads)
      : d({.checked = true, .threads = threads, .shuffle_seed = seed}),
        x(d.buffer(std::vector<float>(8 * 256, 1.0f))),
        y(d.buffer(8 * 256 * 4)) {
    d.load(counted_kernels);
  }
  runtime::KernelCounts run(const std::string& kernel, std::int64_t grid, int extents) {
    d.backend->reset_counts();
    std::vector<runtime::Argument> arguments = {x, y};
    if (extents) arguments.push_back(extent(extents));
    d.run(kernel, {grid}, arguments).throw_if_failed();
    REQUIRE(d.backend->counts().size() == 1);
    return d.backend->counts()[0];
  }
};

}  // namespace

TEST_CASE("sectors of coalesced, strided and broadcast accesses", "[emulated]") {
  for (const std::uint64_t seed : {0, 5}) {
    Counted c(seed, seed ? 2 : 1);
    const auto coalesced = c.run("coalesced", 4, 0);
    CHECK(coalesced.kernel == "coalesced");
    CHECK(coalesced.launches == 1);
    CHECK(coalesced.block_barriers == 0);
    CHECK(coalesced.params[0].loads == 256);
    CHECK(coalesced.params[0].load_bytes == 1024);
    CHECK(coalesced.params[0].load_sectors == 32);  // 8 warps, 4 sectors each
    CHECK(coalesced.params[1].store_bytes == 512);
    CHECK(coalesced.params[1].store_sectors == 16);  // 2 bytes an element: 2 sectors a warp
    CHECK(coalesced.params[1].loads == 0);

    const auto strided = c.run("strided", 4, 0);
    CHECK(strided.params[0].loads == 256);
    CHECK(strided.params[0].load_sectors == 256);  // a sector a lane
    CHECK(strided.params[1].store_sectors == 32);

    const auto broadcast = c.run("broadcast", 4, 0);
    CHECK(broadcast.params[0].loads == 512);
    CHECK(broadcast.params[0].load_sectors == 16);  // 8 warps, 2 accesses, one sector each
  }
}

TEST_CASE("lanes that left out an access share the next one behind a barrier", "[emulated]") {
  for (const std::uint64_t seed : {0, 5}) {
    Counted c(seed, 1);
    const auto late = c.run("late", 1, 0);
    CHECK(late.params[0].loads == 4 + 32);
    CHECK(late.params[0].load_sectors == 2);  // one by four lanes, one by all
    CHECK(late.params[1].store_sectors == 4);
  }
}

TEST_CASE("vectors are elements that a thread accesses at once", "[emulated]") {
  for (const std::uint64_t seed : {0, 3}) {
    Counted c(seed, 1);
    const auto vectors = c.run("vectors", 8, 0);
    CHECK(vectors.params[0].loads == 2048);
    CHECK(vectors.params[0].load_bytes == 8192);
    CHECK(vectors.params[0].load_sectors == 256);  // 16 warps, 512 bytes each
    CHECK(vectors.params[1].stores == 2048);
    CHECK(vectors.params[1].store_sectors == 256);
  }
}

TEST_CASE("counts add up over loops, barriers, blocks and launches", "[emulated]") {
  for (const std::uint64_t seed : {0, 7}) {
    Counted c(seed, 2);
    const auto rows = c.run("rows", 8, 200);
    CHECK(rows.block_barriers == 8);
    CHECK(rows.params[0].loads == 2 * 8 * 200);
    CHECK(rows.params[1].stores == 8 * 200);
    CHECK(rows.params[1].store_bytes == 8 * 200 * 4);
    // A row of 200 is 800 bytes, which is 25 sectors; every second row starts amid no sector: 800 = 25 * 32.
    CHECK(rows.params[0].load_sectors == 2 * 8 * 25);
    CHECK(rows.params[1].store_sectors == 8 * 25);
    CHECK(rows.params[2].loads == 0);

    std::vector<runtime::Argument> arguments = {c.x, c.y, extent(200)};
    REQUIRE(c.d.run("rows", {8}, arguments));
    const auto twice = c.d.backend->counts()[0];
    CHECK(twice.launches == 2);
    CHECK(twice.block_barriers == 16);
    CHECK(twice.params[0].load_sectors == 4 * 8 * 25);
    REQUIRE(c.d.run("rows", {0}, arguments));
    CHECK(c.d.backend->counts()[0].launches == 2);
    c.d.backend->reset_counts();
    CHECK(c.d.backend->counts().empty());
  }
}

TEST_CASE("sectors are those of the memory, not of the argument", "[emulated]") {
  Counted c(0, 1);
  c.x.address = static_cast<char*>(c.x.address) + 16;
  c.x.bytes -= 16;
  CHECK(c.run("coalesced", 4, 0).params[0].load_sectors == 8 * 5);
}

TEST_CASE("plain mode counts nothing", "[emulated]") {
  EmulatedDevice d({});
  d.load(counted_kernels);
  REQUIRE(d.run("strided", {1}, {d.buffer(4096), d.buffer(256)}));
  CHECK(d.backend->counts().empty());
}

}  // namespace fuse::test
