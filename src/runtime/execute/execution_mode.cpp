// Streams or a graph, where the caller leaves it open. SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/executable_impl.hpp"

namespace fuse {
namespace {

/// What host and device pay, in seconds. From what is published about Hopper GPUs (a plain launch 1.5 to 5
/// us, a node of a graph 0.6 to 1.3 us); not measured by us on a GPU yet.
struct ReplayCost {
  double launch = 2.5e-6;  ///< the cost of a step on a stream
  double node = 1.0e-6;    ///< the cost of a step in a graph
  double replay = 5.0e-6;  ///< the cost of launching a graph, besides its nodes
  /// The share of the run that must be saved: less is not worth a graph's making and keeping.
  double worth = 0.02;
};
constexpr ReplayCost cost;

bool pays(const Prepared::Impl& p) {
  const auto steps = static_cast<double>(p.commands.list.size());
  const double saved = steps * (cost.launch - cost.node) - cost.replay;
  return saved > 0 && saved > cost.worth * p.streams.seconds;
}

}  // namespace

ExecutionMode runtime::choose_mode(ExecutionMode asked, const Prepared::Impl& p) {
  if (asked != ExecutionMode::automatic) return asked;
  if (const ExecutionMode told = p.build->program->run.mode; told != ExecutionMode::automatic) return told;
  const bool has_graphs = p.executable->device.kind() == DeviceKind::cuda;
  return has_graphs && pays(p) ? ExecutionMode::graph : ExecutionMode::streams;
}

inline namespace v0 {

std::string_view to_string(ExecutionMode mode) {
  switch (mode) {
    case ExecutionMode::streams:
      return "streams";
    case ExecutionMode::graph:
      return "graph";
    case ExecutionMode::automatic:
      return "automatic";
  }
  return "?";
}

}  // namespace v0
}  // namespace fuse
