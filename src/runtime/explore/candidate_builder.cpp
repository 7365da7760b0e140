// SPDX-License-Identifier: Apache-2.0
#include "runtime/explore/candidate_builder.hpp"

#include <algorithm>
#include <utility>

namespace fuse::runtime {

CandidateBuilder::CandidateBuilder(Make make) : make_(std::move(make)), thread_([this] { work(); }) {}

CandidateBuilder::~CandidateBuilder() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CandidateBuilder::ask(const Wanted& wanted) {
  const std::lock_guard lock(mutex_);
  if (made_.contains(wanted) || std::find(asked_.begin(), asked_.end(), wanted) != asked_.end()) return;
  asked_.push_back(wanted);
  changed_.notify_all();
}

std::unique_ptr<CandidateBuilder::Built> CandidateBuilder::take(const Wanted& wanted) {
  const std::lock_guard lock(mutex_);
  const auto found = made_.find(wanted);
  if (found == made_.end()) return nullptr;
  auto built = std::make_unique<Built>(std::move(found->second));
  made_.erase(found);
  return built;
}

void CandidateBuilder::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return asked_.empty(); });
}

void CandidateBuilder::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !asked_.empty(); });
    if (ends_) return;
    const Wanted wanted = asked_.front();
    lock.unlock();
    Built built;
    try {
      built.variant = make_(wanted);
    } catch (const Error& failed) {
      built.failed = failed.what();
      built.code = failed.code();
    } catch (const std::exception& failed) {
      built.failed = failed.what();
      built.code = ErrorCode::internal;
    }
    lock.lock();
    made_.emplace(wanted, std::move(built));
    asked_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace fuse::runtime
