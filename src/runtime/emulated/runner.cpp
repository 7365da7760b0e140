// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulated/runner.hpp"

#include <algorithm>
#include <exception>
#include <numeric>

namespace fuse::runtime::emulated {
namespace {

constexpr std::int64_t shared_alignment = 16;

}  // namespace

Runner::Runner()
    : fibers_(
          [](void* self) {
            const auto* runner = static_cast<Runner*>(self);
            runner->launch_->kernel->entry(&runner->call_);
          },
          this) {
  call_.runner = this;
  call_.exchange = exchange;
  call_.barrier = barrier;
  call_.grid_barrier = grid_barrier;
  call_.group_barrier = group_barrier;
  call_.cluster_barrier = cluster_barrier;
  call_.cluster_arrive = cluster_arrive;
  call_.cluster_wait = cluster_wait;
  call_.peer = peer;
  call_.shared = shared;
  call_.begin_thread = begin_thread;
  call_.check_load = check<false>;
  call_.local_fault = local_fault;
  call_.outside = outside;
  call_.check_store = check<true>;
  call_.count_op = count_op;
}

void Runner::run(Launch& launch) noexcept {
  try {
    begin(launch);
    while (!launch.stop) {
      const std::uint64_t first = launch.next.fetch_add(launch.chunk);
      if (first >= launch.blocks) break;
      if (!run_blocks(first, std::min(first + launch.chunk, launch.blocks))) break;
    }
    end();
  } catch (const std::exception&) {
    launch.fail({.kind = Fault::Kind::memory});
  }
  launch_ = nullptr;
}

bool Runner::prepare(Launch& launch, std::uint64_t block,
                     std::span<const std::unique_ptr<Runner>> cluster) noexcept {
  try {
    begin(launch);
    if (cluster.size() > 1) cluster_ = cluster;
    random_ = launch.seed ^ (block + 1) * 0x9e3779b97f4a7c15;
    enter(block);
    return true;
  } catch (const std::exception&) {
    launch.fail({.kind = Fault::Kind::memory});
    launch_ = nullptr;
    return false;
  }
}

Runner::Stop Runner::go() noexcept {
  try {
    if (!looping_) return advance();
    return run_loop(call_.first, call_.first + 1) ? Stop::ended : Stop::failed;
  } catch (const std::exception&) {
    launch_->fail({.kind = Fault::Kind::memory});
    return Stop::failed;
  }
}

void Runner::finish() noexcept {
  if (!launch_) return;
  if (!looping_) abandon_all();
  try {
    end();
  } catch (const std::exception&) {
    launch_->fail({.kind = Fault::Kind::memory});
  }
  launch_ = nullptr;
}

void Runner::pass_cluster_barrier(std::uint32_t epoch, bool shared_only) {
  std::fill(clocks_.begin(), clocks_.end(), epoch);
  checker_.pass_cluster_barrier(epoch, shared_only);
}

void Runner::pass_grid_barrier() {
  if (launch_->checked) checker_.pass_grid_barrier();
}

void Runner::pass_group_barrier(std::uint32_t epoch, std::uint64_t blocks) {
  std::fill(clocks_.begin(), clocks_.end(), epoch);
  checker_.pass_group_barrier(epoch, static_cast<std::uint32_t>(blocks));
}

std::optional<Fault> Runner::last_fault() {
  if (!launch_->checked) return {};
  if (checker_.pending && checker_.pending->shared) return checker_.pending;
  if (!checker_.outlives_readers()) return checker_.fault;
  return {};
}

void Runner::begin(Launch& launch) {
  launch_ = &launch;
  const codegen::KernelInfo& info = launch.kernel->info;
  threads_ = static_cast<unsigned>(info.block_threads);
  looping_ = !info.communicates;
  failed_ = false;
  cluster_ = {};
  barriers_ = 0;
  arrays_.clear();
  arena_used_ = shared_bytes_ = 0;
  // Not zero: a kernel that reads what it never wrote should not look right by chance.
  arena_.assign(static_cast<std::size_t>(info.shared_bytes + (info.shared_bytes ? 4096 : 0)), '\xff');
  call_.arguments = launch.arguments.data();
  call_.grid[0] = static_cast<unsigned>(launch.grid.x);
  call_.grid[1] = static_cast<unsigned>(launch.grid.y);
  call_.grid[2] = static_cast<unsigned>(launch.grid.z);
  if (launch.checked) checker_.begin(launch);
  const unsigned warps = (threads_ + 31) / 32;
  fibers_.grow(looping_ ? 1 : threads_);
  lanes_.assign(threads_, {});
  slots_.resize(warps);
  clocks_.assign(warps, 1);
  lane_order_.resize(threads_);
  std::iota(lane_order_.begin(), lane_order_.end(), 0u);
  warp_order_.resize(warps);
  std::iota(warp_order_.begin(), warp_order_.end(), 0u);
}

void Runner::end() {
  if (launch_->checked) checker_.end();
  const std::lock_guard lock(launch_->mutex);
  launch_->barriers += barriers_;
}

bool Runner::run_blocks(std::uint64_t first, std::uint64_t last) {
  // Seeded by the block, whichever thread runs it.
  random_ = launch_->seed ^ (first + 1) * 0x9e3779b97f4a7c15;
  if (looping_) {
    if (!launch_->seed) return run_loop(first, last);
    for (std::uint64_t i = first; i < last; ++i) {
      const std::uint64_t block = launch_->cluster_at(i);
      if (!run_loop(block, block + 1)) return false;
    }
    return true;
  }
  for (std::uint64_t i = first; i < last; ++i) {
    enter(launch_->cluster_at(i));
    if (advance() != Stop::ended) return false;
  }
  return true;
}

bool Runner::run_loop(std::uint64_t first, std::uint64_t last) {
  call_.first = first;
  call_.last = last;
  call_.thread = 0;
  current_ = &fibers_[0];
  current_->resume();
  if (!current_->finished()) current_->abandon();
  return block_ended();
}

void Runner::place(std::uint64_t block) {
  call_.block[0] = static_cast<unsigned>(block % call_.grid[0]);
  call_.block[1] = static_cast<unsigned>(block / call_.grid[0] % call_.grid[1]);
  call_.block[2] = static_cast<unsigned>(block / call_.grid[0] / call_.grid[1]);
  call_.first = block;
}

// Reads of shared memory that nobody wrote stand as faults once no race can explain them: in a cluster that
// is when all of its blocks have ended.
bool Runner::block_ended() {
  if (!failed_ && fibers_[0].overflowed()) fail({.kind = Fault::Kind::stack, .here = here(0)});
  if (!failed_ && cluster_.empty() && checker_.pending && checker_.pending->shared && launch_->checked)
    fail(*checker_.pending);
  return !failed_;
}

void Runner::enter(std::uint64_t block) {
  place(block);
  if (launch_->checked) checker_.begin_block(block);
  std::fill(clocks_.begin(), clocks_.end(), 1u);
}

// Runs the block's threads until all have exited or wait in one barrier of the grid or of the cluster.
Runner::Stop Runner::advance() {
  for (;;) {  // once for each stretch between barriers
    if (launch_->seed) shuffle(warp_order_, 0, warp_order_.size());
    for (unsigned warp : warp_order_) {
      if (!run_warp(warp)) {
        abandon_all();
        return Stop::failed;
      }
    }
    const Lane* waiting = nullptr;
    const Lane* odd = nullptr;  // does not wait where the first one does
    for (const Lane& lane : lanes_) {
      if (lane.wait != Wait::none && !waiting) waiting = &lane;
    }
    if (!waiting) break;
    for (const Lane& lane : lanes_) {
      if (lane.wait != waiting->wait || lane.line != waiting->line) odd = &lane;
      if (odd) break;
    }
    if (odd) {
      fail({.kind = Fault::Kind::divergence,
            .here = here(static_cast<unsigned>(waiting - lanes_.data())),
            .other = here(static_cast<unsigned>(odd - lanes_.data()))});
      abandon_all();
      return Stop::failed;
    }
    if (waiting->wait == Wait::cluster_wait) return Stop::cluster_wait;
    const std::uint32_t epoch = *std::max_element(clocks_.begin(), clocks_.end()) + 1;
    std::fill(clocks_.begin(), clocks_.end(), epoch);
    checker_.pass_block_barrier(epoch, waiting->wait == Wait::shared_barrier);
    if (waiting->wait == Wait::grid_barrier) return Stop::grid_barrier;
    if (waiting->wait == Wait::cluster_barrier) return Stop::cluster_barrier;
    if (waiting->wait == Wait::shared_barrier) return Stop::shared_barrier;
    ++barriers_;
  }
  for (unsigned t = 1; t < threads_ && !failed_; ++t) {
    if (fibers_[t].overflowed()) fail({.kind = Fault::Kind::stack, .here = here(t)});
  }
  return block_ended() ? Stop::ended : Stop::failed;
}

// Runs the lanes of a warp until each waits for the block or has exited. All exchanges take the full warp,
// so lanes that wait for different things can never go on.
bool Runner::run_warp(unsigned warp) {
  const unsigned from = warp * 32, to = std::min(from + 32, threads_);
  for (;;) {
    if (launch_->seed) shuffle(lane_order_, from, to);
    if (launch_->checked) checker_.begin_epoch();
    checker_.now.clock = clocks_[warp];
    unsigned exchanging = 0;
    for (unsigned i = from; i < to; ++i) {
      const unsigned t = lane_order_[i];
      lanes_[t].wait = Wait::none;
      call_.thread = checker_.now.thread = t;
      current_ = &fibers_[t];
      current_->resume();
      if (failed_) return false;
      exchanging += lanes_[t].wait == Wait::exchange;
    }
    if (exchanging == 0) return true;
    const Lane* first = std::find_if(&lanes_[from], &lanes_[0] + to,
                                     [](const Lane& lane) { return lane.wait == Wait::exchange; });
    for (unsigned t = from; t < to; ++t) {
      const Lane& lane = lanes_[t];
      if (lane.wait == Wait::exchange && lane.line == first->line && lane.parity == first->parity) continue;
      fail({.kind = Fault::Kind::divergence,
            .here = here(static_cast<unsigned>(first - lanes_.data())),
            .other = here(t)});
      return false;
    }
    if (to - from != 32) {
      fail({.kind = Fault::Kind::partial_warp, .limit = to - from, .here = here(from)});
      return false;
    }
    slots_[warp][first->parity].reduced = 0;
    ++clocks_[warp];
  }
}

void Runner::abandon_all() {
  for (unsigned t = 0; t < threads_; ++t) {
    if (!fibers_[t].finished()) fibers_[t].abandon();
  }
}

// A small generator is enough: the orders only have to differ.
void Runner::shuffle(std::vector<unsigned>& order, std::size_t from, std::size_t to) {
  for (std::size_t i = to; i-- > from + 1;) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    std::swap(order[i], order[from + (random_ >> 33) % (i - from + 1)]);
  }
}

