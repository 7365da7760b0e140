// BoundedCache: values by key, of which what was used least recently leaves. Thread safe. A hash finds
// candidates, equality decides. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace fuse::runtime {

/// Values by key. `Key` has hash(), operator== and weight(), in which `most_weight` is counted.
template <class Key, class Value>
class BoundedCache {
 public:
  struct Counts {
    std::size_t hits = 0, misses = 0, held = 0;
  };

  BoundedCache(std::size_t most, std::size_t most_weight) : most_(most), most_weight_(most_weight) {}

  /// The value of the key, or null.
  std::shared_ptr<const Value> find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto entry = locate(key);
    if (entry == entries_.end()) {
      ++misses_;
      return nullptr;
    }
    ++hits_;
    entries_.splice(entries_.begin(), entries_, entry);
    return entry->value;
  }

  /// Keeps the value, unless the key has one already or is too heavy.
  void insert(Key key, std::shared_ptr<const Value> value) {
    const std::lock_guard lock(mutex_);
    if (key.weight() > most_weight_ || locate(key) != entries_.end()) return;
    weight_ += key.weight();
    const std::uint64_t hash = key.hash();
    entries_.push_front({hash, std::move(key), std::move(value)});
    by_hash_.emplace(hash, entries_.begin());
    while (entries_.size() > most_ || weight_ > most_weight_) drop_oldest();
  }

  Counts counts() const {
    const std::lock_guard lock(mutex_);
    return {hits_, misses_, entries_.size()};
  }

 private:
  struct Entry {
    std::uint64_t hash;
    Key key;
    std::shared_ptr<const Value> value;
  };
  using Entries = std::list<Entry>;

  typename Entries::iterator locate(const Key& key) {
    const auto [begin, end] = by_hash_.equal_range(key.hash());
    for (auto at = begin; at != end; ++at) {
      if (at->second->key == key) return at->second;
    }
    return entries_.end();
  }

  void drop_oldest() {
    const auto oldest = std::prev(entries_.end());
    const auto [begin, end] = by_hash_.equal_range(oldest->hash);
    for (auto at = begin; at != end; ++at) {
      if (at->second != oldest) continue;
      by_hash_.erase(at);
      break;
    }
    weight_ -= oldest->key.weight();
    entries_.pop_back();
  }

  const std::size_t most_, most_weight_;
  mutable std::mutex mutex_;
  Entries entries_;  // the most recently used first
  std::unordered_multimap<std::uint64_t, typename Entries::iterator> by_hash_;
  std::size_t weight_ = 0, hits_ = 0, misses_ = 0;
};

}  // namespace fuse::runtime
