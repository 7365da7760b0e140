// Snapshot: copies of what one run read, and what the default makes of them. A candidate counts only where it
// makes the same of them. So no run of the caller's ever has the results of what was not checked, and nothing
// that a run overwrites is consumed twice. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/explore.hpp>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/evaluate.hpp"
#include "runtime/explore/variant.hpp"

namespace fuse::runtime {

/// Elements that the ops of a graph compute, and multiplications and additions of its matmuls.
double operations_of(const ir::Graph&, const DimValues&);

class Snapshot {
 public:
  /// Copies the inputs and parameters of a run, before it, and waits for the stream. Throws out_of_memory,
  /// driver.
  Snapshot(Variant& usual, const ir::Graph&, const DimValues&, Stream&, std::span<const BufferView>);

  /// Why the results of a candidate are not those of the default; empty: they are. With Bits::keep they have
  /// the same bits, else they may be off the exact ones as far as right results of the default's ops are.
  /// Runs on a stream of its own and waits for it. Throws what runs report.
  std::string check(Variant& candidate, Bits bits);

  /// The copies, on the host, by slot. Throws what a download reports.
  std::map<std::size_t, HostTensor> inputs() const;

 private:
  using Outputs = std::map<std::string, HostTensor>;
  /// What evaluations of the graph say of its outputs.
  struct Exact {
    std::map<std::string, HostTensor> values;           // f64
    std::map<std::string, std::vector<double>> errors;  // per element, how far right results may be off
    bool undecided = false;
  };

  Outputs outputs_of(Variant&);
  const Exact& exact();
  std::string difference(const Outputs& own, Bits bits);

  const ir::Graph& graph_;
  const DimValues& dims_;
  Variant& usual_;
  std::vector<Buffer> inputs_;  // by slot; empty for outputs
  std::mutex mutex_;
  std::optional<Outputs> expected_;
  std::optional<Exact> exact_;
};

}  // namespace fuse::runtime
