// Clusters of blocks in the kernel IR: the text, what the verifier refuses, what the kernels compute on the
// emulated device, and how their faults are reported.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "codegen_cuda/text/print_cuda.hpp"
#include "emulated/support.hpp"
#include "ir/kernel/passes/name_divisions.hpp"
#include "ir/kernel/passes/plant_fault.hpp"
#include "kernel/cluster_kernel.hpp"
#include "schedule/schedule_support.hpp"
#include "support/catch.hpp"
#if FUSE_COMPILER_HAS_CUDA
#include "compile/toolchains/cuda/nvrtc.hpp"
#endif

namespace fuse::test {
namespace {

using kernel::Kernel;

std::string refusal(const std::function<void(ClusterSum&)>& change, ClusterSum sum = ClusterSum(4, 3)) {
  change(sum);
  const std::string text = thrown_by([&] { kernel::verify(sum.made(), 49152); });
  const std::string start = "internal error: kernel cluster_sum: ";
  return text.starts_with(start) ? text.substr(start.size()) : text;
}

/// What became of the kernel on a profile, and its result.
struct Outcome {
  Status status;
  std::vector<int> y{};
};

std::vector<int> numbers(std::size_t count) {
  std::vector<int> x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<int>(i * i % 1009);
  return x;
}

Outcome outcome(const Kernel& made, const runtime::EmulatedOptions& options) {
  EmulatedDevice d(options);
  d.module = d.backend->load(codegen::print_cuda("clusters", {made}));
  const auto blocks = made.grid.constant();
  const auto y = d.buffer(blocks * 64 * 4);
  const auto x = numbers(static_cast<std::size_t>(blocks) * 64);
  Outcome result{d.run(made.name, {blocks}, {d.buffer(x), y})};
  if (result.status) result.y = d.values<int>(y);
  return result;
}

std::vector<int> expected(int cluster, int clusters) {
  const auto blocks = static_cast<std::size_t>(cluster);
  const std::vector<int> x = numbers(blocks * static_cast<std::size_t>(clusters) * 64);
  std::vector<int> y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t first = i / 64 / blocks * blocks;
    for (std::size_t r = 0; r < blocks; ++r) y[i] += x[(first + r) * 64 + i % 64];
  }
  return y;
}

/// The fault of a changed kernel has these texts, whichever of its threads run first.
void blames(const Kernel& made, const std::vector<std::string>& texts) {
  for (const char* profile : {"h200", "tiny3"}) {
    for (const std::uint64_t seed : {0, 1, 2}) {
      const Outcome found = outcome(made, {.profile = profile, .checked = true, .shuffle_seed = seed});
      INFO(profile << " seed " << seed << ": " << found.status.message());
      CHECK(found.status.code() == ErrorCode::kernel_fault);
      for (const std::string& text : texts) {
        INFO(text);
        CHECK(std::string(found.status.message()).find(text) != std::string::npos);
      }
    }
  }
}

Kernel planted(const std::string& fault, bool split = false) {
  std::vector<Kernel> kernels = {split ? ClusterSum(3, 2).split().made() : ClusterSum(3, 2).made()};
  REQUIRE(kernel::plant_fault(kernels, *kernel::parse_fault(fault)));
  return kernels[0];
}

std::string line_of(const Kernel& made, const std::string& text) {
  const std::string whole = codegen::print_cuda("clusters", {made}).text();
  const std::size_t body = whole.find("FUSE_KERNEL(64"), at = whole.find(text, body);
  REQUIRE(at != std::string::npos);
  return "line " +
         std::to_string(1 + std::count(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

}  // namespace

TEST_CASE("the text of a kernel of clusters", "[kernel][cluster]") {
  const Kernel made = ClusterSum(4, 3).made();
  const std::string text = print(made);
  INFO(text);
  CHECK(
      text.starts_with("kernel @cluster_sum(x: global const i32[768], y: global i32[768]) block 64 grid 12 "
                       "cluster 4 index i32 {\n"));
  CHECK(text.find("let part: i32 = load tile[t] of block r") != std::string::npos);
  CHECK(text.find("barrier cluster") != std::string::npos);
  const codegen::Source source = codegen::print_cuda("clusters", {made});
  INFO(source.text());
  CHECK(source.body.find("FUSE_KERNEL(64, 1) FUSE_CLUSTER(4) cluster_sum(") != std::string::npos);
  CHECK(source.body.find("cluster_load(tile, t, r)") != std::string::npos);
  CHECK(source.body.find("cluster_barrier();") != std::string::npos);
  CHECK(source.prelude.find("__cluster_dims__") != std::string::npos);
  // What another block of the cluster stored may not be held back by a restrict pointer.
  CHECK(source.prelude.find("global_of") != std::string::npos);
  CHECK(source.kernels.at(0).cluster == 4);
  CHECK(source.kernels.at(0).communicates);
  CHECK_FALSE(source.kernels.at(0).cooperative);
}

TEST_CASE("a right kernel of clusters verifies", "[kernel][cluster]") {
  CHECK(refusal([](ClusterSum&) {}) == "no error");
  // The same in all blocks of a cluster, if not in all blocks.
  CHECK(refusal([](ClusterSum& s) { s.guard(ClusterSum::before, {s.b / 4, 2}); }) == "no error");
  CHECK(refusal([](ClusterSum& s) { s.guard(ClusterSum::before, {s.b / 8, 1}); }) == "no error");
  CHECK(refusal([](ClusterSum& s) { s.rank = (s.b + 1) % 4; }) == "no error");
  CHECK(refusal([](ClusterSum& s) {
          s.body.insert(s.body.begin(), kernel::Stmt{kernel::Bind{"of", s.b / 4}, {}});
          s.guard(ClusterSum::before + 1, {Dim::index("of", 3), 2});
        }) == "no error");
}

TEST_CASE("what a kernel of clusters may not do", "[kernel][cluster]") {
  CHECK(refusal([](ClusterSum& s) { s.kernel.cluster = 5; }) ==
        "a grid of 12 blocks is no whole number of clusters of 5");
  CHECK(refusal([](ClusterSum& s) { s.kernel.cluster = 1; }) ==
        "a barrier of clusters, without clusters (at %2 put)");
  CHECK(refusal([](ClusterSum& s) {
          s.kernel.cluster = 1;
          s.remove(ClusterSum::behind);
          s.remove(ClusterSum::before);
        }) == "a load from another block of a cluster, without clusters (at %3 reduce_sum)");
  const std::string missed = "blocks of a cluster may miss its barrier (at %2 put)";
  CHECK(refusal([](ClusterSum& s) { s.guard(ClusterSum::before, {s.b, 8}); }) == missed);
  CHECK(refusal([](ClusterSum& s) { s.guard(ClusterSum::before, {s.b / 2, 1}); }) == missed);
  CHECK(refusal([](ClusterSum& s) { s.guard(ClusterSum::before, {s.b % 4, 1}); }) == missed);
  CHECK(refusal([](ClusterSum& s) { s.guard(ClusterSum::before, {s.t, 32}); }) == missed);
  const std::string leaves = " may leave a cluster of 4 blocks (at %3 reduce_sum)";
  CHECK(refusal([](ClusterSum& s) { s.rank = s.r + 1; }) == "the rank r + 1" + leaves);
  CHECK(refusal([](ClusterSum& s) { s.rank = s.r - 1; }) == "the rank r - 1" + leaves);
  CHECK(refusal([](ClusterSum& s) { s.rank = s.b; }) == "the rank b" + leaves);
  CHECK(refusal([](ClusterSum& s) { s.kernel.buffers[ClusterSum::tile].space = kernel::Space::local; }) ==
        "a load from another block that is not of shared memory (at %3 reduce_sum)");
  CHECK(refusal([](ClusterSum& s) { s.rank = Dim::index("q", 4); }) ==
        "a rank uses q, which is not in scope (at %3 reduce_sum)");
}

TEST_CASE("no block of a cluster ends while another may read its shared memory", "[kernel][cluster]") {
  const std::string ends = "a block may end while another reads its shared memory";
  CHECK(refusal([](ClusterSum& s) { s.remove(ClusterSum::behind); }).starts_with(ends));
  // A barrier that only some clusters come to, or that a loop without trips leaves out, is none.
  CHECK(refusal([](ClusterSum& s) { s.guard(ClusterSum::behind, {s.b / 4, 2}); }).starts_with(ends));
  for (const bool once : {true, false}) {
    INFO("once " << once);
    const Dim n = Dim::symbol("n", {.min = 0, .max = 9});
    const std::string found = refusal([&](ClusterSum& s) {
      s.kernel.extents = {n};
      kernel::For loop{.name = "i", .begin = 0, .end = once ? Dim(1) : n, .body = {}};
      loop.body.push_back(s.body[ClusterSum::behind]);
      s.body[ClusterSum::behind] = {std::move(loop), {}};
    });
    CHECK((once ? found == "no error" : found.starts_with(ends)));
  }
}

TEST_CASE("threads arrive for their cluster once, and wait once", "[kernel][cluster]") {
  const auto refused = [](const std::function<void(ClusterSum&)>& change) {
    return refusal(change, ClusterSum(4, 3).split());
  };
  const auto again = [](ClusterSum& s, std::size_t at) {
    s.body.insert(s.body.begin() + static_cast<std::ptrdiff_t>(at), s.body[at]);
  };
  constexpr std::size_t arrive = ClusterSum::split_arrive, wait = ClusterSum::split_wait;
  CHECK(refused([](ClusterSum&) {}) == "no error");
  CHECK(
      refused([](ClusterSum& s) { s.remove(wait); }).starts_with("threads arrive for their cluster and do"));
  CHECK(refused([](ClusterSum& s) { s.remove(arrive); }) ==
        "threads wait for their cluster, and have not arrived (at %5 leave)");
  CHECK(refused([&](ClusterSum& s) { again(s, arrive); }) ==
        "threads arrive for their cluster twice (at %3 reduce_sum)");
  CHECK(refused([&](ClusterSum& s) { again(s, wait); }) ==
        "threads wait for their cluster, and have not arrived (at %5 leave)");
  CHECK(refused([](ClusterSum& s) { std::swap(s.body[ClusterSum::add], s.body[arrive]); }) ==
        "a load from another block, after the thread has arrived (at %3 reduce_sum)");
  CHECK(refused([](ClusterSum& s) {
          s.body[ClusterSum::split_arrive + 1] = {kernel::ClusterBarrier{}, {"%4 store", "", ""}};
        }) == "a barrier of the cluster, after its threads have arrived (at %4 store)");
  CHECK(refused([](ClusterSum& s) {
          s.guard(arrive, {s.t, 32});
        }) == "blocks of a cluster may not arrive (at %3 reduce_sum)");
  CHECK(refused([](ClusterSum& s) {
          s.guard(wait, {s.t, 32});
        }) == "blocks of a cluster may not wait (at %5 leave)");
  CHECK(refused([](ClusterSum& s) {
          s.guard(arrive, {s.b / 4, 2});
        }).starts_with("threads arrive for their cluster, or wait for it, in what may not run"));
  const std::string text = print(ClusterSum(4, 3).split().made());
  for (const char* line : {"barrier cluster of shared memory", "arrive cluster", "wait cluster"}) {
    CHECK(text.find(line) != std::string::npos);
  }
}

TEST_CASE("divisions of a rank are named", "[kernel][cluster]") {
  ClusterSum sum(4, 3);
  sum.rank = (sum.b + sum.r) % 4;
  sum.index = (sum.b + sum.r) % 4 + sum.t % 32;
  const Kernel made = kernel::name_divisions(sum.made());
  INFO(print(made));
  CHECK(print(made).find("of block at") != std::string::npos);
  kernel::verify(made, 49152);
}

TEST_CASE("a sum over the blocks of a cluster is right in every order", "[kernel][cluster][emulated]") {
  for (const auto& [profile, cluster] :
       {std::pair{"h200", 16}, {"h200", 5}, {"h200", 2}, {"tiny3", 3}, {"tiny3", 2}}) {
    for (const Kernel& made : {ClusterSum(cluster, 5).made(), ClusterSum(cluster, 5).split().made()}) {
      kernel::verify(made, 49152);
      for (const bool checked : {false, true}) {
        for (const std::uint64_t seed : {0, 1, 2}) {
          const Outcome found = outcome(
              made,
              {.profile = profile, .checked = checked, .threads = seed == 1 ? 2 : 1, .shuffle_seed = seed});
          INFO(profile << " cluster " << cluster << " seed " << seed << ": " << found.status.message());
          REQUIRE(found.status);
          CHECK(found.y == expected(cluster, 5));
        }
      }
    }
  }
}

TEST_CASE("a device without clusters, or with smaller ones, refuses them", "[kernel][cluster][emulated]") {
  for (const auto& [profile, cluster, limit] : {std::tuple{"a100", 2, "1"},
                                                {"v100", 4, "1"},
                                                {"tiny2", 2, "1"},
                                                {"tiny3", 4, "3"},
                                                {"h200", 17, "16"}}) {
    const Outcome found = outcome(ClusterSum(cluster, 2).made(), {.profile = profile});
    CHECK(found.status.code() == ErrorCode::invalid_argument);
    CHECK(std::string(found.status.message()) == "cluster_sum: cluster of " + std::to_string(cluster) +
                                                     " exceeds the limit of " + limit + " (" + profile + ")");
  }
}

TEST_CASE("a barrier of a cluster that is left out is found in every order",
          "[kernel][cluster][emulated][fault]") {
  const std::string read = line_of(planted("barrier.0"), "cluster_load(") + " (%3 reduce_sum, sum)";
  const std::string wrote = line_of(planted("barrier.0"), "store(tile") + " (%2 put, sum)";
  blames(planted("barrier.0"),
         {"cluster_sum: race on shared 'tile'[", "] of block ", read, wrote, "missing cluster barrier?"});
  // Its own threads wait, the other blocks do not.
  blames(planted("fence.0"), {"cluster_sum: race on shared 'tile'[", "missing cluster barrier?"});
  const std::string last = line_of(planted("barrier.1"), "cluster_load(") + " (%3 reduce_sum, sum)";
  blames(planted("barrier.1"), {"cluster_sum: read of shared 'tile'[", "] of block ",
                                ", which may have ended: block ", last, "missing cluster barrier after it?"});
  blames(planted("fence.1"), {"which may have ended"});
}

TEST_CASE("an arrival or a wait that is left out is found in every order",
          "[kernel][cluster][emulated][fault]") {
  blames(planted("barrier.0", true), {"cluster_sum: race on shared 'tile'[", "missing cluster barrier?"});
  blames(planted("fence.0", true), {"cluster_sum: race on shared 'tile'[", "missing cluster barrier?"});
  blames(planted("barrier.1", true), {"cluster_sum: cluster_wait without cluster_arrive before it: block ",
                                      line_of(planted("barrier.1", true), "cluster_wait(")});
  blames(planted("barrier.2", true),
         {"cluster_sum: read of shared 'tile'[", ", which may have ended: block ",
          line_of(planted("barrier.2", true), "cluster_load("), "missing cluster barrier after it?"});
  // A read behind the arrival.
  ClusterSum late = ClusterSum(3, 2).split();
  std::swap(late.body[ClusterSum::add], late.body[ClusterSum::split_arrive]);
  blames(late.made(), {"cluster_sum: read of shared 'tile'[", ", which may have ended: block "});
  // Some threads, or some blocks.
  for (const bool threads : {true, false}) {
    ClusterSum some = ClusterSum(3, 2).split();
    const kernel::IndexLess those =
        threads ? kernel::IndexLess{some.t, 40} : kernel::IndexLess{some.b % 3, 2};
    ClusterSum others = some;
    some.guard(ClusterSum::split_arrive, those);
    blames(some.made(), {"cluster_sum: cluster_wait without cluster_arrive before it: block "});
    others.guard(ClusterSum::split_wait, those);
    blames(others.made(), {"cluster_sum: divergent barrier: ", " waits in cluster_wait at ", "(%5 leave)"});
  }
  ClusterSum between = ClusterSum(3, 2).split();
  between.body.insert(between.body.begin() + ClusterSum::split_wait, between.body[ClusterSum::before]);
  blames(between.made(),
         {"cluster_sum: cluster_shared_barrier between cluster_arrive and cluster_wait: block "});
}

TEST_CASE("reads of another block that go wrong are found", "[kernel][cluster][emulated][fault]") {
  blames(planted("extent.0+1"),
         {"cluster_sum: cluster_load from rank 3 of a cluster of 3 blocks: block ", "(%3 reduce_sum, sum)"});
  ClusterSum below(3, 2);
  below.rank = below.r - 1;
  blames(below.made(), {"cluster_sum: cluster_load from rank -1 of a cluster of 3 blocks"});
  ClusterSum beyond(3, 2);
  beyond.index = beyond.t + 60;
  blames(beyond.made(), {"cluster_sum: out of bounds read of shared 'tile'[", "which has 64 elements: block ",
                         "(%3 reduce_sum, sum)"});
  ClusterSum hole(3, 2);
  hole.guard(ClusterSum::put, {hole.b % 3, 2});
  blames(hole.made(), {"cluster_sum: read of shared 'tile'[", "] of block ", ", which nobody wrote: block ",
                       "(%3 reduce_sum, sum)"});
  for (const bool cluster : {true, false}) {
    ClusterSum some(3, 2);
    some.guard(ClusterSum::behind,
               cluster ? kernel::IndexLess{some.b % 3, 2} : kernel::IndexLess{some.t, 40});
    blames(some.made(), {"cluster_sum: divergent barrier: ", " waits in cluster_barrier at ", "(%5 leave)",
                         cluster ? " has ended" : " has exited"});
  }
}

#if FUSE_COMPILER_HAS_CUDA
TEST_CASE("NVRTC compiles kernels of clusters without spills", "[kernel][cluster][nvrtc]") {
  if (!runtime::nvrtc_available()) {
    WARN("skipped: libnvrtc was not found");
    return;
  }
  for (const int cluster : {2, 8, 16}) {
    for (const Kernel& made : {ClusterSum(cluster, 5).made(), ClusterSum(cluster, 5).split().made()}) {
      const codegen::Source source = codegen::print_cuda("clusters", {made});
      const runtime::Cubin cubin = runtime::compile_to_cubin(source, 90, 1);
      INFO(cubin.log);
      REQUIRE(cubin.kernels.size() == 1);
      CHECK_FALSE(cubin.kernels[0].spills());
      CHECK(cubin.kernels[0].shared_bytes == 256);
    }
  }
}
#endif

}  // namespace fuse::test