WaitPoint Runner::here(unsigned thread) const {
  const Lane& lane = lanes_[thread];
  return {.block = call_.first,
          .thread = thread,
          .line = lane.line,
          .what = lane.wait == Wait::none ? nullptr : lane.what};
}

void Runner::fail(Fault fault) {
  failed_ = true;
  if (launch_->checked && checker_.pending && fault.kind != Fault::Kind::race) fault = *checker_.pending;
  launch_->fail(fault);
}

void Runner::fail_and_leave(const Fault& fault) {
  fail(fault);
  for (;;) current_->suspend();
}

Slots* Runner::exchange(void* self, unsigned long long bits, const char* what, int line) {
  auto& r = *static_cast<Runner*>(self);
  if (r.looping_) r.fail_and_leave({.kind = Fault::Kind::undeclared, .here = {.line = line, .what = what}});
  const unsigned t = r.call_.thread;
  Lane& lane = r.lanes_[t];
  lane.parity = !lane.parity;
  Slots* slots = &r.slots_[t / 32][lane.parity];
  slots->value[t % 32] = bits;
  lane.wait = Wait::exchange;
  lane.what = what;
  lane.line = line;
  r.current_->suspend();
  return slots;
}

void Runner::barrier(void* self, int line) {
  auto& r = *static_cast<Runner*>(self);
  const char* what = "block_barrier";
  if (r.looping_) r.fail_and_leave({.kind = Fault::Kind::undeclared, .here = {.line = line, .what = what}});
  r.wait(Wait::barrier, what, line);
}

