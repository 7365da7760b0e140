// A fiber: one thread of a block, with a small stack of its own. Switching costs a few nanoseconds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace fuse::runtime::emulated {

class Fiber {
 public:
  using Body = void (*)(void*);

  /// The stack lies at [stack, stack + bytes); `colour` moves the first frame so that the fibers of a block
  /// do not all hit the same cache set.
  Fiber(char* stack, std::size_t bytes, std::size_t colour, Body body, void* argument);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Scheduler side: runs the body until it suspends or returns. A fiber that returned starts over.
  void resume();
  /// Fiber side: back to the scheduler.
  void suspend();
  /// Scheduler side: forgets a suspended run; the next resume starts over.
  void abandon();

  bool finished() const { return finished_; }
  /// The lowest bytes of the stack were overwritten: the kernel needs more stack than there is.
  bool overflowed() const;

 private:
  struct Switch;
  friend struct Switch;
  void prepare();

  char* stack_;
  std::size_t bytes_, colour_;
  Body body_;
  void* argument_;
  void* context_ = nullptr;
  void* scheduler_ = nullptr;
  bool finished_ = false;
  // Sanitizers keep a shadow of each stack; other builds leave these alone.
  [[maybe_unused]] void* tsan_ = nullptr;
  [[maybe_unused]] void* scheduler_tsan_ = nullptr;
  [[maybe_unused]] void* fake_stack_ = nullptr;
  [[maybe_unused]] void* scheduler_fake_stack_ = nullptr;
  [[maybe_unused]] const void* scheduler_bottom_ = nullptr;
  [[maybe_unused]] std::size_t scheduler_bytes_ = 0;
};

/// Fibers that share a body, made on demand, 32 stacks to a mapping.
class FiberPool {
 public:
  FiberPool(Fiber::Body body, void* argument) : body_(body), argument_(argument) {}
  ~FiberPool();
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;
  /// Throws std::bad_alloc.
  void grow(std::size_t count);
  Fiber& operator[](std::size_t i) { return *fibers_[i]; }

 private:
  Fiber::Body body_;
  void* argument_;
  std::vector<void*> mappings_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
};

}  // namespace fuse::runtime::emulated
