// Kernels whose blocks wait for each other: what they compute, in which order they may run, and how a wait
// that cannot end is reported.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "emulated/support.hpp"

namespace fuse::test {
namespace {

using runtime::Argument;

void blames(const Status& status, const std::string& text, ErrorCode code = ErrorCode::kernel_fault) {
  INFO(status.message());
  CHECK(status.code() == code);
  CHECK(std::string(status.message()).find(text) != std::string::npos);
}

/// A device with one counter a queue, zeroed on it before each launch.
class Rig : public EmulatedDevice {
 public:
  explicit Rig(const runtime::EmulatedOptions& options)
      : EmulatedDevice(options), second(backend->create_queue()) {}
  Status start(runtime::Queue& on, const std::string& kernel, std::int64_t grid,
               std::vector<Argument> arguments) {
    arguments.push_back(&on == queue.get() ? mine_ : other_);
    backend->memset(on, arguments.back().address, 0, 4).throw_if_failed();
    return backend->launch(on, module->function(kernel), {grid}, arguments.data(),
                           static_cast<int>(arguments.size()));
  }
  Status finish(const std::string& kernel, std::int64_t grid, const std::vector<Argument>& arguments) {
    const Status started = start(*queue, kernel, grid, arguments);
    return started ? queue->synchronize() : started;
  }
  std::unique_ptr<runtime::Queue> second;

 private:
  Argument mine_ = buffer(4), other_ = buffer(4);
};

// Every block adds up all blocks' sums, which another one stored. `barrier` stands between.
std::string two_phases(const std::string& barrier) {
  return R"(FUSE_KERNEL(64) total(global<const int> x, global<int> part, global<int> y, global<int> barrier) {
  FUSE_SHARED(int, 2, half);
  const int s = warp_sum(load(x, blockIdx.x * 64 + threadIdx.x));
  if (threadIdx.x % 32 == 0) store(half, threadIdx.x / 32, s);
  block_barrier();
  if (threadIdx.x == 0) store(part, blockIdx.x, load(half, 0) + load(half, 1));  // %1 reduce_sum @part
  )" + barrier +
         R"(
  int all = 0;
  for (int b = 0; b < gridDim.x; ++b) all = all + load(part, b);  // %2 reduce_sum @all
  if (threadIdx.x == 0) store(y, blockIdx.x, all);
}
)";
}

constexpr int blocks = 7;

std::vector<int> numbers() {
  std::vector<int> x(blocks * 64);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int>(i % 13);
  return x;
}

int sum_of(const std::vector<int>& x) {
  int sum = 0;
  for (const int v : x) sum += v;
  return sum;
}

// In each of `rounds` rounds every block takes its neighbour's number, in place: two barriers a round.
std::string turns(int without) {
  const auto barrier = [&](int i) {
    return std::string(i == without ? "\n" : "    grid_barrier(barrier);\n");
  };
  return "FUSE_KERNEL(32) turn(global<int> y, int rounds, global<int> barrier) {\n"
         "  const int n = gridDim.x * 32, i = blockIdx.x * 32 + threadIdx.x;\n"
         "  for (int round = 0; round < rounds; ++round) {\n"
         "    const int v = load(y, (i + 32) % n);  // %1 take\n" +
         barrier(0) + "    store(y, i, v + 1);  // %2 put\n" + barrier(1) + "  }\n}\n";
}

// Two kernels of one-warp blocks. On tiny2 two fit a multiprocessor, by its block slots: four in all.
const char* const meeting = R"(
FUSE_KERNEL(32) a(global<int> y, global<int> barrier) {
  store(y, blockIdx.x * 32 + threadIdx.x, 1);
  grid_barrier(barrier);  // %3 reduce_sum @first
  const int other = load(y, (blockIdx.x + 1) % gridDim.x * 32);
  grid_barrier(barrier);
  if (threadIdx.x == 0) store(y, blockIdx.x * 32, other + 1);
}
FUSE_KERNEL(32) b(global<int> y, global<int> barrier) {
  store(y, blockIdx.x * 32 + threadIdx.x, 5);
  grid_barrier(barrier);  // %4 reduce_max @second
}
)";

}  // namespace

TEST_CASE("a sum over blocks in two phases is right in every order", "[emulated]") {
  for (const bool checked : {false, true}) {
    for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
      Rig d({.checked = checked, .threads = seed % 2 ? 2 : 1, .shuffle_seed = seed});
      d.load(two_phases("grid_barrier(barrier);"));
      const std::vector<int> x = numbers();
      const auto y = d.buffer(blocks * 4);
      const Status status = d.finish("total", blocks, {d.buffer(x), d.buffer(blocks * 4), y});
      INFO("seed " << seed << ": " << status.message());
      REQUIRE(status);
      CHECK(d.values<int>(y) == std::vector<int>(blocks, sum_of(x)));
    }
  }
}

