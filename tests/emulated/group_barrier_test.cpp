// Blocks that wait for those of their group alone: what that orders, and what it does not.
// SPDX-License-Identifier: Apache-2.0
#include "emulated/support.hpp"

namespace fuse::test {
namespace {

using runtime::Argument;

void faults_with(const Status& status, const std::string& text) {
  INFO(status.message());
  CHECK(status.code() == ErrorCode::kernel_fault);
  CHECK(std::string(status.message()).find(text) != std::string::npos);
}

/// One-warp blocks whose counters are all `fill` bytes.
class Groups : public EmulatedDevice {
 public:
  explicit Groups(const runtime::EmulatedOptions& options, int counters = 9, int fill = 0)
      : EmulatedDevice(options), counters_(buffer(4 * counters)), fill_(fill), bytes_(4 * counters) {}
  Status finish(const std::string& text, std::int64_t grid, std::vector<Argument> arguments) {
    load(text);
    backend->memset(*queue, counters_.address, fill_, static_cast<std::size_t>(bytes_)).throw_if_failed();
    arguments.push_back(counters_);
    const Status started = backend->launch(*queue, module->function("k"), {grid}, arguments.data(),
                                           static_cast<int>(arguments.size()));
    return started ? queue->synchronize() : started;
  }
  std::vector<int> left() { return values<int>(counters_); }

 private:
  Argument counters_;
  int fill_, bytes_;
};

// Group g of three blocks takes its neighbours' numbers g + 1 times, two barriers each; blocks that make no
// group count how often that would be.
std::string in_groups(const std::string& first, const std::string& second) {
  return R"(FUSE_KERNEL(32) k(global<int> y, global<int> barrier) {
  const int group = blockIdx.x / 3, whole = gridDim.x / 3;
  const int next = group < whole ? 3 * group + (blockIdx.x + 1) % 3 : blockIdx.x;
  for (int round = 0; round <= group; ++round) {
    const int v = load(y, 32 * next + threadIdx.x);  // %1 take
    )" + first +
         R"(
    store(y, 32 * blockIdx.x + threadIdx.x, v + 1);  // %2 put
    )" + second +
         "\n  }\n}\n";
}

const std::string group_of_three = "group_barrier(barrier, 1, 3);";

std::vector<int> by_block(std::int64_t blocks) {
  std::vector<int> values(static_cast<std::size_t>(32 * blocks));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i / 32);
  return values;
}

}  // namespace

TEST_CASE("groups of blocks wait as often as each of them likes", "[emulated]") {
  for (const bool checked : {false, true}) {
    for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
      Groups d({.checked = checked, .threads = seed % 2 ? 2 : 1, .shuffle_seed = seed}, 4);
      const auto y = d.buffer(by_block(8));
      d.backend->reset_counts();
      const Status status = d.finish(in_groups(group_of_three, group_of_three), 8, {y});
      INFO("seed " << seed << ": " << status.message());
      REQUIRE(status);
      const std::vector<int> got = d.values<int>(y);
      // Once around by one; twice, by two; three times by itself.
      for (const auto& [block, value] :
           {std::pair(0, 2), {1, 3}, {2, 1}, {3, 7}, {4, 5}, {5, 6}, {6, 9}, {7, 10}})
        CHECK(got[static_cast<std::size_t>(32 * block + 31)] == value);
      CHECK(d.left() == std::vector<int>{0, 2 * 3, 4 * 3, 0});
      if (checked) CHECK(d.backend->counts().at(0).grid_barriers == 2);
    }
  }
}

TEST_CASE("a missing barrier of a group is a race in every order", "[emulated][fault]") {
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    Groups d({.checked = true, .shuffle_seed = seed});
    faults_with(d.finish(in_groups("block_barrier();", group_of_three), 6, {d.buffer(by_block(6))}),
                "race on global 'y'[");
    faults_with(d.finish(in_groups(group_of_three, ""), 6, {d.buffer(by_block(6))}), "race on global 'y'[");
  }
}

TEST_CASE("what other groups stored is not ordered", "[emulated][fault]") {
  const auto reads = [](int distance, const std::string& barrier) {
    return "FUSE_KERNEL(32) k(global<int> y, global<int> z, global<int> barrier) {\n"
           "  if (threadIdx.x == 0) store(y, blockIdx.x, 1);\n  " +
           barrier + "\n  if (threadIdx.x == 0 && blockIdx.x == 2) store(z, 0, load(y, 2 + " +
           std::to_string(distance) + "));\n}\n";
  };
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    Groups d({.checked = true, .shuffle_seed = seed});
    const std::vector<Argument> memory = {d.buffer(8 * 4), d.buffer(4)};
    CHECK(d.finish(reads(-2, group_of_three), 8, memory));
    faults_with(d.finish(reads(1, group_of_three), 8, memory), "race on global 'y'[3]");
    faults_with(d.finish(reads(5, group_of_three), 8, memory), "race on global 'y'[7]");
    CHECK(d.finish(reads(5, "grid_barrier(barrier);"), 8, memory));
  }
}

