// CompileCache: what a device compiled in this process. A second compile of an equal graph plans nothing, and
// equal texts are built once. Bounded, least recently used first out; thread safe. A hash finds candidates,
// equality decides. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <fuse/executable.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compile/cache/bounded_cache.hpp"
#include "compile/cache/design_memo.hpp"
#include "compile/cache/kernel_cache.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "plan/program.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/build.hpp"

namespace fuse::runtime {

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
      origin;                 ///< its stages, made when they are asked for if an earlier process compiled it
  std::vector<Build> builds;  ///< without their functions
};

class CompileCache {
 public:
  struct Limits {
    std::size_t entries = 64;        ///< graphs with their modules, and modules
    std::size_t ops = 1'000'000;     ///< the ops of all graphs
    std::size_t bytes = 64'000'000;  ///< the bytes of all texts
    std::size_t kernels = 1024;      ///< kernels one by one, of as many bytes
  };
  CompileCache() : CompileCache(Limits{}) {}
  explicit CompileCache(const Limits& limits)
      : stages(limits.entries, limits.ops),
        modules(limits.entries, limits.bytes),
        kernels(limits.kernels, limits.bytes) {}

  BoundedCache<GraphKey, CompiledGraph> stages;
  BoundedCache<ModuleKey, Module> modules;
  KernelCache kernels;  ///< of candidates, which differ in a few kernels
  DesignMemo designs;   ///< what was searched of kernels
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
