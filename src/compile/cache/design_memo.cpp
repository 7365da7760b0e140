// SPDX-License-Identifier: Apache-2.0
#include "compile/cache/design_memo.hpp"

namespace fuse {

using schedule::DesignKey;
using schedule::SearchResult;

std::optional<SearchResult> DesignMemo::find(const DesignKey& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->second;
}

void DesignMemo::keep(const DesignKey& key, const SearchResult& result) {
  const std::scoped_lock lock(mutex_);
  if (most_ == 0 || by_key_.contains(key)) return;  // equal keys have equal results
  if (entries_.size() == most_) {
    by_key_.erase(entries_.back().first);
    entries_.pop_back();
  }
  entries_.emplace_front(key, result);
  by_key_.emplace(key, entries_.begin());
}

std::size_t DesignMemo::size() const {
  const std::scoped_lock lock(mutex_);
  return entries_.size();
}

schedule::DesignStore store_in(DesignMemo& memo) {
  return {.find = [&memo](const DesignKey& key) { return memo.find(key); },
          .keep = [&memo](const DesignKey& key, const SearchResult& result) { memo.keep(key, result); }};
}

}  // namespace fuse
