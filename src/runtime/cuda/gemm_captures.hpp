// The graphs that were captured of one GEMM, each with the addresses it was captured for: buffers that come
// back need no other capture. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "runtime/cuda/driver.hpp"
#include "runtime/device/device_graph.hpp"

namespace fuse::runtime {

/// Gives a captured or made graph back on every path.
class OwnedGraph {
 public:
  explicit OwnedGraph(const CudaContext& context) : context_(context) {}
  ~OwnedGraph() {
    if (graph) context_.driver().p_cuGraphDestroy(graph);
  }
  OwnedGraph(const OwnedGraph&) = delete;
  OwnedGraph& operator=(const OwnedGraph&) = delete;
  CUgraph graph = nullptr;

 private:
  const CudaContext& context_;
};

/// The captures of one node, all of one Gemm. Allocates nothing. An executable graph copies what it is given
/// of these, so they may be destroyed while it has it.
class GemmCaptures {
 public:
  /// Two buffers that alternate, each on its own, make four sets of addresses.
  static constexpr std::size_t most = 4;

  /// The graph captured for the work's addresses, or null.
  CUgraph use(const GemmWork& work) noexcept;
  /// Takes over what was captured for the work's addresses, which are not here yet. Returns the graph that it
  /// replaces, the one that was used longest ago, or null.
  CUgraph keep(const GemmWork& work, CUgraph captured) noexcept;
  void give_back(const Driver& driver) noexcept;

 private:
  struct Capture {
    GemmWork work;
    CUgraph graph = nullptr;
  };
  std::size_t index_of(const GemmWork& work) const noexcept;

  std::array<Capture, most> captures_{};  ///< the one used last first, those without a graph last
};

}  // namespace fuse::runtime
