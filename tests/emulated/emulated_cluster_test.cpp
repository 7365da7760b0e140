// Clusters on the emulated device, in the dialect: what their barriers order, how their blocks share the
// device, and what no kernel may do.
// SPDX-License-Identifier: Apache-2.0
#include "emulated/support.hpp"

namespace fuse::test {
namespace {

/// Every block adds its left neighbour's number in the cluster to its own, `rounds` times: through global
/// memory, or through shared memory. `first` and `second` are the barriers of a round.
std::string neighbours(bool by_global, const std::string& first, const std::string& second) {
  const std::string read = by_global ? "load(y, (b - rank + left) * 32 + i)" : "cluster_load(mine, i, left)";
  return R"(FUSE_KERNEL(32) FUSE_CLUSTER(3) turn(global<int> y, int rounds) {
  FUSE_SHARED(int, 32, mine);
  const int i = threadIdx.x, b = blockIdx.x, rank = b % 3, left = (rank + 2) % 3;
  store(mine, i, load(y, b * 32 + i));
  cluster_barrier();
  for (int round = 0; round < rounds; ++round) {
    const int v = )" +
         read + ";  // %1 take @turn\n    " + first + "\n    const int sum = load(mine, i) + v;\n" +
         "    store(mine, i, sum);  // %2 put @turn\n    store(y, b * 32 + i, sum);\n    " + second +
         "\n  }\n}\n";
}

std::vector<int> after_turns(std::size_t blocks, int rounds) {
  std::vector<int> y(blocks * 32);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<int>(i % 7);
  for (int round = 0; round < rounds; ++round) {
    const std::vector<int> old = y;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t b = i / 32;
      y[i] += old[(b / 3 * 3 + (b % 3 + 2) % 3) * 32 + i % 32];
    }
  }
  return y;
}

std::string fault_of(EmulatedDevice& d, const std::string& kernel, std::int64_t grid,
                     const std::vector<runtime::Argument>& arguments) {
  Status status = d.run(kernel, {grid}, arguments);
  if (status) status = d.queue->synchronize();
  return std::string(status.message());
}

bool says(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

// Rounds of a grid barrier and a cluster's.
const char* const both_barriers = R"(
FUSE_KERNEL(32) FUSE_CLUSTER(2) both(global<int> part, global<int> y, global<int> barrier) {
  FUSE_SHARED(int, 1, mine);
  if (threadIdx.x == 0) store(mine, 0, (int)blockIdx.x + 1);
  cluster_barrier();
  if (threadIdx.x == 0) store(part, blockIdx.x, cluster_load(mine, 0, 0) * 100 + cluster_load(mine, 0, 1));
  grid_barrier(barrier);  // %1 all
  int sum = 0;
  for (int b = 0; b < gridDim.x; ++b) sum = sum + load(part, b);
  if (threadIdx.x == 0) store(mine, 0, sum);
  grid_barrier(barrier);
  if (threadIdx.x == 0) store(y, blockIdx.x, sum + cluster_load(mine, 0, 1 - blockIdx.x % 2));
  cluster_barrier();
}
)";

}  // namespace

TEST_CASE("barriers of a cluster order global and shared memory", "[emulated][cluster]") {
  for (const char* profile : {"h200", "tiny3"}) {
    for (const bool by_global : {false, true}) {
      for (const std::uint64_t seed : {0, 1, 2}) {
        for (const bool checked : {false, true}) {
          INFO(profile << " global " << by_global << " seed " << seed << " checked " << checked);
          EmulatedDevice d({.profile = profile, .checked = checked, .threads = 2, .shuffle_seed = seed});
          d.load(neighbours(by_global, "cluster_barrier();", "cluster_barrier();"));
          const auto y = d.buffer(after_turns(12, 0));
          d.backend->reset_counts();
          REQUIRE(fault_of(d, "turn", 12, {y, extent(5)}) == "");
          CHECK(d.values<int>(y) == after_turns(12, 5));
          if (!checked) continue;
          const runtime::KernelCounts counts = d.backend->counts().at(0);
          CHECK(counts.cluster_barriers == 4 * 11);
          CHECK(counts.block_barriers == 0);
          CHECK(counts.grid_barriers == 0);
        }
      }
    }
  }
}

TEST_CASE("a round without one of its barriers is a race in every order", "[emulated][cluster][fault]") {
  for (const std::uint64_t seed : {0, 1, 2}) {
    EmulatedDevice d({.checked = true, .shuffle_seed = seed});
    for (const bool by_global : {false, true}) {
      for (const char* const other : {"", "block_barrier();"}) {
        for (const bool first : {true, false}) {
          INFO("seed " << seed << " global " << by_global << " first " << first << ' ' << other);
          const char* const barrier = "cluster_barrier();";
          d.load(neighbours(by_global, first ? other : barrier, first ? barrier : other));
          const std::string fault = fault_of(d, "turn", 6, {d.buffer(after_turns(6, 0)), extent(3)});
          says(fault, by_global ? "turn: race on global 'y'[" : "turn: race on shared 'mine'[");
          says(fault, by_global ? "blocks of one launch are not ordered" : "missing cluster barrier?");
          says(fault, "(%1 take, turn)");
          says(fault, "(%2 put, turn)");
        }
      }
    }
  }
}