TEST_CASE("groups of two sizes, with a barrier of all blocks between", "[emulated]") {
  const std::string text =
      R"(FUSE_KERNEL(32) k(global<int> y, global<int> z, global<int> w, global<int> barrier) {
  const int b = blockIdx.x;
  if (threadIdx.x == 0) store(y, b, b);
  group_barrier(barrier, 1, 2);
  if (threadIdx.x == 0) store(z, b, load(y, b ^ 1));
  grid_barrier(barrier);
  if (threadIdx.x == 0) store(y, b, load(z, 5 - b));
  group_barrier(barrier, 4, 3);
  if (threadIdx.x == 0) store(w, b, load(y, b / 3 * 3) + load(y, b / 3 * 3 + 2));
}
)";
  for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
    Groups d({.checked = true, .threads = seed % 2 ? 2 : 1, .shuffle_seed = seed}, 6);
    const auto w = d.buffer(6 * 4);
    const Status status = d.finish(text, 6, {d.buffer(6 * 4), d.buffer(6 * 4), w});
    INFO("seed " << seed << ": " << status.message());
    REQUIRE(status);
    CHECK(d.values<int>(w) == std::vector<int>{4 + 2, 4 + 2, 4 + 2, 3 + 1, 3 + 1, 3 + 1});
    CHECK(d.left() == std::vector<int>{6, 2, 2, 2, 3, 3});
  }
}

TEST_CASE("barriers of groups that not all come to", "[emulated][fault]") {
  const auto text = [](const std::string& body) {
    return "FUSE_KERNEL(32) k(global<int> y, global<int> barrier) {\n  store(y, 32 * blockIdx.x + "
           "threadIdx.x, 1);\n" +
           body + "\n}\n";
  };
  for (const bool checked : {false, true}) {
    Groups d({.checked = checked});
    const auto y = d.buffer(6 * 128);
    faults_with(d.finish(text("  if (blockIdx.x != 4) " + group_of_three), 6, {y}),
                "divergent barrier: block 3 waits in group_barrier at line 3, block 4 has ended");
    faults_with(
        d.finish(text("  if (blockIdx.x == 4) grid_barrier(barrier);\n  " + group_of_three), 6, {y}),
        "divergent barrier: block 3 waits in group_barrier at line 4, block 4 waits in grid_barrier at "
        "line 3");
    faults_with(
        d.finish(text("  if (blockIdx.x < 3) " + group_of_three + "\n  else grid_barrier(barrier);"), 6, {y}),
        "divergent barrier: block 3 waits in grid_barrier at line 4, block 0 has ended");
    faults_with(d.finish(text("  if (threadIdx.x < 7) " + group_of_three), 6, {y}),
                "divergent barrier: thread 0 waits in");
  }
}

TEST_CASE("counters of groups that are no counters", "[emulated][fault]") {
  const std::string text =
      "FUSE_KERNEL(32) k(global<int> y, global<int> barrier) {\n  store(y, 32 * blockIdx.x + threadIdx.x, "
      "1);\n  "
      "group_barrier(barrier, "
      "1, 2);\n}\n";
  Groups full({.checked = true}, 4, 1), few({.checked = true}, 3);
  faults_with(full.finish(text, 6, {full.buffer(6 * 128)}),
              "the counter of group_barrier at line 3 is 16843009 where 0 is right");
  faults_with(few.finish(text, 6, {few.buffer(6 * 128)}),
              "the counter of group_barrier at line 3 is no written buffer of this kernel");
}

TEST_CASE("groups need slots for their own blocks alone", "[emulated][fault]") {
  // tiny2 has slots for four blocks.
  const auto text = [](int group) {
    return "FUSE_KERNEL(32) k(global<int> y, global<int> barrier) {\n  store(y, 32 * blockIdx.x + "
           "threadIdx.x, 1);\n  "
           "group_barrier(barrier, 1, " +
           std::to_string(group) + ");  // %3 sum @rows\n}\n";
  };
  Groups d({.profile = "tiny2", .checked = true});
  CHECK(d.finish(text(2), 8, {d.buffer(8 * 128)}));
  faults_with(
      d.finish(text(6), 6, {d.buffer(6 * 128)}),
      "deadlock on tiny2 (greedy): k: 4 of 6 blocks wait in group_barrier at line 3 (%3 sum, rows), 2 "
      "have no slot");
}

}  // namespace fuse::test
