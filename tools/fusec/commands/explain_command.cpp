// fusec explain: why a graph runs as the kernels it does. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "fusec/commands.hpp"
#include "fusec/compiled_graph.hpp"
#include "schedule/fusion/fusion_report.hpp"

namespace fuse::fusec {
namespace {

using ir::NodeId;
using schedule::Segment;
using schedule::UnfusedEdge;

class Explanation {
 public:
  explicit Explanation(const CompiledGraph& compiled)
      : compiled_(compiled),
        graph_(compiled.stages.graph),
        partition_(compiled.stages.partition),
        edges_(unfused_edges(graph_, partition_, compiled.partition, compiled.target)) {}

  std::string whole() const {
    std::string text = fmt::format(
        "graph {} for {}\ngroups: {}  segments: {}  edges between segments: {}\n", compiled_.source.name,
        compiled_.target.name, partition_.grouping.groups.size(), partition_.segments.size(), edges_.size());
    for (const schedule::Refusal& refusal : partition_.refusals) {
      std::string at;
      for (const NodeId id : refusal.at) at += ' ' + graph_.value_name(id);
      text += fmt::format("group {} is split at{} ({})\n", refusal.group, at, to_string(refusal.reason));
    }
    for (const UnfusedEdge& edge : edges_) text += '\n' + describe(edge);
    const std::string views = print(graph_, partition_.views), updates = print(graph_, partition_.in_place);
    if (!views.empty()) text += "\nslices, concats and transposes in memory:\n" + views;
    if (!updates.empty()) text += "\noutputs in the memory of inputs:\n" + updates;
    return text;
  }

  std::string between(const std::string& a, const std::string& b) const {
    const std::vector<std::size_t> first = segments_of(a), second = segments_of(b);
    std::string text;
    for (const UnfusedEdge& edge : edges_) {
      const auto in = [](const std::vector<std::size_t>& segments, std::size_t segment) {
        return std::find(segments.begin(), segments.end(), segment) != segments.end();
      };
      if (in(first, edge.producer) && in(second, edge.consumer))
        text += (text.empty() ? "" : "\n") + describe(edge);
    }
    if (!text.empty()) return text;
    const auto common = std::find_first_of(first.begin(), first.end(), second.begin(), second.end());
    if (common != first.end()) return fmt::format("{} and {} are computed in segment {}\n", a, b, *common);
    return fmt::format("nothing of {} is stored for {}\n", a, b);
  }

 private:
  std::string describe(const UnfusedEdge& edge) const {
    const ir::Node& node = graph_[edge.value];
    std::string text =
        fmt::format("{} {} : {}  segment {} -> segment {}\n", graph_.value_name(edge.value),
                    to_string(node.op), ir::to_string(node.type), edge.producer, edge.consumer);
    const std::string location = to_string(graph_.location(node));
    const std::string scope = graph_.scope_path(node.scope);
    if (!location.empty() || !scope.empty()) {
      text += fmt::format("  of {}{}{}\n", scope, scope.empty() || location.empty() ? "" : " at ", location);
    }
    text += fmt::format("  {}", to_string(edge.reason));
    if (!edge.rule.empty()) text += fmt::format(", rule {}", edge.rule);
    for (const auto& [name, value] : edge.numbers) text += fmt::format(", {} = {}", name, value);
    text += fmt::format("\n  stores and loads {} bytes ({} here)\n", edge.bytes.to_string(),
                        compiled_.binding().value(edge.bytes));
    const std::string line = edge.assume.empty() ? "" : fmt::format(": {}", edge.assume);
    return text + fmt::format("  would change: {}{}\n", schedule::would_change(edge.reason), line);
  }

  /// Of "3", a segment, or "%5", a value: the segments that compute it.
  std::vector<std::size_t> segments_of(const std::string& text) const {
    std::size_t index = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
    if (error == std::errc() && end == text.data() + text.size()) {
      if (index < partition_.segments.size()) return {index};
      user_error(ErrorCode::invalid_argument,
                 fmt::format("--edge {}: there are {} segments", text, partition_.segments.size()));
    }
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < partition_.segments.size(); ++i) {
      for (const NodeId id : partition_.segments[i].nodes) {
        if (graph_.value_name(id) == text) found.push_back(i);
      }
    }
    if (found.empty()) {
      user_error(ErrorCode::unknown_name,
                 fmt::format("--edge {}: no segment computes a value of that name", text),
                 "a segment's number, or a value's name as fusec plan prints it: %5");
    }
    return found;
  }

  const CompiledGraph& compiled_;
  const ir::Graph& graph_;  // after the passes
  const schedule::Partition& partition_;
  const std::vector<UnfusedEdge> edges_;
};

}  // namespace

int execute(const ExplainOptions& options) {
  const CompiledGraph compiled = compile_graph(options.graph);
  const Explanation explanation(compiled);
  const std::vector<std::string>& edge = options.edge;
  fmt::print("{}{}", build_line(compiled),
             edge.empty() ? explanation.whole() : explanation.between(edge[0], edge[1]));
  return 0;
}

}  // namespace fuse::fusec
