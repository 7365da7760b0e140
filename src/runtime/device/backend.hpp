// Backend: what the launcher asks of a device. Implemented by emulated/, cuda/ (and reference/, which has
// memory only: it evaluates graphs instead of launching kernels).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <fuse/dtype.hpp>
#include <fuse/error.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plan/binary.hpp"
#include "plan/epilogue_kind.hpp"
#include "plan/source.hpp"
#include "target/compatibility.hpp"
#include "target/target.hpp"

namespace fuse::runtime {

class ResidencyLedger;
class Toolchain;
class DeviceGraph;

// The most arguments per launch: 4096 bytes, the limit of the oldest driver we run on.
constexpr int max_arguments = 512;

struct Dim3 {
  std::int64_t x = 1, y = 1, z = 1;
};

/// A loaded kernel. Owned by its Module.
class Function {
 public:
  virtual ~Function() = default;
  /// What it was loaded on; a device compares this before it looks any closer.
  const void* owner = nullptr;
  int registers = 0;  ///< registers per thread; 0 where the device does not count them
  int blocks_per_sm =
      0;  ///< blocks of a cooperative kernel per multiprocessor; 0 where the device does not say
};

/// A loaded Binary, and the binary, so that it can be saved.
class Module {
 public:
  explicit Module(std::shared_ptr<const Binary> loaded) : binary(std::move(loaded)) {}
  virtual ~Module() = default;
  const std::shared_ptr<const Binary> binary;
  /// By kernel name; an internal Error if the source has no such kernel.
  virtual const Function& function(const std::string& name) const = 0;
};

/// An in-order queue of work.
class Queue {
 public:
  explicit Queue(const void* owned_by = nullptr) : owner(owned_by) {}
  virtual ~Queue() = default;
  const void* const owner;  ///< as Function::owner
  virtual Status synchronize() noexcept = 0;
  virtual void* native() const noexcept { return nullptr; }  ///< CUstream, or null
};

/// A mark in a queue's work, for timing.
class Event {
 public:
  explicit Event(const void* owned_by = nullptr) : owner(owned_by) {}
  virtual ~Event() = default;
  const void* const owner;  ///< as Function::owner
};

// What a device answers that is given an event of another one.
Status foreign_event() noexcept;

/// Work that was captured from a queue, to be launched as a whole. One launch in flight at a time.
class CapturedWork {
 public:
  virtual ~CapturedWork() = default;
  virtual Status launch(Queue&) noexcept = 0;
};

/// One argument of a launch: a device address (with its size, for the checker) or an extent.
struct Argument {
  void* address = nullptr;
  std::int64_t bytes = 0;  ///< buffers: size of the buffer from `address` on
  std::int64_t value = 0;  ///< extents
};

/// c = a * b for `batch` row-major matrices, each f32/f64-accumulated and rounded once to c's type.
/// a is m x k (k x m when transpose_a), b is k x n (n x k when transpose_b), c is m x n; strides in elements.
/// An epilogue is computed on the sums before they are stored; the result then has the accumulator's type.
struct GemmDesc {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;  ///< between matrices of the batch; 0 shares one
  /// Between rows of each as it lies in memory; 0: they lie back to back.
  std::int64_t row_a = 0, row_b = 0, row_c = 0;
  /// Batches, each a call of a library that takes one stride, and what lies between them.
  std::int64_t calls = 1;
  std::int64_t call_a = 0, call_b = 0, call_c = 0;
  bool transpose_a = false, transpose_b = false;
  bool packed_b =
      false;  ///< what Backend::pack_gemm made is given in the place of b, which is one for all matrices
  /// A product before this one read the same b: what it read last is in the caches, and is read first here.
  bool backwards = false;
  DType operand = f32;  ///< the type of a and b
  DType result = f32;
  schedule::EpilogueKind epilogue = schedule::EpilogueKind::none;
  double scale = 1;             ///< the factor of EpilogueKind::scale
  std::uint32_t algorithm = 0;  ///< which of those that the library proposes, the one that it prefers first
  /// What Gemm::recorded gave for a product of other extents; taken where it can do these, in place of
  /// `algorithm`. Null: none. Read while the product is prepared.
  const std::string* recorded = nullptr;
};

inline std::int64_t row_of_a(const GemmDesc& d) { return d.row_a ? d.row_a : d.transpose_a ? d.m : d.k; }
inline std::int64_t row_of_b(const GemmDesc& d) { return d.row_b ? d.row_b : d.transpose_b ? d.k : d.n; }
inline std::int64_t row_of_c(const GemmDesc& d) { return d.row_c ? d.row_c : d.n; }

/// A GEMM ready to run: algorithm chosen, nothing left to allocate.
class Gemm {
 public:
  virtual ~Gemm() = default;
  virtual std::int64_t workspace_bytes() const noexcept = 0;
  /// What was chosen, for a person: "cuBLASLt algorithm 66, tile 20, ...".
  virtual std::string algorithm() const = 0;
  /// The algorithm as a value that the same version of the library knows again; empty: there is but one.
  virtual std::string recorded() const { return {}; }
  /// `extra`: the epilogue's n elements (bias), or matrices that lie as c's do and are not c's (add).
  virtual Status run(Queue&, const void* a, const void* b, void* c, void* workspace,
                     const void* extra = nullptr) const noexcept = 0;
};

/// What the emulated device counted since the last reset (checked mode; zero elsewhere). Operands are
/// distinguished by address: one row per (kernel, parameter).
struct AccessCounts {
  std::int64_t loads = 0, stores = 0;  ///< elements
  std::int64_t load_bytes = 0, store_bytes = 0;
  std::int64_t load_sectors = 0, store_sectors = 0;  ///< 32-byte sectors, summed over warp accesses
};
struct KernelCounts {
  std::string kernel;
  std::int64_t launches = 0;
  std::int64_t block_barriers = 0;    ///< barriers passed, counted once per block
  std::int64_t grid_barriers = 0;     ///< passed, counted once per launch
  std::int64_t cluster_barriers = 0;  ///< passed, counted once per cluster
  std::vector<AccessCounts> params;   ///< one per KernelParam (extents: zero)
  std::vector<std::int64_t> ops;      ///< executions of each of costly_ops, or none
};

/// One device. Thread safe, except that a Queue belongs to one thread at a time.
class Backend {
 public:
  explicit Backend(std::shared_ptr<const Toolchain> toolchain = nullptr);
  virtual ~Backend();
  virtual const Target& target() const = 0;
  /// How the device was found: the libraries looked for and where, one per line.
  virtual std::string report() const = 0;

