// Questions that a cost answers on the way from a graph to kernels, each about what would be made. Who asks
// gets the cost's answer, or another one that was written down (schedule/decisions/decisions.hpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

enum class Question : std::uint8_t {
  merge,        ///< GEMMs that share an operand, or have one shape, become one GEMM
  compose,      ///< two groups side by side become one (APOLLO's Layer III)
  epilogue,     ///< the op after a GEMM becomes part of it
  view,         ///< a value lies in the memory of another, so that no step copies it
  store,        ///< a value that several kernels need is stored, and not computed again by each
  stitch,       ///< segments become stages of one kernel
  cooperative,  ///< kernels become phases of one kernel
  wait,         ///< a kernel of several phases stays, though a step has to zero the counters of its barriers
  regional,     ///< kernels become phases of one kernel, whose blocks pass values on to themselves alone
  tile,         ///< such a kernel is one of halo tiles, and not of slices
  horizontal,   ///< kernels that read nothing of each other become ranges of the blocks of one
};
inline constexpr Question all_questions[] = {Question::merge,       Question::compose,   Question::epilogue,
                                             Question::view,        Question::store,     Question::stitch,
                                             Question::cooperative, Question::wait,      Question::regional,
                                             Question::tile,        Question::horizontal};
std::string_view to_string(Question);

struct Asked {
  Question question = Question::merge;
  const Graph& graph;
  std::vector<NodeId> nodes{};  ///< what would be made, in graph order
  NodeId about = 0;             ///< one of them
  bool by_cost = false;         ///< the cost's answer
  bool is_part = false;         ///< of what was asked before, with the answer no
};
/// Empty: the cost's answer stands, and the question is not reported.
using Decide = std::function<bool(const Asked&)>;
/// Answers some questions, and none where the answer is left to others.
using Insist = std::function<std::optional<bool>(const Asked&)>;

/// `nodes` is made only where the question is reported.
template <class Nodes>
bool decided(const Decide& decide, Question question, const Graph& graph, NodeId about, bool by_cost,
             const Nodes& nodes) {
  return decide ? decide({question, graph, nodes(), about, by_cost}) : by_cost;
}

/// A hash of these nodes, in this order: of ops, types, attributes and of who reads whom, but of no name.
/// Dims count by their symbols' ranges and hints.
std::uint64_t content_hash(const Graph&, const std::vector<NodeId>& nodes);

}  // namespace fuse::ir