TEST_CASE("a missing grid barrier is a race in every order", "[emulated][fault]") {
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    Rig d({.checked = true, .threads = seed % 2 ? 2 : 1, .shuffle_seed = seed});
    d.load(two_phases("block_barrier();"));
    const Status status =
        d.finish("total", blocks, {d.buffer(numbers()), d.buffer(blocks * 4), d.buffer(blocks * 4)});
    blames(status, "total: race on global 'part'[");
    blames(status, "blocks of one launch are not ordered");
    for (const int without : {0, 1}) {
      INFO("without " << without);
      d.load(turns(without));
      blames(d.finish("turn", 3, {d.buffer(std::vector<int>(96)), extent(4)}), "turn: race on global 'y'[");
    }
  }
}

TEST_CASE("several grid barriers in one kernel", "[emulated]") {
  for (const bool checked : {false, true}) {
    for (const std::uint64_t seed : {0, 9}) {
      Rig d({.checked = checked, .shuffle_seed = seed});
      d.load(turns(-1));
      std::vector<int> y(5 * 32), expected(y.size());
      for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<int>(i);
      for (std::size_t i = 0; i < y.size(); ++i) expected[i] = y[(i + 7 * 32) % y.size()] + 7;
      const auto at = d.buffer(y);
      d.backend->reset_counts();
      const Status status = d.finish("turn", 5, {at, extent(7)});
      INFO(status.message());
      REQUIRE(status);
      CHECK(d.values<int>(at) == expected);
      if (!checked) continue;
      const runtime::KernelCounts counts = d.backend->counts().at(0);
      CHECK(counts.launches == 1);
      CHECK(counts.grid_barriers == 14);
      CHECK(counts.block_barriers == 0);
      CHECK(counts.params[0].loads == 7 * 5 * 32);
      CHECK(counts.params[0].stores == 7 * 5 * 32);
      CHECK(counts.params[0].load_sectors == 7 * 5 * 4);
    }
  }
}

TEST_CASE("reads of what nobody wrote are found across a grid barrier", "[emulated][fault]") {
  Rig d({.checked = true});
  d.load(R"(
FUSE_KERNEL(32) hole(global<int> y, global<int> barrier) {
  if (blockIdx.x != 1 && threadIdx.x == 0) store(y, blockIdx.x, 1);
  grid_barrier(barrier);
  if (threadIdx.x == 0) store(y, 3 + blockIdx.x, load(y, blockIdx.x));
}
)");
  blames(d.finish("hole", 3, {d.buffer(24)}), "read of global 'y'[1], which nobody wrote: block 1 thread 0");
}

TEST_CASE("two kernels that wait and do not fit together: greedy deadlocks", "[emulated][fault]") {
  for (const bool checked : {false, true}) {
    for (const std::uint64_t seed : {0, 5}) {
      Rig d({.profile = "tiny2", .checked = checked, .shuffle_seed = seed});
      d.load(meeting);
      const auto x = d.buffer(3 * 128), y = d.buffer(3 * 128);
      REQUIRE(d.start(*d.queue, "a", 3, {x}));
      REQUIRE(d.start(*d.second, "b", 3, {y}));
      const Status first = d.queue->synchronize();
      blames(
          first,
          "deadlock on tiny2 (greedy): a: 2 of 3 blocks wait in grid_barrier at line 4 (%3 reduce_sum, "
          "first), 1 has no slot; b: 2 of 3 blocks wait in grid_barrier at line 11 (%4 reduce_max, second), "
          "1 has no slot");
      // The other queue's next operation tells the same, once.
      const Status other = d.backend->memset(*d.second, y.address, 0, 4);
      CHECK(std::string(other.message()) == std::string(first.message()));
      CHECK(d.second->synchronize());
      CHECK(d.queue->synchronize());

      // In order they have room.
      REQUIRE(d.start(*d.queue, "a", 3, {x}));
      REQUIRE(d.queue->synchronize());
      REQUIRE(d.start(*d.second, "b", 3, {y}));
      REQUIRE(d.second->synchronize());
      REQUIRE(d.start(*d.queue, "b", 3, {y}));
      REQUIRE(d.start(*d.queue, "a", 3, {x}));
      CHECK(d.values<int>(x)[32] == 2);
      CHECK(d.values<int>(y) == std::vector<int>(96, 5));
    }
  }
}

