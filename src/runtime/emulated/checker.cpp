// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulated/checker.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "ir/graph/costly_ops.hpp"
#include "runtime/emulated/memory/device_memory.hpp"

namespace fuse::runtime::emulated {
namespace {

constexpr Readers no_readers{};
// Executions of one site between rendezvous; more are not merged.
constexpr std::uint32_t most_executions = 1u << 21;

class Spin {
 public:
  explicit Spin(std::atomic_flag& flag) : flag_(flag) {
    while (flag_.test_and_set(std::memory_order_acquire)) {}
  }
  ~Spin() { flag_.clear(std::memory_order_release); }
  Spin(const Spin&) = delete;
  Spin& operator=(const Spin&) = delete;

 private:
  std::atomic_flag& flag_;
};

// The shadow of one element, as one word. True if every byte is written.
bool all_written(const std::uint8_t* shadow, int size) {
  switch (size) {
    case 1:
      return __atomic_load_n(shadow, __ATOMIC_RELAXED) == 1;
    case 2:
      return __atomic_load_n(reinterpret_cast<const std::uint16_t*>(shadow), __ATOMIC_RELAXED) == 0x0101;
    case 4:
      return __atomic_load_n(reinterpret_cast<const std::uint32_t*>(shadow), __ATOMIC_RELAXED) == 0x01010101;
    default:
      return !first_unwritten(shadow, size);
  }
}

void set_written(std::uint8_t* shadow, int size) {
  switch (size) {
    case 1:
      return __atomic_store_n(shadow, 1, __ATOMIC_RELAXED);
    case 2:
      return __atomic_store_n(reinterpret_cast<std::uint16_t*>(shadow), 0x0101, __ATOMIC_RELAXED);
    case 4:
      return __atomic_store_n(reinterpret_cast<std::uint32_t*>(shadow), 0x01010101, __ATOMIC_RELAXED);
    default:
      return mark(shadow, size, true);
  }
}

}  // namespace

void Checker::begin(Launch& launch) {
  launch_ = &launch;
  pending.reset();
  counts_.assign(launch.views.size(), {});
  ops_.assign(ir::costly_ops().size(), 0);
  arrays_.clear();
  cells_.clear();
  shared_block_ = 0;
  lines_ = std::max(launch.kernel->info.last_line - launch.kernel->info.first_line, 0) + 1;
  site_of_.assign(static_cast<std::size_t>(lines_) * launch.views.size() * 2, 0);
  sites_.clear();
  now = {};
  now.oldest = launch.first_block;
  now.cluster = static_cast<std::uint32_t>(launch.cluster);
}

void Checker::end() {
  const std::lock_guard lock(launch_->mutex);
  launch_->ops.resize(ops_.size());
  for (std::size_t i = 0; i < ops_.size(); ++i) launch_->ops[i] += ops_[i];
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    AccessCounts& sum = launch_->counts[i];
    sum.loads += counts_[i].loads;
    sum.stores += counts_[i].stores;
    sum.load_bytes += counts_[i].load_bytes;
    sum.store_bytes += counts_[i].store_bytes;
    sum.load_sectors += counts_[i].load_sectors;
    sum.store_sectors += counts_[i].store_sectors;
  }
  if (pending && !launch_->pending) launch_->pending = pending;
}

void Checker::begin_block(std::uint64_t block) {
  now.block = launch_->first_block + static_cast<std::uint32_t>(block);
  now.clock = now.epoch = now.cluster_epoch = global_epoch_ = global_cluster_epoch_ = 1;
  shared_block_ += now.cluster;
  rank_ = static_cast<std::uint32_t>(block % now.cluster);
  peer_read_.reset();
}

void Checker::pass_grid_barrier() {
  now.block += launch_->first_block - now.oldest;
  now.oldest = launch_->first_block;
}

bool Checker::is_counter(const int* address) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return std::any_of(launch_->views.begin(), launch_->views.end(), [&](const View& view) {
    constexpr std::int64_t size = sizeof(int);
    if (!view.writable || view.bytes < size || at % sizeof(int) != 0 || at < view.address) return false;
    const auto offset = static_cast<std::int64_t>(at - view.address);
    return offset <= view.bytes - size && all_written(view.written + offset, size);
  });
}

void Checker::begin_epoch() {
  for (Site& site : sites_) {
    if (!site.used) continue;
    site.used = 0;
    site.lane.fill(0);
  }
  used_spills_ = 0;
}

void Checker::shared_array(const char* name, int size, std::int64_t count) {
  arrays_.push_back({name, size, count, cells_.size()});
  cells_.resize(cells_.size() + static_cast<std::size_t>(count));
}