void Runner::grid_barrier(void* self, int* counter, int line) {
  static_cast<Runner*>(self)->wait_for_blocks(counter, 0, "grid_barrier", line);
}

// Blocks at the end of the grid that make no whole group have no counter.
void Runner::group_barrier(void* self, int* counters, unsigned blocks, int line) {
  auto& r = *static_cast<Runner*>(self);
  const std::uint64_t group = blocks == 0 ? r.launch_->blocks : r.call_.first / blocks;
  const bool whole = blocks > 0 && (group + 1) * blocks <= r.launch_->blocks;
  r.wait_for_blocks(whole ? counters + group : nullptr, whole ? blocks : 1, "group_barrier", line);
}

void Runner::wait_for_blocks(int* counter, std::uint64_t group, const char* what, int line) {
  if (looping_ || !launch_->kernel->info.cooperative || (group > 0 && !cluster_.empty())) {
    fail_and_leave({.kind = Fault::Kind::undeclared, .here = {.line = line, .what = what}});
  }
  if (group != 1 && launch_->checked && !checker_.is_counter(counter)) {
    fail_and_leave({.kind = Fault::Kind::no_counter, .here = {.line = line, .what = what}});
  }
  if (call_.thread == 0) {
    counter_ = counter;
    group_ = group;
  }
  wait(Wait::grid_barrier, what, line);
}

