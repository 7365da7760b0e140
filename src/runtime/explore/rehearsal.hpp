// Rehearsal: a configuration for a GPU runs on the emulated device first, with the same inputs. Its checker
// sees accesses out of bounds, races, and barriers that not all threads reach: a GPU says nothing of them, or
// fails for good. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <fuse/explore.hpp>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/explore/snapshot.hpp"

namespace fuse::runtime {

/// Threads may share it.
class Rehearsal {
 public:
  /// `most_operations`: ExploreOptions::max_emulated_operations.
  Rehearsal(const Graph&, const Device&, const DimValues&, double most_operations);

  /// What the checker finds where a graph is compiled so and reads these inputs; empty: nothing, or there was
  /// no rehearsal.
  std::string fault_of(const CompileOptions&, const Snapshot&);

  /// There are no more of them: gives back what they needed, unless one is under way.
  void forget();

  std::int64_t runs() const { return runs_; }  ///< configurations that were run
  /// Why there are none; empty: there are, or the device is no GPU, or nobody wants them.
  std::string missing_why() const;

 private:
  void run(const CompileOptions&);
  void give_up(const std::string& why);

  const Graph graph_;
  const DimValues dims_;
  std::mutex running_;
  std::optional<Device> device_;              // none: no rehearsals
  std::map<std::size_t, HostTensor> inputs_;  // by slot
  std::atomic<std::int64_t> runs_ = 0;
  mutable std::mutex telling_;  // of what follows: nobody waits for a run to learn it
  std::string missing_why_;
};

}  // namespace fuse::runtime