TEST_CASE("a barrier of a cluster orders nothing between clusters", "[emulated][cluster][fault]") {
  for (const std::uint64_t seed : {0, 1, 2}) {
    EmulatedDevice d({.checked = true, .threads = seed == 1 ? 2 : 1, .shuffle_seed = seed});
    d.load(R"(
FUSE_KERNEL(32) FUSE_CLUSTER(2) far(global<int> y, int by) {
  const int i = threadIdx.x, b = blockIdx.x, n = gridDim.x;
  const int v = load(y, (b + by) % n * 32 + i);
  cluster_barrier();
  store(y, b * 32 + i, v);
}
FUSE_KERNEL(32) FUSE_CLUSTER(2) readers(global<int> y, global<int> z) {
  const int i = threadIdx.x, b = blockIdx.x;
  int v = 0;
  if (b != 1) v = load(y, i);
  cluster_barrier();
  if (b == 0) v = v + load(y, i);
  if (b == 1) store(y, i, v);
  store(z, b * 32 + i, v);
}
)");
    says(fault_of(d, "far", 6, {d.buffer(std::vector<int>(192)), extent(2)}),
         "blocks of one launch are not ordered");
    // Block 0 reads on both sides of its barrier; a store behind it races with the second.
    says(fault_of(d, "readers", 2, {d.buffer(std::vector<int>(32)), d.buffer(64 * 4)}),
         "race on global 'y'[");
  }
}

TEST_CASE("a barrier of shared memory alone orders no global memory", "[emulated][cluster][fault]") {
  const char* const barrier = "cluster_shared_barrier();";
  const std::string in_block = R"(
FUSE_KERNEL(64) FUSE_CLUSTER(2) own(global<int> y) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  store(y, i, 1);
  cluster_shared_barrier();
  store(y, i ^ 32, 2);
}
)";
  for (const std::uint64_t seed : {0, 1, 2}) {
    EmulatedDevice d({.checked = true, .shuffle_seed = seed});
    d.load(neighbours(false, barrier, barrier));
    const auto y = d.buffer(after_turns(6, 0));
    REQUIRE(fault_of(d, "turn", 6, {y, extent(3)}) == "");
    CHECK(d.values<int>(y) == after_turns(6, 3));
    d.load(neighbours(true, barrier, barrier));
    says(fault_of(d, "turn", 6, {d.buffer(after_turns(6, 0)), extent(3)}), "turn: race on global 'y'[");
    // Nor that of one block.
    d.load(in_block);
    says(fault_of(d, "own", 2, {d.buffer(512)}), "own: race on global 'y'[");
  }
}

TEST_CASE("an arrival and a wait order no memory", "[emulated][cluster][fault]") {
  for (const std::uint64_t seed : {0, 1, 2}) {
    EmulatedDevice d({.checked = true, .shuffle_seed = seed});
    const char* const apart = "cluster_arrive(); cluster_wait();";
    for (const bool by_global : {false, true}) {
      d.load(neighbours(by_global, apart, "cluster_barrier();"));
      says(fault_of(d, "turn", 6, {d.buffer(after_turns(6, 0)), extent(3)}),
           by_global ? "turn: race on global 'y'[" : "turn: race on shared 'mine'[");
    }
  }
}

TEST_CASE("clusters and the grid wait in one kernel", "[emulated][cluster]") {
  for (const char* profile : {"h200", "tiny3"}) {
    for (const auto scheduling : {BlockScheduling::greedy, BlockScheduling::gang}) {
      for (const std::uint64_t seed : {0, 1, 2}) {
        EmulatedDevice d(
            {.profile = profile, .checked = true, .shuffle_seed = seed, .scheduling = scheduling});
        d.load(both_barriers);
        const auto y = d.buffer(4 * 4);
        REQUIRE(fault_of(d, "both", 4, {d.buffer(16), y, d.buffer(std::vector<int>{0})}) == "");
        const int sum = 2 * 102 + 2 * 304;
        CHECK(d.values<int>(y) == std::vector<int>(4, 2 * sum));
      }
    }
  }
}

TEST_CASE("the blocks of a cluster have slots together or none", "[emulated][cluster][fault]") {
  // tiny3 holds one block of 512 threads a multiprocessor: three, which is one cluster of two.
  std::string wide = both_barriers;
  wide.replace(wide.find("FUSE_KERNEL(32)"), 15, "FUSE_KERNEL(512)");
  EmulatedDevice greedy({.profile = "tiny3"}),
      gang({.profile = "tiny3", .scheduling = BlockScheduling::gang});
  for (EmulatedDevice* d : {&greedy, &gang}) d->load(wide);
  const auto arguments = [](EmulatedDevice& d) {
    return std::vector{d.buffer(16), d.buffer(16), d.buffer(std::vector<int>{0})};
  };
  CHECK(fault_of(greedy, "both", 2, arguments(greedy)) == "");
  CHECK(fault_of(gang, "both", 2, arguments(gang)) == "");
  says(fault_of(greedy, "both", 4, arguments(greedy)),
       "deadlock on tiny3 (greedy): both: 2 of 4 blocks wait in grid_barrier at line 7 (%1 all), 2 have no "
       "slot");
  says(fault_of(gang, "both", 4, arguments(gang)),
       "both: its 4 blocks wait for each other, and tiny3 has slots for 3 at once");
  CHECK(fault_of(greedy, "both", 3, arguments(greedy)) ==
        "both: a grid of 3 blocks in x is no whole number of clusters of 2");
}