TEST_CASE("two kernels that wait and do not fit together: gangs take turns", "[emulated]") {
  for (const bool checked : {false, true}) {
    Rig d({.profile = "tiny2", .checked = checked, .scheduling = BlockScheduling::gang});
    d.load(meeting);
    const auto x = d.buffer(3 * 128), y = d.buffer(3 * 128);
    REQUIRE(d.start(*d.queue, "a", 3, {x}));
    REQUIRE(d.start(*d.second, "b", 3, {y}));
    CHECK(d.queue->synchronize());
    CHECK(d.second->synchronize());
    CHECK(d.values<int>(x)[32] == 2);
    CHECK(d.values<int>(y) == std::vector<int>(96, 5));
  }
}

TEST_CASE("two kernels that fit together run beside each other", "[emulated]") {
  Rig d({.profile = "tiny2", .checked = true});
  d.load(meeting);
  const auto x = d.buffer(2 * 128), y = d.buffer(2 * 128);
  REQUIRE(d.start(*d.queue, "a", 2, {x}));
  REQUIRE(d.start(*d.second, "b", 2, {y}));
  // Neither has run: nothing was ordered behind them.
  CHECK(d.backend->counts().empty());
  REQUIRE(d.second->synchronize());
  CHECK(d.backend->counts().size() == 2);
  CHECK(d.queue->synchronize());
  CHECK(d.values<int>(x)[32] == 2);
  CHECK(d.values<int>(y) == std::vector<int>(64, 5));
}

TEST_CASE("a grid that the device cannot hold at once", "[emulated][fault]") {
  Rig greedy({.profile = "tiny2"}), gang({.profile = "tiny2", .scheduling = BlockScheduling::gang});
  for (Rig* d : {&greedy, &gang}) d->load(meeting);
  CHECK(greedy.finish("b", 4, {greedy.buffer(4 * 128)}));
  CHECK(gang.finish("b", 4, {gang.buffer(4 * 128)}));
  blames(
      greedy.finish("b", 5, {greedy.buffer(5 * 128)}),
      "deadlock on tiny2 (greedy): b: 4 of 5 blocks wait in grid_barrier at line 11 (%4 reduce_max, second), "
      "1 has no slot");
  blames(gang.start(*gang.queue, "b", 5, {gang.buffer(5 * 128)}),
         "b: its 5 blocks wait for each other, and tiny2 has slots for 4 at once",
         ErrorCode::invalid_argument);
  CHECK(gang.queue->synchronize());

  // Blocks that end leave their slots to the next ones.
  codegen::Source source = make_source(
      "FUSE_KERNEL(32) alone(global<int> y, global<int> barrier) { store(y, blockIdx.x * 32 + threadIdx.x, "
      "3); }\n");
  source.kernels[0].cooperative = true;
  greedy.module = greedy.backend->load(source);
  const auto y = greedy.buffer(100 * 128);
  REQUIRE(greedy.finish("alone", 100, {y}));
  CHECK(greedy.values<int>(y) == std::vector<int>(3200, 3));
}

TEST_CASE("barriers that not all come to", "[emulated][fault]") {
  for (const bool checked : {false, true}) {
    Rig d({.checked = checked, .threads = 2});
    d.load(R"(
FUSE_KERNEL(64) some_blocks(global<int> y, global<int> barrier) {
  if (blockIdx.x != 1) grid_barrier(barrier);  // %5 reduce_sum
}
FUSE_KERNEL(64) two_lines(global<int> y, global<int> barrier) {
  if (blockIdx.x < 2) {
    grid_barrier(barrier);
  } else {
    grid_barrier(barrier);
  }
}
FUSE_KERNEL(64) some_threads(global<int> y, global<int> barrier) {
  if (threadIdx.x < 40) grid_barrier(barrier);
}
FUSE_KERNEL(64) two_kinds(global<int> y, global<int> barrier) {
  if (threadIdx.x < 32) { grid_barrier(barrier); } else { block_barrier(); }
}
FUSE_KERNEL(64) later(global<int> y, global<int> barrier) {
  grid_barrier(barrier);
  if (blockIdx.x == 2) return;
  grid_barrier(barrier);
}
)");
    const auto y = d.buffer(4);
    blames(d.finish("some_blocks", 4, {y}),
           "some_blocks: divergent barrier: block 0 waits in grid_barrier at line 3 (%5 reduce_sum), block 1 "
           "has "
           "ended");
    blames(d.finish("two_lines", 4, {y}),
           "two_lines: divergent barrier: block 0 waits in grid_barrier at line 7, block 2 waits in "
           "grid_barrier at line 9");
    blames(d.finish("some_threads", 2, {y}),
           "divergent barrier: thread 0 waits in grid_barrier at line 13, thread 40 has exited");
    blames(d.finish("two_kinds", 1, {y}),
           "divergent barrier: thread 0 waits in grid_barrier at line 16, thread 32 waits in block_barrier");
    blames(d.finish("later", 4, {y}),
           "later: divergent barrier: block 0 waits in grid_barrier at line 21, block 2 has ended");
  }
}

