// Searches of kernels that were done before, for all threads: a second search of an equal kernel costs a hash
// and a copy. It stands here and not in schedule/search, whose functions are pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "schedule/search/search_chooser.hpp"

namespace fuse {

/// Bounded: what was used least recently leaves.
class DesignMemo {
 public:
  explicit DesignMemo(std::size_t most = 4096) : most_(most) {}

  std::optional<schedule::SearchResult> find(const schedule::DesignKey&);
  void keep(const schedule::DesignKey&, const schedule::SearchResult&);
  std::size_t size() const;

 private:
  using Entry = std::pair<schedule::DesignKey, schedule::SearchResult>;
  const std::size_t most_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the most recently used one first
  std::map<schedule::DesignKey, std::list<Entry>::iterator> by_key_;
};

/// The memo as a search asks it. The memo outlives what is returned.
schedule::DesignStore store_in(DesignMemo&);

}  // namespace fuse
