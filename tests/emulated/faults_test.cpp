// Checked mode: one planted fault a class, each named by kernel, op, scope and line.
// SPDX-License-Identifier: Apache-2.0
#include "emulated/support.hpp"

namespace fuse::test {
namespace {

std::string message(const Status& status) { return std::string(status.message()); }

bool contains(const Status& status, const std::string& text) {
  INFO(message(status));
  const bool found = message(status).find(text) != std::string::npos;
  CHECK(found);
  return found;
}

const runtime::EmulatedOptions checked{.checked = true};

std::vector<float> ones(std::size_t n) { return std::vector<float>(n, 1.0f); }

}  // namespace

TEST_CASE("an index beyond the bound argument is out of bounds", "[emulated][fault]") {
  EmulatedDevice d(checked);
  d.load(R"(
FUSE_KERNEL(64) shift(global<const float> x, global<float> y, int by) {
  const int i = threadIdx.x;
  const float v = load(x, i + by);  // %1 slice @model.head
  store(y, i, v);                   // %2 copy
}
)");
  const auto x = d.buffer(ones(64)), y = d.buffer(256);
  REQUIRE(d.run("shift", {1}, {x, y, extent(0)}));
  const Status over = d.run("shift", {1}, {x, y, extent(60)});
  CHECK(over.code() == ErrorCode::kernel_fault);
  CHECK(message(over) ==
        "shift: out of bounds read of global 'x'[64], which has 64 elements: block 0 thread 4 at line 4 (%1 "
        "slice, "
        "model.head)");
  contains(d.run("shift", {1}, {x, y, extent(-1)}), "out of bounds read of global 'x'[-1]");
  // The bound bytes count, not the allocation's.
  runtime::Argument half_of_y = y;
  half_of_y.bytes = 128;
  contains(
      d.run("shift", {1}, {x, half_of_y, extent(0)}),
      "out of bounds write of global 'y'[32], which has 32 elements: block 0 thread 32 at line 5 (%2 copy)");
}

TEST_CASE("a faulty launch leaves no output that can be downloaded", "[emulated][fault]") {
  EmulatedDevice d(checked);
  d.load("FUSE_KERNEL(64) over(global<float> y) {\n  store(y, threadIdx.x + 1, 0.0f);\n}\n");
  const auto y = d.buffer(ones(64));
  CHECK_FALSE(d.run("over", {1}, {y}));
  float got[64];
  const Status s = d.download(y, got);
  CHECK(s.code() == ErrorCode::kernel_fault);
  contains(s, "nobody wrote byte 0");
}

TEST_CASE("a misaligned access names its line", "[emulated][fault]") {
  const char* body = "FUSE_KERNEL(32) copy(global<float> y) {\n  store(y, threadIdx.x, 1.0f);\n}\n";
  for (const bool check : {true, false}) {
    EmulatedDevice d({.checked = check});
    d.load(body);
    runtime::Argument y = d.buffer(256);
    y.address = static_cast<char*>(y.address) + 2;
    y.bytes = 128;
    const Status s = d.run("copy", {1}, {y});
    CHECK(s.code() == (check ? ErrorCode::kernel_fault : ErrorCode::misaligned));
    contains(s, check ? "copy: misaligned write of global 'y'[0]: block 0 thread 0 at line 2"
                      : "not aligned to 4");
  }
}

TEST_CASE("a vector is judged as a whole, and element by element", "[emulated][fault]") {
  EmulatedDevice d(checked);
  d.load(R"(
FUSE_KERNEL(32) vectors(global<const float> x, global<float> y, int shift) {
  FUSE_LOCAL(float, 4, own);
  load_vector(own, x, 4 * threadIdx.x + shift);
  store_vector(y, 4 * threadIdx.x, own);
}
FUSE_KERNEL(32) half(global<float> y) {
  FUSE_LOCAL(float, 4, own);
  for (int v = 0; v < 2; ++v) store(own, v, 1.0f);
  store_vector(y, 4 * threadIdx.x, own);
}
)");
  const auto x = d.buffer(ones(128)), y = d.buffer(512);
  REQUIRE(d.run("vectors", {1}, {x, y, extent(0)}));
  CHECK(d.values<float>(y) == ones(128));
  contains(d.run("vectors", {1}, {x, y, extent(2)}),
           "vectors: misaligned read of global 'x'[2]: block 0 thread 0 at line 4");
  contains(
      d.run("vectors", {1}, {x, y, extent(4)}),
      "vectors: out of bounds read of global 'x'[128], which has 128 elements: block 0 thread 31 at line 4");
  contains(d.run("half", {1}, {y}), "half: read of local 'own'[2], which nobody wrote");
  const auto unwritten = d.buffer(512);
  REQUIRE(d.backend->memset(*d.queue, unwritten.address, 0, 24));
  contains(d.run("vectors", {1}, {unwritten, y, extent(0)}),
           "vectors: read of global 'x'[6], which nobody wrote: block 0 thread 1 at line 4");
}

TEST_CASE("memory that nobody wrote must not be read", "[emulated][fault]") {
  EmulatedDevice d(checked);
  d.load(R"(
FUSE_KERNEL(32) copy(global<const float> x, global<float> y) {
  store(y, threadIdx.x, load(x, threadIdx.x));  // %1 copy
}
FUSE_KERNEL(32) shared_read(global<float> y) {
  FUSE_SHARED(float, 32, tile);
  if (threadIdx.x != 7) store(tile, threadIdx.x, 1.0f);
  block_barrier();
  store(y, threadIdx.x, load(tile, threadIdx.x));  // %2 sum @a.b
}
FUSE_KERNEL(32) own_output(global<float> y) {
  store(y, threadIdx.x, load(y, threadIdx.x) + 1.0f);
}
)");
  const auto x = d.buffer(128), y = d.buffer(128);
  REQUIRE(d.backend->memset(*d.queue, x.address, 0, 64));
  contains(d.run("copy", {1}, {x, y}),
           "copy: read of global 'x'[16], which nobody wrote: block 0 thread 16 at line 3 (%1 copy)");
  contains(
      d.run("shared_read", {1}, {y}),
      "shared_read: read of shared 'tile'[7], which nobody wrote: block 0 thread 7 at line 9 (%2 sum, a.b)");
  contains(d.run("own_output", {1}, {y}), "own_output: read of global 'y'[0], which nobody wrote");
}

TEST_CASE("a parameter that is declared as only read must not be written", "[emulated][fault]") {
  codegen::Source source = make_source("FUSE_KERNEL(32) sneak(global<float> x) {\n  store(x, 3, 1.0f);\n}\n");
  source.kernels[0].params[0].written = false;
  EmulatedDevice d(checked);
  d.module = d.backend->load(source);
  contains(
      d.run("sneak", {1}, {d.buffer(ones(32))}),
      "sneak: write of global 'x'[3], which the kernel declares as only read: block 0 thread 0 at line 2");
}

TEST_CASE("blocks of one launch must not meet in global memory", "[emulated][fault]") {
  const char* body = R"(
FUSE_KERNEL(32) overlap(global<float> y) {
  store(y, blockIdx.x * 31 + threadIdx.x, 1.0f);  // %1 exp
}
FUSE_KERNEL(32) neighbour(global<float> t, global<float> y) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  store(t, i, 1.0f);                              // %2 log
  block_barrier();
  if (i > 0) store(y, i, load(t, i - 1));         // %3 shift @step
}
)";
  for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
    EmulatedDevice d({.checked = true, .threads = 2, .shuffle_seed = seed});
    d.load(body);
    const auto y = d.buffer(4096), t = d.buffer(4096);
    const Status overlap = d.run("overlap", {8}, {y});
    contains(overlap, "overlap: race on global 'y'[");
    contains(overlap, "at line 3 (%1 exp), block ");
    contains(overlap, "; blocks of one launch are not ordered");
    // Also where the read comes first, and so finds nothing written.
    const Status neighbour = d.run("neighbour", {8}, {t, y});
    contains(neighbour, "neighbour: race on global 't'[");
    contains(neighbour, "at line 9 (%3 shift, step)");
    contains(neighbour, "at line 7 (%2 log)");
  }
}

