// A graph of work: what a run does, given to the device once and launched with one call (a CUDA graph).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <variant>

#include "runtime/device/backend.hpp"

namespace fuse::runtime {

struct KernelWork {
  const Function* function = nullptr;
  Dim3 grid{};
  const Argument* arguments = nullptr;  ///< one per parameter
  int count = 0;
};
struct GemmWork {
  const Gemm* gemm = nullptr;
  const void *a = nullptr, *b = nullptr;
  void *c = nullptr, *scratch = nullptr;
  const void* extra = nullptr;  ///< as in Gemm::run
};
struct CopyWork {
  void* to = nullptr;
  const void* from = nullptr;
  std::int64_t bytes = 0;
};
struct MemsetWork {
  void* to = nullptr;
  int byte = 0;
  std::int64_t bytes = 0;
};
using Work = std::variant<KernelWork, GemmWork, CopyWork, MemsetWork>;

/// Nodes are numbered from 0 in the order in which they are added. One launch in flight at a time, but
/// launches on one queue may follow one another; one thread at a time. It may be destroyed while a launch is
/// in flight.
class DeviceGraph {
 public:
  using Node = std::uint32_t;
  virtual ~DeviceGraph() = default;
  /// A node that starts when those of `after` have ended. Null addresses stand for what an update brings
  /// before the first launch. Throws driver, internal.
  virtual void add(const Work&, std::span<const Node> after) = 0;
  /// No node is added any more: the device gets the graph. Throws driver, out_of_memory.
  virtual void finish() = 0;

  /// The node's work from the next launch on: of the same kind, function, sizes and Gemm, with other
  /// addresses. Updates stand between the backend's enter and leave. `unsupported` where the device takes no
  /// such exchange: a graph made with the new addresses may still run.
  virtual Status update(Node, const Work&) noexcept = 0;
  virtual Status launch(Queue&) noexcept = 0;
};

}  // namespace fuse::runtime