TEST_CASE("what no kernel of clusters may do", "[emulated][cluster][fault]") {
  for (const bool checked : {false, true}) {
    EmulatedDevice d({.checked = checked, .threads = 2});
    d.load(R"(
FUSE_KERNEL(64) alone(global<int> y) {
  cluster_barrier();
}
FUSE_KERNEL(64) reads_alone(global<int> y) {
  FUSE_SHARED(int, 64, t);
  store(t, threadIdx.x, 1);
  block_barrier();
  store(y, threadIdx.x, cluster_load(t, 0, 0));
}
FUSE_KERNEL(64) FUSE_CLUSTER(2) of_global(global<int> y) {
  cluster_barrier();
  store(y, threadIdx.x, cluster_load(y, 0, 1));  // %4 gather
}
FUSE_KERNEL(64) FUSE_CLUSTER(2) rank(global<int> y) {
  FUSE_SHARED(int, 64, t);
  store(t, threadIdx.x, 1);
  cluster_barrier();
  store(y, threadIdx.x, cluster_load(t, 0, 2));  // %5 far
  cluster_barrier();
}
FUSE_KERNEL(64) FUSE_CLUSTER(2) some_blocks(global<int> y) {
  if (blockIdx.x == 2) cluster_barrier();  // %6 meet
}
FUSE_KERNEL(64) FUSE_CLUSTER(2) two_lines(global<int> y) {
  if (blockIdx.x == 0) {
    cluster_barrier();
  } else {
    cluster_barrier();
  }
}
FUSE_KERNEL(64) FUSE_CLUSTER(2) two_kinds(global<int> y) {
  if (threadIdx.x < 32) { cluster_barrier(); } else { block_barrier(); }
}
)");
    const auto y = d.buffer(256);
    says(fault_of(d, "alone", 2, {y}), "alone: cluster_barrier in a kernel that declares no cluster: line 3");
    says(fault_of(d, "reads_alone", 2, {y}), "cluster_load in a kernel that declares no cluster: line 9");
    says(fault_of(d, "of_global", 2, {y}), "of_global: cluster_load of what is no shared array: block ");
    says(fault_of(d, "rank", 2, {y}), "rank: cluster_load from rank 2 of a cluster of 2 blocks: block ");
    says(fault_of(d, "some_blocks", 4, {y}),
         "some_blocks: divergent barrier: block 2 waits in cluster_barrier at line 23 (%6 meet), block 3 has "
         "ended");
    says(fault_of(d, "two_lines", 2, {y}),
         "two_lines: divergent barrier: block 0 waits in cluster_barrier at line 27");
    says(fault_of(d, "two_kinds", 2, {y}), "divergent barrier: thread 0 waits in cluster_barrier at line 33");
  }
}

TEST_CASE("a kernel of clusters whose blocks do not meet", "[emulated][cluster]") {
  for (const std::uint64_t seed : {0, 1, 2}) {
    for (const bool checked : {false, true}) {
      EmulatedDevice d({.checked = checked, .threads = 2, .shuffle_seed = seed});
      d.load(
          "FUSE_KERNEL(32) FUSE_CLUSTER(4) fill(global<int> y) {\n"
          "  store(y, blockIdx.x * 32 + threadIdx.x, (int)blockIdx.x);\n}\n");
      const auto y = d.buffer(8 * 128);
      REQUIRE(fault_of(d, "fill", 8, {y}) == "");
      CHECK(d.values<int>(y).front() == 0);
      CHECK(d.values<int>(y).back() == 7);
    }
  }
}

TEST_CASE("shared memory of a cluster starts unwritten in each cluster", "[emulated][cluster][fault]") {
  EmulatedDevice d({.checked = true, .threads = 1});
  d.load(R"(
FUSE_KERNEL(32) FUSE_CLUSTER(2) once(global<int> y) {
  FUSE_SHARED(int, 32, t);
  if (blockIdx.x < 2) store(t, threadIdx.x, 1);
  cluster_barrier();
  store(y, blockIdx.x * 32 + threadIdx.x, cluster_load(t, threadIdx.x, 1));
  cluster_barrier();
}
)");
  const auto y = d.buffer(4 * 128);
  says(fault_of(d, "once", 4, {y}),
       "once: read of shared 't'[0] of block 3, which nobody wrote: block 2 thread 0");
  CHECK(fault_of(d, "once", 2, {y}) == "");
}

}  // namespace fuse::test