void Runner::cluster_barrier(void* self, int shared_only, int line) {
  auto& r = *static_cast<Runner*>(self);
  const char* what = shared_only ? "cluster_shared_barrier" : "cluster_barrier";
  r.cluster_lane(what, false, line);
  r.wait(shared_only ? Wait::shared_barrier : Wait::cluster_barrier, what, line);
}

void Runner::cluster_arrive(void* self, int line) {
  static_cast<Runner*>(self)->cluster_lane("cluster_arrive", false, line).arrived = true;
}

void Runner::cluster_wait(void* self, int line) {
  auto& r = *static_cast<Runner*>(self);
  r.cluster_lane("cluster_wait", true, line).arrived = false;
  r.wait(Wait::cluster_wait, "cluster_wait", line);
}

Runner::Lane& Runner::cluster_lane(const char* what, bool arrived, int line) {
  Fault fault{.here = {.block = call_.first, .thread = call_.thread, .line = line, .what = what}};
  if (looping_ || cluster_.empty()) {
    fault.kind = Fault::Kind::undeclared;
    fail_and_leave(fault);
  }
  Lane& lane = lanes_[call_.thread];
  if (lane.arrived != arrived) {
    fault.kind = arrived ? Fault::Kind::not_arrived : Fault::Kind::arrived;
    fail_and_leave(fault);
  }
  return lane;
}

void Runner::wait(Wait kind, const char* what, int line) {
  Lane& lane = lanes_[call_.thread];
  lane.wait = kind;
  lane.what = what;
  lane.line = line;
  current_->suspend();
}

