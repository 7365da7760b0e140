// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulated/fiber.hpp"

#include <sys/mman.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstdint>
#include <cstring>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FUSE_FIBER_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define FUSE_FIBER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define FUSE_FIBER_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define FUSE_FIBER_TSAN 1
#endif

#ifdef FUSE_FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef FUSE_FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace fuse::runtime::emulated {
namespace {

namespace ctx = boost::context::detail;

// A thread of a GPU has 512 KB of its own. Unoptimised frames are larger than a GPU's, since each value has a
// place of its own. Pages are taken when they are used; but ASan's shadow of a stack is written as a whole.
#if defined(FUSE_FIBER_ASAN) || defined(FUSE_FIBER_TSAN)
constexpr std::size_t stack_bytes = 128 << 10;
#else
constexpr std::size_t stack_bytes = 512 << 10;
#endif
constexpr std::size_t stacks_per_mapping = 32;
constexpr std::size_t colour_bytes = 4096;
constexpr std::uint64_t canary = 0x6675736563616e61;

}  // namespace

struct Fiber::Switch {
  // Runs on the fiber's own stack and never returns: a finished fiber waits here for its next block.
  static void main(ctx::transfer_t from) {
    auto* self = static_cast<Fiber*>(from.data);
    self->scheduler_ = from.fctx;
#ifdef FUSE_FIBER_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &self->scheduler_bottom_, &self->scheduler_bytes_);
#endif
    for (;;) {
      self->body_(self->argument_);
      self->finished_ = true;
      self->suspend();
    }
  }
};

Fiber::Fiber(char* stack, std::size_t bytes, std::size_t colour, Body body, void* argument)
    : stack_(stack), bytes_(bytes), colour_(colour), body_(body), argument_(argument) {
  std::memcpy(stack_, &canary, sizeof canary);
  prepare();
}

Fiber::~Fiber() {
#ifdef FUSE_FIBER_TSAN
  if (tsan_) __tsan_destroy_fiber(tsan_);
#endif
}

void Fiber::prepare() {
#ifdef FUSE_FIBER_TSAN
  if (tsan_) __tsan_destroy_fiber(tsan_);
  tsan_ = __tsan_create_fiber(0);
#endif
  fake_stack_ = nullptr;
  context_ = ctx::make_fcontext(stack_ + bytes_ - colour_, bytes_ - colour_bytes, Switch::main);
}

void Fiber::resume() {
  finished_ = false;
#ifdef FUSE_FIBER_ASAN
  __sanitizer_start_switch_fiber(&scheduler_fake_stack_, stack_, bytes_);
#endif
#ifdef FUSE_FIBER_TSAN
  scheduler_tsan_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(tsan_, 0);
#endif
  context_ = ctx::jump_fcontext(context_, this).fctx;
#ifdef FUSE_FIBER_ASAN
  __sanitizer_finish_switch_fiber(scheduler_fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::suspend() {
#ifdef FUSE_FIBER_ASAN
  __sanitizer_start_switch_fiber(&fake_stack_, scheduler_bottom_, scheduler_bytes_);
#endif
#ifdef FUSE_FIBER_TSAN
  __tsan_switch_to_fiber(scheduler_tsan_, 0);
#endif
  scheduler_ = ctx::jump_fcontext(scheduler_, nullptr).fctx;
#ifdef FUSE_FIBER_ASAN
  __sanitizer_finish_switch_fiber(fake_stack_, &scheduler_bottom_, &scheduler_bytes_);
#endif
}

void Fiber::abandon() {
#ifdef FUSE_FIBER_ASAN
  __asan_unpoison_memory_region(stack_, bytes_);
#endif
  prepare();
}

bool Fiber::overflowed() const { return std::memcmp(stack_, &canary, sizeof canary) != 0; }

FiberPool::~FiberPool() {
  fibers_.clear();
  for (void* mapping : mappings_) {
#ifdef FUSE_FIBER_ASAN
    __asan_unpoison_memory_region(mapping, stacks_per_mapping * stack_bytes);
#endif
    munmap(mapping, stacks_per_mapping * stack_bytes);
  }
}

void FiberPool::grow(std::size_t count) {
  while (fibers_.size() < count) {
    const std::size_t slot = fibers_.size() % stacks_per_mapping;
    if (slot == 0 && mappings_.size() * stacks_per_mapping == fibers_.size()) {
      mappings_.reserve(mappings_.size() + 1);
      void* fresh = mmap(nullptr, stacks_per_mapping * stack_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (fresh == MAP_FAILED) throw std::bad_alloc();
      mappings_.push_back(fresh);
    }
    char* stack = static_cast<char*>(mappings_.back()) + slot * stack_bytes;
    const std::size_t colour = fibers_.size() * 9 % 61 * 64;
    fibers_.push_back(std::make_unique<Fiber>(stack, stack_bytes, colour, body_, argument_));
  }
}

}  // namespace fuse::runtime::emulated
