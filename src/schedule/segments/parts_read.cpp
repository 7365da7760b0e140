// SPDX-License-Identifier: Apache-2.0
#include "schedule/segments/parts_read.hpp"

#include <algorithm>
#include <unordered_map>

namespace fuse::schedule {
namespace {

using ir::NodeId;
using ir::Relation;

/// Whether the op reads no more elements of its first operand than its result has.
bool reads_part(const ir::Node& node, std::size_t operand) {
  const Relation relation = ir::info(node.op).relation;
  return operand == 0 &&
         (relation == Relation::slice || relation == Relation::gather || relation == Relation::dynamic_slice);
}

/// Calls `part(i, node)` for each node that reads a part of input i, and `all(i)` where one reads all of it.
/// A reshape reads what its readers read.
template <class Part, class All>
void each_read(const ir::Graph& graph, const std::vector<NodeId>& nodes, const std::vector<NodeId>& inputs,
               const Part& part, const All& all) {
  std::unordered_map<NodeId, std::size_t> input_of;
  std::unordered_map<NodeId, bool> reshape_is_read;
  for (std::size_t i = 0; i < inputs.size(); ++i) input_of.emplace(inputs[i], i);
  for (const NodeId id : nodes) {
    const ir::Node& node = graph[id];
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      const auto found = input_of.find(node.operands[k]);
      if (found == input_of.end()) continue;
      const std::size_t input = found->second;
      if (const auto reshape = reshape_is_read.find(node.operands[k]); reshape != reshape_is_read.end())
        reshape->second = true;
      if (reads_part(node, k)) {
        part(input, node);
      } else if (ir::info(node.op).relation == Relation::reshape) {
        input_of.emplace(id, input);
        reshape_is_read.emplace(id, false);
      } else {
        all(input);
      }
    }
  }
  for (const auto& [reshape, is_read] : reshape_is_read) {
    if (!is_read) all(input_of.at(reshape));
  }
}

}  // namespace

std::vector<Dim> elements_read(const ir::Graph& graph, const std::vector<NodeId>& nodes,
                               const std::vector<NodeId>& inputs) {
  std::vector<Dim> whole, read(inputs.size(), Dim(0));
  std::vector<bool> all(inputs.size());
  for (const NodeId input : inputs) whole.push_back(product(graph[input].type.dims));
  each_read(
      graph, nodes, inputs,
      [&](std::size_t i, const ir::Node& node) {
        if (!all[i]) read[i] = read[i] + product(node.type.dims);
      },
      [&](std::size_t i) { all[i] = true; });
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (all[i] || !proven_le(read[i], whole[i])) read[i] = whole[i];
  }
  return read;
}

double bytes_read(const ir::Graph& graph, const std::vector<NodeId>& nodes,
                  const std::vector<NodeId>& inputs) {
  const auto elements = [&](const ir::Node& node) {
    double count = 1;
    for (const Dim& dim : node.type.dims) count *= static_cast<double>(dim.hint());
    return count;
  };
  std::vector<double> read(inputs.size());
  std::vector<bool> all(inputs.size());
  each_read(
      graph, nodes, inputs, [&](std::size_t i, const ir::Node& node) { read[i] += elements(node); },
      [&](std::size_t i) { all[i] = true; });
  double bytes = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ir::Node& input = graph[inputs[i]];
    const double whole = elements(input);
    bytes += (all[i] ? whole : std::min(whole, read[i])) * static_cast<double>(size_of(input.type.dtype));
  }
  return bytes;
}

}  // namespace fuse::schedule