bool Checker::access(const Request& request) {
  return request.object >= 0 ? global_access(request) : shared_access(request);
}

bool Checker::blame(Fault::Kind kind, const Request& request, std::int64_t limit) {
  fault = {.kind = kind, .shared = request.object < 0, .index = request.index, .limit = limit};
  const Checker& owner = request.owner ? *request.owner : *this;
  fault.object = fault.shared
                     ? owner.arrays_[static_cast<std::size_t>(~request.object)].name
                     : launch_->kernel->info.params[static_cast<std::size_t>(request.object)].name.c_str();
  if (request.owner) fault.owner = owner.block();
  fault.here = {.block = block(), .thread = now.thread, .line = request.line, .store = request.store};
  return false;
}

void Checker::blame_local(const char* name, std::int64_t index, std::int64_t count, bool store, int line) {
  const bool inside = index >= 0 && index < count;
  fault = {.kind = inside ? Fault::Kind::unwritten : Fault::Kind::out_of_bounds,
           .local = true,
           .object = name,
           .index = index,
           .limit = count,
           .here = {.block = block(), .thread = now.thread, .line = line, .store = store}};
}

bool Checker::refuses_index(std::int64_t index, std::int64_t count, int line) {
  if (!launch_->check_indices) return false;
  fault = {.kind = Fault::Kind::outside,
           .index = index,
           .limit = count,
           .here = {.block = block(), .thread = now.thread, .line = line}};
  return true;
}

bool Checker::blame_race(const Access& earlier, bool was_store, const Request& request) {
  blame(Fault::Kind::race, request);
  const std::uint64_t other = fault.shared ? fault.here.block - rank_ + (earlier.block - shared_block_)
                                           : earlier.block - launch_->first_block;
  if (fault.shared && other != fault.here.block && !fault.owner) fault.owner = fault.here.block;
  fault.other = {
      .block = other, .thread = earlier.thread, .line = static_cast<int>(earlier.line), .store = was_store};
  return false;
}

void Checker::suspect_unwritten(const Request& request) {
  if (pending) return;
  blame(Fault::Kind::unwritten, request);
  pending = fault;
}

bool Checker::global_access(const Request& request) {
  const View& view = launch_->views[static_cast<std::size_t>(request.object)];
  const int size = request.size, shift = std::countr_zero(static_cast<unsigned>(size));
  const std::int64_t elements = view.bytes >> shift;
  if (request.index < 0 || request.index > elements - request.count) {
    Request outside = request;
    if (request.index >= 0) outside.index = std::max(request.index, elements);
    return blame(Fault::Kind::out_of_bounds, outside, elements);
  }
  const std::int64_t byte = request.index << shift;
  const std::uintptr_t address = view.address + static_cast<std::uintptr_t>(byte);
  const auto bytes = static_cast<std::uintptr_t>(size) * static_cast<std::uintptr_t>(request.count);
  if (address & (bytes - 1)) return blame(Fault::Kind::misaligned, request);
  if (request.store && !view.writable) return blame(Fault::Kind::read_only, request);
  Request element = request;
  for (int i = 0; i < request.count; ++i, ++element.index) {
    if (!element_access(view, byte + std::int64_t{i} * size, element)) return false;
  }
  count(request, view.offset + byte);
  return true;
}

bool Checker::element_access(const View& view, std::int64_t byte, const Request& request) {
  const std::uintptr_t address = view.address + static_cast<std::uintptr_t>(byte);
  if (view.region && !race_free(view, address, request)) return false;
  if (request.store) {
    set_written(view.written + byte, request.size);
  } else if (!all_written(view.written + byte, request.size)) {
    // Where nobody writes, no race can explain it.
    if (!view.region) return blame(Fault::Kind::unwritten, request);
    suspect_unwritten(request);
  }
  return true;
}

bool Checker::race_free(const View& view, std::uintptr_t address, const Request& request) {
  Region& region = *view.region;
  Cells& cells = *launch_->cells;
  const std::size_t first = region.first_cell + ((address - region.begin) >> region.shift);
  const std::size_t count = std::max<std::size_t>(static_cast<std::size_t>(request.size) >> region.shift, 1);
  Point point = now;
  point.epoch = global_epoch_;
  point.cluster_epoch = global_cluster_epoch_;
  for (std::size_t i = first; i < first + count; ++i) {
    const Spin guard(cells.lock(i));
    bool was_store = true;
    Access earlier;
    if (request.store) {
      const bool read = region.read.load(std::memory_order_relaxed);
      earlier =
          visit_store(cells.write(i), read ? cells.readers(i) : no_readers, point, request.line, was_store);
    } else {
      if (!region.read.load(std::memory_order_relaxed)) region.read.store(true, std::memory_order_relaxed);
      earlier = visit_load(cells.write(i), cells.readers(i), point, request.line);
    }
    if (earlier.block) return blame_race(earlier, was_store, request);
  }
  return true;
}