TEST_CASE("the counter is the barrier's alone, and zero at the start", "[emulated][fault]") {
  Rig checked({.checked = true}), plain({});
  for (Rig* d : {&checked, &plain}) {
    d->load(meeting);
    const Argument arguments[] = {d->buffer(128), d->buffer(std::vector<int>{3})};
    CHECK(d->backend->launch(*d->queue, d->module->function("b"), {1}, arguments, 2));
    blames(d->queue->synchronize(),
           "b: the counter of grid_barrier at line 11 (%4 reduce_max, second) is 3 where 0 is right");
  }
  const Argument unwritten[] = {checked.buffer(128), checked.buffer(4)};
  CHECK(checked.backend->launch(*checked.queue, checked.module->function("b"), {1}, unwritten, 2));
  blames(checked.queue->synchronize(), "is no written buffer of this kernel");

  codegen::Source source = make_source(meeting);
  for (codegen::KernelInfo& info : source.kernels) info.cooperative = false;
  plain.module = plain.backend->load(source);
  blames(plain.finish("b", 1, {plain.buffer(128)}),
         "b: grid_barrier in a kernel that declares no grid barrier");
}

TEST_CASE("a fault in one of two kernels is its own queue's", "[emulated][fault]") {
  Rig d({.profile = "tiny2", .checked = true});
  d.load(meeting);
  const auto x = d.buffer(2 * 128), small = d.buffer(128);
  REQUIRE(d.start(*d.queue, "a", 2, {x}));
  REQUIRE(d.start(*d.second, "b", 2, {small}));
  CHECK(d.queue->synchronize());
  blames(d.second->synchronize(), "b: out of bounds write of global 'y'[32]");
  CHECK(d.values<int>(x)[32] == 2);
}

TEST_CASE("a launch that waits outlives its module, its queue's last operation and its buffers' use",
          "[emulated]") {
  Rig d({.checked = true});
  d.load(meeting);
  const auto x = d.buffer(2 * 128), y = d.buffer(2 * 128);
  REQUIRE(d.start(*d.queue, "b", 2, {x}));
  d.module.reset();
  REQUIRE(d.queue->synchronize());
  CHECK(d.values<int>(x) == std::vector<int>(64, 5));

  d.load(meeting);
  REQUIRE(d.start(*d.second, "b", 2, {y}));
  d.second.reset();
  CHECK(d.values<int>(y) == std::vector<int>(64, 5));

  // Memory is given back once nothing uses it.
  void* const gone = d.backend->allocate(256);
  REQUIRE(d.start(*d.queue, "b", 2, {{.address = gone, .bytes = 256}}));
  d.backend->free(gone);
  CHECK(d.queue->synchronize());

  std::unique_ptr<runtime::Queue> left;
  {
    const auto backend = runtime::make_emulated_backend({});
    left = backend->create_queue();
    void* const memory = backend->allocate(512);
    const auto module = backend->load(make_source(meeting));
    CHECK(backend->memset(*left, memory, 0, 512));
    const Argument arguments[] = {{.address = memory, .bytes = 256},
                                  {.address = static_cast<char*>(memory) + 256, .bytes = 4}};
    CHECK(backend->launch(*left, module->function("b"), {2}, arguments, 2));
  }
  CHECK(left->synchronize());
}

TEST_CASE("two threads with a queue each", "[emulated]") {
  for (const bool checked : {false, true}) {
    EmulatedDevice d({.profile = "tiny3", .checked = checked, .threads = 3});
    d.load(turns(-1));
    std::atomic<int> wrong = 0;
    const auto work = [&](int id) {
      const auto queue = d.backend->create_queue();
      void* const memory = d.backend->allocate(1024);
      void* const counter = static_cast<char*>(memory) + 512;
      std::vector<int> values(64);
      for (int repeat = 0; repeat < 20; ++repeat) {
        std::vector<int> start(64, id);
        bool good = bool(d.backend->upload(*queue, memory, start.data(), 256));
        good = good && d.backend->memset(*queue, counter, 0, 4);
        const Argument arguments[] = {{memory, 256, 0}, {nullptr, 0, 6}, {counter, 4, 0}};
        good = good && d.backend->launch(*queue, d.module->function("turn"), {2}, arguments, 3);
        good = good && d.backend->download(*queue, values.data(), memory, 256);
        wrong += !good || values != std::vector<int>(64, id + 6);
      }
      d.backend->free(memory);
    };
    std::vector<std::thread> threads;
    for (int id = 1; id <= 2; ++id) threads.emplace_back(work, id * 100);
    for (std::thread& t : threads) t.join();
    CHECK(wrong == 0);
  }
}

}  // namespace fuse::test