// Where the block of that rank has the array. Its blocks are prepared together, so that it has memory for it
// before it runs; they take turns on one OS thread.
const char* Runner::peer(void* self, const char* array, long long index, long long rank, int size, int line) {
  auto& r = *static_cast<Runner*>(self);
  Fault fault{
      .here = {.block = r.call_.first, .thread = r.call_.thread, .line = line, .what = "cluster_load"}};
  const auto refuse = [&](Fault::Kind kind) {
    fault.kind = kind;
    r.fail_and_leave(fault);
  };
  if (r.looping_ || r.cluster_.empty()) refuse(Fault::Kind::undeclared);
  const auto mine = r.array_at(array);
  if (!mine) refuse(Fault::Kind::no_array);
  fault.index = rank;
  fault.limit = static_cast<std::int64_t>(r.cluster_.size());
  if (rank < 0 || rank >= fault.limit) refuse(Fault::Kind::rank);
  Runner& other = *r.cluster_[static_cast<std::size_t>(rank)];
  const SharedArray& as = r.arrays_[*mine];
  std::optional<std::size_t> there;
  bool good = false;
  try {
    there = other.array(as.name, as.line, as.size, as.count);
    good = there &&
           (!r.launch_->checked || r.checker_.access({static_cast<int>(~*there), index, size, 1, line, false,
                                                      &other.checker_, r.lanes_[r.call_.thread].arrived}));
  } catch (const std::exception&) {
    refuse(Fault::Kind::memory);
  }
  if (!there) refuse(Fault::Kind::no_array);
  if (!good) r.fail_and_leave(r.checker_.fault);
  return other.arena_.data() + other.arrays_[*there].offset + (array - r.arena_.data() - as.offset);
}

// Every thread asks; the first to come to a line sets the array up.
Array Runner::shared(void* self, int size, long long count, const char* name, int line) {
  auto& r = *static_cast<Runner*>(self);
  std::optional<std::size_t> at;
  try {
    at = r.array(name, line, size, count);
  } catch (const std::exception&) {
    r.fail_and_leave({.kind = Fault::Kind::memory});
  }
  if (!at) {
    r.fail_and_leave({.kind = Fault::Kind::shared_size,
                      .shared = true,
                      .object = name,
                      .limit = r.launch_->kernel->info.shared_bytes,
                      .here = {.line = line}});
  }
  return {r.arena_.data() + r.arrays_[*at].offset, static_cast<long long>(*at)};
}

std::optional<std::size_t> Runner::array(const char* name, int line, int size, long long count) {
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    if (arrays_[i].line == line && arrays_[i].name == name) return i;
  }
  const std::int64_t limit = launch_->kernel->info.shared_bytes;
  const std::int64_t bytes = count > 0 && count <= limit ? count * size : limit + 1;
  const std::int64_t end = arena_used_ + (bytes + shared_alignment - 1) / shared_alignment * shared_alignment;
  if (shared_bytes_ + bytes > limit || end > static_cast<std::int64_t>(arena_.size())) return {};
  arrays_.push_back({name, line, size, count, arena_used_});
  if (launch_->checked) checker_.shared_array(name, size, count);
  shared_bytes_ += bytes;
  arena_used_ = end;
  return arrays_.size() - 1;
}

std::optional<std::size_t> Runner::array_at(const char* address) const {
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const char* const begin = arena_.data() + arrays_[i].offset;
    if (address >= begin && address < begin + arrays_[i].count * arrays_[i].size) return i;
  }
  return {};
}

void Runner::begin_thread(void* self, unsigned long long block, unsigned thread) {
  auto& r = *static_cast<Runner*>(self);
  r.call_.thread = r.checker_.now.thread = thread;
  if (thread == 0) {
    r.call_.first = block;
    r.checker_.begin_block(block);
  }
  if (thread % 32 == 0) r.checker_.begin_epoch();
}

template <bool store>
void Runner::check(void* self, int object, long long index, int size, int count, int line) {
  auto& r = *static_cast<Runner*>(self);
  bool good = false;
  try {
    good = r.checker_.access({object, index, size, count, line, store});
  } catch (const std::exception&) {
    r.checker_.fault = {.kind = Fault::Kind::memory};
  }
  if (!good) r.fail_and_leave(r.checker_.fault);
}

void Runner::outside(void* self, long long index, long long count, int line) {
  auto& r = *static_cast<Runner*>(self);
  if (!r.checker_.refuses_index(index, count, line)) return;
  r.fail_and_leave(r.checker_.fault);
}

void Runner::count_op(void* self, int number) { static_cast<Runner*>(self)->checker_.count_op(number); }

void Runner::local_fault(void* self, const char* name, long long index, long long count, int store,
                         int line) {
  auto& r = *static_cast<Runner*>(self);
  r.checker_.blame_local(name, index, count, store != 0, line);
  r.fail_and_leave(r.checker_.fault);
}

}  // namespace fuse::runtime::emulated