bool Checker::shared_access(const Request& request) {
  Checker& owner = request.owner ? *request.owner : *this;
  const SharedArray& array = owner.arrays_[static_cast<std::size_t>(~request.object)];
  if (request.index < 0 || request.index > array.count - request.count) {
    Request outside = request;
    if (request.index >= 0) outside.index = std::max(request.index, array.count);
    return blame(Fault::Kind::out_of_bounds, outside, array.count);
  }
  if (request.index % request.count != 0) return blame(Fault::Kind::misaligned, request);
  Request element = request;
  for (int i = 0; i < request.count; ++i, ++element.index) {
    if (!cell_access(owner.cells_[array.first_cell + static_cast<std::size_t>(element.index)], element))
      return false;
  }
  if (&owner != this) note_peer_read(request);
  return true;
}

bool Checker::cell_access(SharedCell& cell, const Request& request) {
  Point point = now;  // each block has a shared memory of its own: records of earlier blocks are void
  point.oldest = shared_block_;
  point.block = shared_block_ + rank_;
  bool was_store = true;
  const Access earlier = request.store ? visit_store(cell.write, cell.readers, point, request.line, was_store)
                                       : visit_load(cell.write, cell.readers, point, request.line);
  if (earlier.block) return blame_race(earlier, was_store, request);
  if (!request.store && cell.write.block < shared_block_) suspect_unwritten(request);
  return true;
}

void Checker::note_peer_read(const Request& request) {
  std::optional<PeerRead>& last = request.owner->peer_read_;
  if (last && last->late) return;
  const Fault before = fault;
  blame(Fault::Kind::ended, request);
  last = {.fault = std::exchange(fault, before), .late = request.late};
}

bool Checker::outlives_readers() {
  if (!peer_read_) return true;
  fault = peer_read_->fault;
  return false;
}

void Checker::count(const Request& request, std::int64_t byte) {
  const auto object = static_cast<std::size_t>(request.object);
  const bool store = request.store;
  AccessCounts& counts = counts_[object];
  const std::int64_t bytes = std::int64_t{request.size} * request.count;
  (store ? counts.stores : counts.loads) += request.count;
  (store ? counts.store_bytes : counts.load_bytes) += bytes;
  std::int64_t& sum = store ? counts.store_sectors : counts.load_sectors;

  const int row = std::clamp(request.line - launch_->kernel->info.first_line, 0, lines_ - 1);
  const std::size_t key = (static_cast<std::size_t>(row) * counts_.size() + object) * 2 + store;
  if (!site_of_[key]) {
    if (sites_.size() == 0xffff) {
      ++sum;
      return;
    }
    sites_.emplace_back();
    site_of_[key] = static_cast<std::uint16_t>(sites_.size());
  }
  Site& site = sites_[site_of_[key] - 1u];
  const std::uint32_t n = site.lane[now.thread % 32]++;
  if (n >= most_executions) {
    ++sum;
    return;
  }
  if (n >= site.used) {
    if (n >= site.executions.size()) site.executions.resize(n + 1 + n / 2);
    site.executions[n].count = 0;
    site.used = n + 1;
  }
  // An access is aligned, so that all of it lies in one sector.
  sum += new_sector(site.executions[n], static_cast<std::uint32_t>(byte / 32));
}

bool Checker::new_sector(Sectors& s, std::uint32_t sector) {
  constexpr std::uint32_t inline_count = Sectors::inline_count;
  std::uint32_t* list = s.sector.data();
  if (s.count > inline_count) list = spills_[s.sector[inline_count - 1]].data();
  // Neighbouring lanes mostly share a sector: look from the last one back.
  for (std::uint32_t i = s.count; i-- > 0;) {
    if (list[i] == sector) return false;
  }
  if (s.count == inline_count) {
    if (used_spills_ == spills_.size()) spills_.resize(2 * spills_.size() + 16);
    std::copy_n(list, inline_count, spills_[used_spills_].data());
    s.sector[inline_count - 1] = static_cast<std::uint32_t>(used_spills_);
    list = spills_[used_spills_++].data();
  }
  if (s.count < 32) list[s.count++] = sector;
  return true;
}

}  // namespace fuse::runtime::emulated
