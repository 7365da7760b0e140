// StreamOptions: how the kernels and GEMMs of a plan can be spread over streams, an epoch at a time (Astra,
// 4.5.3 to 4.5.5). A run is one super-epoch: epochs that are alike, such as those of each time step, are one
// variable, so that barriers are not needed to keep their number small. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compile/pipeline/pipeline.hpp"
#include "explore/epochs.hpp"
#include "plan/run_decision.hpp"
#include "runtime/explore/dispatch_order.hpp"
#include "target/target.hpp"

namespace fuse::runtime {

/// A kernel or GEMM by the nodes that it computes: the number of its steps depends on its loops.
using NodeList = std::vector<ir::NodeId>;
/// Which of them is on which stream; the cost model decides for the others.
using StreamOf = std::map<NodeList, std::uint8_t>;

/// Epochs that are alike.
struct ExploredEpoch {
  std::uint64_t key = 0;
  std::vector<int> levels{};                     ///< of each
  std::vector<std::vector<NodeList>> members{};  ///< of each, class by class
  std::vector<explore::Placement> options{};     ///< of the members of each; the first is empty: as by cost
  double seconds = 0;                            ///< an estimate, of all
};

struct StreamOptions {
  std::map<NodeList, int> levels{};     ///< of all kernels and GEMMs
  std::vector<ExploredEpoch> epochs{};  ///< by their first level
};

/// At most so many options of each epoch, on up to so many streams, for the epochs that take longest.
StreamOptions stream_options_of(const Compiled&, const Target&, int streams, int most_epochs,
                                int most_options);
/// Keeps the `most` epochs that take longest, in their order.
void keep_longest(StreamOptions&, int most);

/// PipelineOptions::place; empty where the cost model decides all of it.
std::function<schedule::RunDecision(const schedule::Plan&)> placing(const StreamOf&, DispatchOrder,
                                                                    ExecutionMode);

/// The regions of epochs: from the start of a run to the end of all steps through an epoch (4.7), which
/// depends on the levels of the steps.
class EpochTimes {
 public:
  EpochTimes() = default;
  explicit EpochTimes(const StreamOptions&);
  /// For each step of the plan, its level; -1: none.
  std::vector<int> levels_of(const schedule::Plan&) const;
  /// Adds the regions to those of a run. `ends`: when all steps of each level had ended, from its start.
  void add(const std::vector<double>& ends, std::map<std::string, double>& seconds) const;
  std::size_t levels() const { return count_; }

 private:
  std::map<NodeList, int> levels_{};
  std::map<std::string, std::vector<int>> regions_{};  // by the name of the epoch's variable
  std::size_t count_ = 0;
};

/// The name of an epoch's variable and region.
std::string epoch_name(std::uint64_t key);

}  // namespace fuse::runtime
