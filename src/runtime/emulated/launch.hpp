// One launch in flight: what the runners share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/emulated/emulated_module.hpp"
#include "runtime/emulated/memory/cells.hpp"
#include "runtime/emulated/memory/kernel_fault.hpp"

namespace fuse::runtime::emulated {

/// Global memory that some parameter may write, divided into elements of the smallest type bound to it.
/// Memory that is only read needs no history.
struct Region {
  std::uintptr_t begin = 0, end = 0;
  int shift = 0;  ///< log2 of the element size
  bool writable = false;
  std::size_t first_cell = 0;
  std::atomic<bool> read = false;  ///< somebody loaded from it: stores must look at the readers
};

/// One buffer argument as the checker sees it. Extents leave it empty.
struct View {
  std::uintptr_t address = 0;
  std::int64_t bytes = 0;
  std::uint8_t* written = nullptr;
  std::int64_t offset = 0;  ///< the offset of `address` in its allocation, which starts on a sector
  bool writable = false;
  Region* region = nullptr;  ///< null: nobody writes it
};

struct Launch {
  std::shared_ptr<const Kernel> kernel;  ///< a launch that waits may outlive the module
  Dim3 grid;
  std::uint64_t blocks = 0, chunk = 1;
  std::uint64_t cluster = 1;  ///< blocks per cluster; the grid has a whole number of clusters
  std::uint64_t seed = 0;     ///< nonzero: random orders
  std::uint64_t stride = 1;   ///< coprime to the clusters: cluster i in time is (i * stride) % clusters
  std::vector<unsigned long long> arguments;

  bool checked = false;
  bool check_indices = false;  ///< an index that would be clamped is a fault
  std::vector<View> views;
  std::vector<std::unique_ptr<Region>> regions;
  std::unique_ptr<Cells> cells;
  std::size_t cell_count = 0;
  std::uint32_t first_block = 1;  ///< number of block 0 in the histories

  std::atomic<std::uint64_t> next = 0;
  std::atomic<bool> stop = false;

  std::mutex mutex;  // guards what follows
  std::optional<Fault> fault;
  std::optional<Fault> pending;  ///< a read before any write, unless a race explains it
  std::vector<AccessCounts> counts;
  std::vector<std::int64_t> ops;  ///< executions of each of costly_ops
  std::int64_t barriers = 0;
  std::int64_t grid_barriers = 0;
  std::int64_t cluster_barriers = 0;
  std::string deadlock;  ///< the text of that fault: it names other launches as well

  std::uint64_t clusters() const { return blocks / cluster; }
  /// The i-th cluster in time; without clusters the i-th block.
  std::uint64_t cluster_at(std::uint64_t i) const {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(i) * stride % clusters());
  }

  /// The first fault stands; a race outranks a pending read of unwritten memory.
  void fail(const Fault& f) {
    const std::lock_guard lock(mutex);
    if (!fault) fault = f;
    stop = true;
  }
};

}  // namespace fuse::runtime::emulated
