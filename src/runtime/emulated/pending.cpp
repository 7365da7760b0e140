// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulated/pending.hpp"

#include <exception>
#include <utility>

namespace fuse::runtime::emulated {

void Pending::add(Slot& slot, std::unique_ptr<Launch> launch) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(&slot);
  slot.launch_ = std::move(launch);
  slot.used_ = true;
}

Status Pending::settle(Slot& slot) noexcept {
  if (!slot.used_) return {};
  const std::lock_guard lock(mutex_);
  if (slot.launch_) run_all();
  slot.used_ = false;
  return std::exchange(slot.failure_, Status());
}

Status Pending::await(Slot& slot) noexcept {
  const std::lock_guard lock(mutex_);
  if (slot.launch_) run_all();
  return slot.failure_;
}

void Pending::settle_all() noexcept {
  const std::lock_guard lock(mutex_);
  run_all();
}

void Pending::close() noexcept {
  const std::lock_guard lock(mutex_);
  run_all();
  run_ = nullptr;
  finish_ = nullptr;
}

// Under the lock, so that a queue whose launch is running waits for it here.
void Pending::run_all() noexcept {
  if (waiting_.empty()) return;
  try {
    std::vector<Launch*> launches;
    for (const Slot* slot : waiting_) launches.push_back(slot->launch_.get());
    run_(launches);
  } catch (const std::exception&) {
    for (const Slot* slot : waiting_) slot->launch_->fail({.kind = Fault::Kind::memory});
  }
  for (Slot* slot : std::exchange(waiting_, {}))
    slot->failure_ = finish_(*std::exchange(slot->launch_, nullptr));
}

}  // namespace fuse::runtime::emulated