TEST_CASE("aliased arguments are one memory", "[emulated][fault]") {
  EmulatedDevice d(checked);
  d.load(R"(
FUSE_KERNEL(32) reverse(global<const float> x, global<float> y) {
  store(y, threadIdx.x, load(x, 31 - threadIdx.x));
}
FUSE_KERNEL(32) bytes(global<const float> x, global<bool> y) {
  const float v = load(x, threadIdx.x);
  store(y, threadIdx.x * 4 + 128, v > 0.0f);
}
)");
  const auto first = d.buffer(ones(64)), x = d.buffer(ones(64));
  contains(d.run("reverse", {1}, {first, first}), "reverse: race on global");
  runtime::Argument low = x;
  low.bytes = 128;
  runtime::Argument high = low;
  high.address = static_cast<char*>(x.address) + 128;
  CHECK(d.run("reverse", {1}, {low, high}));
  CHECK(d.run("bytes", {1}, {low, x}));  // elements of two sizes that overlap nowhere in fact
}

TEST_CASE("threads that wait at different barriers diverge, in plain mode too", "[emulated][fault]") {
  const char* body = R"(
FUSE_KERNEL(64) exited(global<float> y, int n) {
  if (threadIdx.x < n) {
    block_barrier();  // %4 reduce_max @softmax.max barrier
  }
  store(y, threadIdx.x, 1.0f);
}
FUSE_KERNEL(64) branches(global<float> y) {
  if (threadIdx.x < 32) {
    block_barrier();  // %5 first barrier
  } else {
    block_barrier();  // %6 second barrier
  }
  store(y, threadIdx.x, 1.0f);
}
FUSE_KERNEL(32) lanes(global<float> y, int n) {
  float v = 1.0f;
  if (threadIdx.x < n) {
    v = warp_sum(v);  // %7 reduce_sum @mean
  }
  store(y, threadIdx.x, v);
}
FUSE_KERNEL(32) mixed(global<float> y, int n) {
  if (threadIdx.x < n) {
    store(y, threadIdx.x, warp_max(1.0f));
  } else {
    block_barrier();
  }
}
FUSE_KERNEL(48) partial(global<float> y) {
  store(y, threadIdx.x, warp_sum(1.0f));
}
)";
  for (const bool check : {true, false}) {
    EmulatedDevice d({.checked = check});
    d.load(body);
    const auto y = d.buffer(256);
    REQUIRE(d.run("exited", {1}, {y, extent(64)}));
    contains(d.run("exited", {1}, {y, extent(40)}),
             "exited: divergent barrier: thread 0 waits in block_barrier at line 4 (%4 reduce_max, "
             "softmax.max barrier), "
             "thread 40 has exited (block 0)");
    contains(d.run("branches", {1}, {y}),
             "branches: divergent barrier: thread 0 waits in block_barrier at line 10 (%5 first barrier), "
             "thread 32 "
             "waits in block_barrier at line 12 (%6 second barrier)");
    contains(d.run("lanes", {1}, {y, extent(31)}),
             "lanes: divergent exchange: thread 0 waits in warp_sum at line 19 (%7 reduce_sum, mean), thread "
             "31 has "
             "exited");
    contains(d.run("mixed", {1}, {y, extent(5)}), "thread 0 waits in warp_max at line 25");
    contains(d.run("mixed", {1}, {y, extent(5)}), "thread 5 waits in block_barrier at line 27");
    contains(d.run("partial", {1}, {y}), "partial: warp_sum in a warp of 16 lanes");
    REQUIRE(
        d.run("exited", {3}, {y, extent(64)}).code() ==
        (check ? ErrorCode::kernel_fault : ErrorCode::ok));  // the three blocks race; the device still works
  }
}