  /// 256-byte aligned; contents undefined. Throws out_of_memory. Zero bytes give a valid, unusable address.
  virtual void* allocate(std::int64_t bytes) = 0;
  virtual void free(void* address) noexcept = 0;
  virtual std::unique_ptr<Queue> create_queue() = 0;
  virtual Status upload(Queue&, void* to, const void* from, std::int64_t bytes) noexcept = 0;
  virtual Status download(Queue&, void* to, const void* from, std::int64_t bytes) noexcept = 0;
  virtual Status copy(Queue&, void* to, const void* from, std::int64_t bytes) noexcept = 0;
  virtual Status memset(Queue&, void* to, int byte, std::int64_t bytes) noexcept = 0;

  virtual std::unique_ptr<Module> load_binary(std::shared_ptr<const Binary>) = 0;
  /// What a saved plan and its binary have to fit of this device.
  virtual std::vector<Fit> fits() const = 0;
  /// What makes binaries for this device; null in the library that only runs, and where nothing is launched.
  const Toolchain* toolchain() const { return toolchain_.get(); }
  /// Builds and loads; see Toolchain::build. Throws unsupported without a toolchain.
  std::unique_ptr<Module> load(const codegen::Source&, int threads = 0);
  /// The reservations of slots for cooperative launches, in this process.
  ResidencyLedger& residency() const { return *residency_; }
  /// Throws invalid_argument for an algorithm that the library does not propose.
  virtual std::unique_ptr<Gemm> prepare_gemm(const GemmDesc&) = 0;
  /// No product of this device asks for more scratch.
  virtual std::int64_t most_gemm_scratch() const noexcept { return 0; }
  /// The bytes of b in the form that products of this device read fastest; 0: it has none that is worth
  /// making. Of b's extents, order and type alone; there is one for all matrices.
  virtual std::int64_t packed_gemm_bytes(const GemmDesc&) const noexcept { return 0; }
  /// Whether this product reads b faster in that form.
  virtual bool prefers_packed_gemm(const GemmDesc&) const noexcept { return false; }
  /// Whether every other product that reads this b gains by GemmDesc::backwards.
  virtual bool reads_backwards(const GemmDesc&) const noexcept { return false; }
  /// Makes that form of b, 64-byte aligned: once for all products of any number of rows.
  virtual Status pack_gemm(Queue&, const GemmDesc&, [[maybe_unused]] const void* b,
                           [[maybe_unused]] void* to) noexcept {
    return {ErrorCode::internal, "the device packs no operands"};
  }
  /// The library of its products, by version: "cuBLASLt 130100"; empty where
  /// it does not matter which.
  virtual std::string gemm_library() const { return {}; }
  /// `arguments` matches the kernel's params one to one. A zero grid launches nothing and succeeds.
  virtual Status launch(Queue&, const Function&, Dim3 grid, const Argument* arguments,
                        int count) noexcept = 0;
  /// Whether launch takes these but for their addresses: asked once, of what is launched many times.
  virtual Status check_launch(const Function&, Dim3, const Argument*, int) const noexcept { return {}; }
  /// As launch, for what check_launch took. `values[i]` is where the value of argument i lies in `arguments`:
  /// its address, or its extent.
  virtual Status launch_checked(Queue& queue, const Function& function, Dim3 grid, const Argument* arguments,
                                [[maybe_unused]] void* const* values, int count) noexcept {
    return launch(queue, function, grid, arguments, count);
  }

