// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulated/memory/cells.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

namespace fuse::runtime::emulated {
namespace {

bool live(const Access& a, const Point& now) { return a.block >= now.oldest; }
bool same_warp(std::uint32_t s, std::uint32_t t) { return s / 32 == t / 32; }

// Both are of this launch.
bool same_cluster(const Access& a, std::uint32_t block, const Point& now) {
  return a.block == block ||
         (now.cluster > 1 && (a.block - now.oldest) / now.cluster == (block - now.oldest) / now.cluster);
}

// A barrier of the cluster stands between `a` and now.
bool behind_cluster_barrier(const Access& a, const Point& now) {
  return now.cluster > 1 && a.clock < now.cluster_epoch && same_cluster(a, now.block, now);
}

// A barrier (of the cluster or the block, or a rendezvous of the warp) stands between `a` and now.
bool ordered(const Access& a, const Point& now) {
  if (a.block != now.block) return behind_cluster_barrier(a, now);
  return a.clock < now.epoch || a.thread == now.thread ||
         (same_warp(a.thread, now.thread) && a.clock < now.clock);
}

// What conflicts with a reader before a barrier of the cluster conflicts with a reader at `now` too.
void forget_passed(Readers& readers, const Point& now) {
  if (live(readers.b, now) && behind_cluster_barrier(readers.b, now)) readers.b = {};
  if (live(readers.a, now) && behind_cluster_barrier(readers.a, now))
    readers.a = std::exchange(readers.b, {});
}

Access here(const Point& now, int line) {
  Access a{now.block, now.clock};
  a.thread = now.thread & 1023;
  a.line = static_cast<std::uint32_t>(line) & 0x3fffff;
  return a;
}

void* map(std::size_t bytes) {
  void* fresh =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fresh == MAP_FAILED) throw std::bad_alloc();
  return fresh;
}

}  // namespace

Access visit_load(const Access& write, Readers& readers, const Point& now, int line) {
  if (live(write, now) && !ordered(write, now)) return write;
  const Access me = here(now, line);
  Access &a = readers.a, &b = readers.b;
  if (now.cluster > 1) forget_passed(readers, now);
  const bool both = live(a, now) && live(b, now);
  if (!live(a, now)) {
    a = me;
    b = {};
  } else if (both && a.block != b.block) {
    // Readers in two clusters: no store is safe any more. In two blocks of one: none of theirs before their
    // next barrier, and what others read lasts longer.
    if (same_cluster(a, b.block, now) && !same_cluster(a, me.block, now)) b = me;
  } else if (a.block != me.block) {
    b = me;
  } else if (a.clock < now.epoch) {
    a = me;
    b = {};
  } else if (both && !same_warp(a.thread, b.thread)) {
    // Readers in two warps: no store is safe before the next barrier.
  } else if (!same_warp(a.thread, me.thread)) {
    b = me;
  } else if (a.clock < me.clock) {
    a = me;
    b = {};
  } else if (a.thread != me.thread && !both) {
    b = me;
  }
  return {};
}

Access visit_store(Access& write, const Readers& readers, const Point& now, int line, bool& was_store) {
  was_store = true;
  if (live(write, now) && !ordered(write, now)) return write;
  was_store = false;
  for (const Access& reader : {readers.a, readers.b}) {
    if (live(reader, now) && !ordered(reader, now)) return reader;
  }
  write = here(now, line);
  return {};
}

Cells::~Cells() { release(); }

void Cells::release() noexcept {
  if (writes_) munmap(writes_, capacity_ * sizeof(Access));
  if (readers_) munmap(readers_, capacity_ * sizeof(Readers));
  writes_ = nullptr;
  readers_ = nullptr;
  capacity_ = 0;
}

std::uint32_t Cells::prepare(std::size_t count, std::uint64_t blocks) {
  if (blocks > 0xfffffff0u) throw std::bad_alloc();
  if (blocks > 0xfffffff0u - next_) {  // numbers used up: start over with a clean slate
    release();
    next_ = 1;
  }
  if (count > capacity_) {
    release();
    const std::size_t room = std::max<std::size_t>(count, 4096);
    writes_ = static_cast<Access*>(map(room * sizeof(Access)));
    capacity_ = room;
    try {
      readers_ = static_cast<Readers*>(map(room * sizeof(Readers)));
    } catch (...) {
      munmap(writes_, room * sizeof(Access));
      writes_ = nullptr;
      capacity_ = 0;
      throw;
    }
  }
  const std::uint32_t first = next_;
  next_ += static_cast<std::uint32_t>(blocks);
  return first;
}

}  // namespace fuse::runtime::emulated
