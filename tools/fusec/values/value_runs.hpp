// Runs of a graph that keep values which are no outputs: how bisect sees inside of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compile/pipeline/pipeline.hpp"
#include "fusec/values/check.hpp"
#include "fusec/values/inputs.hpp"

namespace fuse::fusec {

/// A value that is wrong, and the values that were outputs when it was.
struct WrongValue {
  ir::NodeId node = 0;
  std::vector<ir::NodeId> kept{};
  std::string verdict{};
};

class ValueRuns {
 public:
  /// Stands before the compiler, unknown to the reference: plants a wrong result. Keeps the nodes' numbers.
  using Rewrite = std::function<ir::Graph(const ir::Graph&)>;

  ValueRuns(const ir::Graph& graph, const Inputs& inputs, const Device& device, Rewrite rewrite = {});

  /// What the outputs are computed of, inputs and parameters left out, in order.
  std::vector<ir::NodeId> values() const;
  /// Their values where they are outputs beside the graph's own, whose values come too. Throws what compiling
  /// and running throw.
  std::map<ir::NodeId, runtime::HostTensor> run(const std::vector<ir::NodeId>& nodes,
                                                const PipelineOptions& options) const;
  /// Against the reference, which is evaluated once.
  Verdict check(ir::NodeId node, const runtime::HostTensor& value);
  /// The first of the values, in graph order, that is wrong; of the graph's outputs too.
  std::optional<WrongValue> first_wrong(const std::vector<ir::NodeId>& kept, const PipelineOptions& options);
  /// Where an output is wrong, what it is computed of is kept too. Values that are kept are not fused as
  /// before, which may hide the fault: then one at a time, until one is wrong. `now` is told what goes on.
  std::optional<WrongValue> first_wrong_of_all(const PipelineOptions& options,
                                               const std::function<void(std::string)>& now = {});
  /// "%8 = log f32[4] at main.cpp:7"
  std::string describe(ir::NodeId node) const;

 private:
  const ir::Graph& graph_;
  const Inputs& inputs_;
  const Device& device_;
  const Rewrite rewrite_;
  const ir::Graph all_;  // every value is an output, by kept_name
  OutputChecker checker_;
};

}  // namespace fuse::fusec
