// CompileCache: what a device compiled in this process. A second compile of an equal graph plans nothing, and
// equal texts are built once. Bounded, least recently used first out; thread safe. A hash finds candidates,
// equality decides. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <fuse/executable.hpp>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "compile/cache/design_memo.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "plan/program.hpp"
#include "runtime/device/backend.hpp"

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

/// A graph as the user built it, with the options that change what is made from it. A device has one target.
class GraphKey {
 public:
  GraphKey(std::shared_ptr<const ir::Graph> graph, const CompileOptions& options);
  std::uint64_t hash() const { return hash_; }
  std::size_t weight() const { return graph_->nodes.size(); }
  bool operator==(const GraphKey&) const;

 private:
  std::shared_ptr<const ir::Graph> graph_;
  CompileOptions options_;  // threads apart
  std::uint64_t hash_;
};

/// Emitted text with what its kernels are known by, and how it is built.
class ModuleKey {
 public:
  ModuleKey(std::shared_ptr<const codegen::Source> source, std::string build);
  std::uint64_t hash() const { return hash_; }
  std::size_t weight() const { return source_->body.size(); }
  bool operator==(const ModuleKey&) const;

 private:
  std::shared_ptr<const codegen::Source> source_;
  std::string build_;  // Toolchain::key
  std::uint64_t hash_;
};

class Origin;

/// What was made from a graph.
struct CompiledGraph {
  std::shared_ptr<const Origin>
      origin;  ///< its stages, made when they are asked for if an earlier process compiled it
  std::shared_ptr<const Program> program;
  std::shared_ptr<const Module> module;  ///< null: there are no kernels
};

class CompileCache {
 public:
  struct Limits {
    std::size_t entries = 64;        ///< graphs with their modules, and modules
    std::size_t ops = 1'000'000;     ///< the ops of all graphs
    std::size_t bytes = 64'000'000;  ///< the bytes of all texts
  };
  CompileCache() : CompileCache(Limits{}) {}
  explicit CompileCache(const Limits& limits)
      : stages(limits.entries, limits.ops), modules(limits.entries, limits.bytes) {}

  BoundedCache<GraphKey, CompiledGraph> stages;
  BoundedCache<ModuleKey, Module> modules;
  DesignMemo designs;  ///< what was searched of kernels
  std::atomic<std::size_t> disk_hits = 0, disk_misses = 0;
  /// Why the last one that was to be kept on disk could not be; empty: it was.
  void note_disk(std::string trouble);
  void note_no_disk(std::string why);  ///< there is none to look into

  /// What was looked up, found and is kept, one per line; empty where nothing was looked up.
  std::string report() const;

 private:
  mutable std::mutex mutex_;
  std::string disk_trouble_, disk_unused_;
};

}  // namespace fuse::runtime
