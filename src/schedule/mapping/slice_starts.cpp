// SPDX-License-Identifier: Apache-2.0
#include "schedule/mapping/slice_starts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "ir/graph/attr.hpp"

namespace fuse::schedule {
namespace {

/// "slice.0", or the next such name that no dim of the graph has.
class ArgumentNames {
 public:
  explicit ArgumentNames(const ir::Graph& graph) : graph_(graph) {}
  std::string next() {
    std::string name;
    do name = fmt::format("slice.{}", number_++);
    while (std::any_of(graph_.symbols.begin(), graph_.symbols.end(),
                       [&](const ir::Symbol& symbol) { return symbol.name == name; }));
    return name;
  }

 private:
  const ir::Graph& graph_;
  std::size_t number_ = 0;
};

}  // namespace

std::vector<SliceStart> starts_that_differ(const ir::Graph& graph,
                                           const std::vector<const CanonicalSegment*>& segments) {
  std::vector<SliceStart> result;
  std::map<std::vector<std::int64_t>, Dim> arguments;  // keyed by the starts in all segments
  ArgumentNames names(graph);
  for (const CanonicalSegment::Start& start : segments.front()->starts) {
    std::vector<std::int64_t> values;
    std::int64_t factor = 0;
    for (const CanonicalSegment* segment : segments) {
      const auto& slice = ir::attr<ir::SliceAttr>(graph[segment->nodes[start.node]]);
      values.push_back(slice.starts[start.axis].constant());
      factor = std::gcd(factor, values.back());
    }
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    if (*least == *most) continue;
    const DimRange range{.min = *least / factor, .max = *most / factor, .hint = values.front() / factor};
    auto found = arguments.find(values);
    if (found == arguments.end()) found = arguments.emplace(values, Dim::symbol(names.next(), range)).first;
    result.push_back({segments.front()->nodes[start.node], start.axis, found->second, factor});
  }
  return result;
}

std::int64_t argument_value(const ir::Graph& graph, const SliceStart& start, ir::NodeId slice) {
  return ir::attr<ir::SliceAttr>(graph[slice]).starts[start.axis].constant() / start.factor;
}

}  // namespace fuse::schedule
