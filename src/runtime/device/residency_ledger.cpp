// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/residency_ledger.hpp"

#include <map>
#include <vector>

namespace fuse::runtime {

// One ledger per device of the process: two handles that did not know of each other would lend its slots
// twice.
std::shared_ptr<ResidencyLedger> ResidencyLedger::of(const void* library, const void* device) {
  static std::mutex mutex;
  static std::map<std::pair<const void*, const void*>, std::weak_ptr<ResidencyLedger>> ledgers;
  const std::lock_guard lock(mutex);
  std::erase_if(ledgers, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<ResidencyLedger>& known = ledgers[{library, device}];
  std::shared_ptr<ResidencyLedger> ledger = known.lock();
  if (!ledger) known = ledger = std::make_shared<ResidencyLedger>();
  return ledger;
}

std::unique_ptr<ResidencyLedger::Reservation> ResidencyLedger::reserve(schedule::Alternatives launches,
                                                                       const void* turns,
                                                                       const Target& target) {
  const std::lock_guard lock(mutex_);
  entries_.push_back({std::move(launches), turns});
  std::vector<schedule::Alternatives> runs;
  std::map<const void*, std::size_t> run_of;
  for (const Entry& entry : entries_) {
    if (entry.launches.empty()) continue;
    if (entry.turns) {
      const auto [at, fresh] = run_of.emplace(entry.turns, runs.size());
      if (!fresh) {
        schedule::Alternatives& lists = runs[at->second];
        lists.insert(lists.end(), entry.launches.begin(), entry.launches.end());
        continue;
      }
    }
    runs.push_back(entry.launches);
  }
  // What is granted already fits: a run without cooperative launches changes nothing.
  if (!entries_.back().launches.empty() && !schedule::fit_together(runs, target)) {
    entries_.pop_back();
    return nullptr;
  }
  return std::make_unique<Reservation>(shared_from_this(), std::prev(entries_.end()));
}

ResidencyLedger::Reservation::~Reservation() {
  const std::lock_guard lock(ledger_->mutex_);
  ledger_->entries_.erase(entry_);
}

}  // namespace fuse::runtime