TEST_CASE("what KernelInfo says of a kernel must hold", "[emulated][fault]") {
  codegen::Source source = make_source(R"(
FUSE_KERNEL(32) silent(global<float> y) {
  block_barrier();
  store(y, threadIdx.x, 1.0f);
}
FUSE_KERNEL(32) large(global<float> y) {
  FUSE_SHARED(float, 64, tile);
  store(tile, threadIdx.x, 1.0f);
  store(y, threadIdx.x, load(tile, threadIdx.x));
}
)");
  source.kernels[0].communicates = false;
  source.kernels[1].shared_bytes = 255;
  for (const bool check : {true, false}) {
    EmulatedDevice d({.checked = check});
    d.module = d.backend->load(source);
    const auto y = d.buffer(128);
    contains(d.run("silent", {1}, {y}),
             "silent: block_barrier in a kernel that declares no communication: line 3");
    contains(d.run("large", {1}, {y}),
             "large: shared 'tile' at line 7 needs more than the 255 bytes of shared memory declared");
  }
}

TEST_CASE("an index into shared memory is checked", "[emulated][fault]") {
  EmulatedDevice d(checked);
  d.load(R"(
FUSE_KERNEL(32) over(global<float> y) {
  FUSE_SHARED(float, 16, a);
  FUSE_SHARED(float, 32, b);
  store(b, threadIdx.x, 1.0f);
  store(a, threadIdx.x, 1.0f);  // %3 tile
  store(y, threadIdx.x, load(b, threadIdx.x));
}
)");
  contains(d.run("over", {1}, {d.buffer(128)}),
           "over: out of bounds write of shared 'a'[16], which has 16 elements: block 0 thread 16 at line 6 "
           "(%3 tile)");
}

}  // namespace fuse::test
