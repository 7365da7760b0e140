// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/scratch.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>

namespace fuse::runtime::cpu {
namespace {

constexpr std::int64_t scratch_alignment = 64;
constexpr std::int64_t least_scratch = 4096, most_scratch = std::int64_t{1} << 32;  // bytes of one thread
constexpr std::size_t most_callers = 16;  // threads that launch at once; one more has to allocate

}  // namespace

void FreeMemory::operator()(char* memory) const noexcept { std::free(memory); }

ScratchBlock make_scratch(std::int64_t bytes) {
  const std::int64_t padded = (bytes + scratch_alignment - 1) / scratch_alignment * scratch_alignment;
  ScratchBlock block(
      static_cast<char*>(std::aligned_alloc(scratch_alignment, static_cast<std::size_t>(padded))));
  if (!block) throw std::bad_alloc();
  return block;
}

struct Scratch::Set {
  std::int64_t bytes = 0;  ///< of each thread
  ScratchBlock memory;     ///< for the callers, then for the pool's threads
  std::array<std::atomic<bool>, most_callers> lent{};
  char* at(std::size_t i) const { return memory.get() + static_cast<std::int64_t>(i) * bytes; }
};

Scratch::Scratch(int helpers) : helpers_(helpers) {}
Scratch::~Scratch() = default;

void Scratch::reserve(std::int64_t bytes) {
  if (bytes <= 0) return;
  const std::lock_guard lock(mutex_);
  const Set* const last = newest_.load(std::memory_order_relaxed);
  if (last && last->bytes >= bytes) return;
  if (bytes > most_scratch) throw std::bad_alloc();
  auto set = std::make_unique<Set>();
  set->bytes =
      std::max(static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes))), least_scratch);
  set->memory = make_scratch(set->bytes * (static_cast<std::int64_t>(most_callers) + helpers_));
  sets_.push_back(std::move(set));
  newest_.store(sets_.back().get(), std::memory_order_release);
}

Scratch::Set* Scratch::newest(std::int64_t bytes) {
  Set* set = newest_.load(std::memory_order_acquire);
  if (set && set->bytes >= bytes) return set;
  reserve(bytes);
  return newest_.load(std::memory_order_acquire);
}

Scratch::Loan::Loan(Scratch& scratch, std::int64_t bytes) {
  if (bytes <= 0) return;
  set_ = scratch.newest(bytes);
  for (std::size_t i = 0; i < most_callers; ++i) {
    if (set_->lent[i].exchange(true, std::memory_order_acquire)) continue;
    lent_ = &set_->lent[i];
    own_ = set_->at(i);
    return;
  }
  extra_ = make_scratch(bytes);
  own_ = extra_.get();
}

Scratch::Loan::~Loan() {
  if (lent_) lent_->store(false, std::memory_order_release);
}

char* Scratch::Loan::of(int thread) const noexcept {
  if (thread == 0 || !set_) return own_;
  return set_->at(most_callers + static_cast<std::size_t>(thread) - 1);
}

}  // namespace fuse::runtime::cpu
