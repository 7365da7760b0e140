// Variant: a configuration, compiled and ready to run, and which region each of its steps belongs to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <fuse/executable.hpp>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/backend.hpp"
#include "runtime/explore/packed_memory.hpp"
#include "runtime/explore/stream_options.hpp"

namespace fuse::runtime {

/// Runs of it may be in flight on any number of streams, of which one at a time is measured.
class Variant {
 public:
  /// Prepares it for these dims. Throws what that throws. `mode`: streams, or graph; while a stream is being
  /// captured its runs are on streams.
  /// `packed`: what variants of one executable for several dims share; null: it has its own.
  Variant(Executable, const DimValues&, ExecutionMode mode = ExecutionMode::streams,
          std::shared_ptr<PackedMemory> packed = nullptr);

  const Executable& executable() const { return executable_; }
  const Prepared& prepared() const { return prepared_; }
  ExecutionMode mode() const { return mode_; }

  /// Runs as ever. The first run on a stream makes a workspace for it; the first one after parameters changed
  /// packs them, and waits for that.
  Status run(Stream&, std::span<const BufferView>, std::uint64_t parameters) noexcept;
  /// Makes the workspace of measured runs, unless it is there, whose times have these regions, too. Throws
  /// out_of_memory, driver.
  void make_measurable(const EpochTimes& = {});
  /// Whether measured runs use fallback launches, since other workspaces hold the slots of blocks that wait
  /// for each other: then their times are not those of the decisions.
  bool is_split() const { return measuring_.split(); }
  /// The same, with marks: the last measured run is over, and make_measurable was called.
  Status run_measured(Stream&, std::span<const BufferView>, std::uint64_t parameters) noexcept;
  /// The seconds of each region in the last measured run, and of the whole by the name "", which a graph has
  /// alone. None: it is not over. Throws driver.
  std::optional<std::map<std::string, double>> measured() const;

  /// Whether it was seen to compute what the default does. For the explorer, which guards it.
  bool is_checked = false;

 private:
  struct OnStream {
    const void* queue = nullptr;
    std::shared_ptr<Workspace> workspace{}, captured{};  ///< in the variant's mode, and for a capture
  };
  /// Marks around a graph.
  struct Marks {
    std::unique_ptr<Event> start{}, end{};
  };

  Executable executable_;
  Prepared prepared_;
  const ExecutionMode mode_;
  std::vector<std::string> regions_;  // by command; empty: of none
  EpochTimes epochs_;
  std::vector<int> levels_;  // by command; -1: of none
  std::mutex mutex_;
  std::shared_ptr<Workspace> workspace_for(const Stream&);

  /// By the stream's queue; the last used first, and no more than a few: streams come and go.
  std::list<OnStream> workspaces_;
  Workspace measuring_;  // made at the first measured run
  Marks marks_;
  const std::shared_ptr<PackedMemory> packed_;
};

/// What a caught exception reports.
Status status_of(const std::exception&) noexcept;

}  // namespace fuse::runtime