  /// Between the two, calls of this thread need not make the device current one by one. Not nested. Leave is
  /// called after an enter that succeeded, and reports failures of the calls that came to light late.
  virtual Status enter() noexcept { return {}; }
  virtual Status leave() noexcept { return {}; }

  /// What is enqueued to the queue from now on starts after the work before the event's last record.
  virtual Status wait(Queue&, const Event&) noexcept { return {}; }
  /// Whether the work before the event's last record is done; true for one that was never recorded.
  virtual bool passed(const Event&) noexcept { return true; }
  /// Waits for it. Failures are not reported: a destructor has nobody to report to.
  virtual void finish(const Event&) noexcept {}

  /// Timing. Where work is done when its call returns, as here, a mark is the host's clock. An event that is
  /// not `timed` is for wait and passed alone.
  virtual std::unique_ptr<Event> create_event(bool timed = true);
  virtual Status record(Queue&, Event&) noexcept;
  /// The seconds between two recorded marks; waits for both.
  virtual Status elapsed(const Event& from, const Event& to, double& seconds) noexcept;
  virtual std::string_view clock() const noexcept { return "host clock"; }  ///< the clock that measures them
  /// Whether equal work takes equal times by that clock.
  virtual bool repeats_times() const noexcept { return false; }
  /// Algorithms of a GEMM that are worth a try; a library may propose fewer for one.
  virtual int gemm_algorithms() const noexcept { return 1; }
  /// Whether the queue is being captured, so that nothing enqueued to it runs now.
  virtual bool captures(Queue&) const noexcept { return false; }

  /// What `enqueue` gives to the queue is kept instead of run (a CUDA graph); null on a device without such.
  /// Throws what `enqueue` reports, and driver.
  virtual std::unique_ptr<CapturedWork> capture(Queue&, const std::function<Status()>& enqueue);

  /// An empty graph of work, to be launched as a whole; null on a device without such. Throws driver.
  virtual std::unique_ptr<DeviceGraph> create_graph();

  /// The counters of the checked emulated device; empty elsewhere.
  virtual std::vector<KernelCounts> counts() const { return {}; }
  virtual void reset_counts() {}

 protected:
  /// The ledger of a device that other Backends of the process have too.
  void share_residency(std::shared_ptr<ResidencyLedger> ledger) { residency_ = std::move(ledger); }

 private:
  std::shared_ptr<ResidencyLedger> residency_;
  const std::shared_ptr<const Toolchain> toolchain_;
};

}  // namespace fuse::runtime
