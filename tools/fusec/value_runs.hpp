// Runs of a graph that keep values which are no outputs: how bisect sees inside of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "check.hpp"
#include "inputs.hpp"
#include "pipeline.hpp"

namespace fuse::fusec {

class ValueRuns {
 public:
  ValueRuns(const ir::Graph& graph, const Inputs& inputs, const Device& device);

  /// What the outputs are computed of, inputs and parameters left out, in order.
  std::vector<ir::NodeId> values() const;
  /// Their values where they are outputs beside the graph's own, whose values come too. Throws what compiling
  /// and running throw.
  std::map<ir::NodeId, runtime::HostTensor> run(const std::vector<ir::NodeId>& nodes,
                                                const PipelineOptions& options) const;
  /// Against the reference, which is evaluated once.
  Verdict check(ir::NodeId node, const runtime::HostTensor& value);
  /// "%8 = log f32[4] at main.cpp:7"
  std::string describe(ir::NodeId node) const;

 private:
  const ir::Graph& graph_;
  const Inputs& inputs_;
  const Device& device_;
  const ir::Graph all_;  // every value is an output, by kept_name
  OutputChecker checker_;
};

}  // namespace fuse::fusec
