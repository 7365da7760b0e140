// SPDX-License-Identifier: Apache-2.0
#include "runtime/explore/merge_options.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace fuse::runtime {
namespace {

double extent(const Dim& dim) { return static_cast<double>(dim.hint()); }

/// Multiplications of a GEMM at the hints.
double work_of(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph[id];
  const std::vector<Dim>& a = graph[node.operands[0]].type.dims;
  double work = extent(a[a.size() - (ir::attr<ir::MatmulAttr>(node).transpose_a ? 2 : 1)]);
  for (const Dim& dim : node.type.dims) work *= extent(dim);
  return work;
}

}  // namespace

void GroupSurvey::see(const ir::Asked& asked) {
  if (asked.question != ir::Question::merge || asked.is_part) return;
  const std::uint64_t key = ir::content_hash(asked.graph, asked.nodes);
  auto group =
      std::find_if(groups_.begin(), groups_.end(), [&](const GemmGroup& each) { return each.key == key; });
  if (group == groups_.end()) group = groups_.insert(group, {.key = key, .members = asked.nodes.size()});
  for (const ir::NodeId id : asked.nodes) group->work += work_of(asked.graph, id);
}

std::vector<GemmGroup> GroupSurvey::heaviest(int most, const std::vector<schedule::Answer>& answers) const {
  std::vector<GemmGroup> result = groups_;
  std::stable_sort(result.begin(), result.end(),
                   [](const GemmGroup& a, const GemmGroup& b) { return a.work > b.work; });
  if (std::cmp_greater(result.size(), most)) result.resize(static_cast<std::size_t>(most));
  for (GemmGroup& group : result) {
    for (const schedule::Answer& answer : answers) {
      if (answer.question != ir::Question::merge || answer.key != group.key) continue;
      (answer.yes ? group.merged : group.apart) = true;
    }
  }
  return result;
}

std::vector<std::size_t> chunk_sizes(const GemmGroup& group) {
  std::vector<std::size_t> result;
  if (group.merged) result.push_back(1);
  if (group.apart) result.push_back(group.members);
  for (std::size_t size = 2; size < group.members && size <= 16; size *= 2) result.push_back(size);
  if (!group.merged) result.push_back(1);  // the default may be chunks
  return result;
}

ir::Insist merged_in_chunks(std::uint64_t key, std::size_t size) {
  return [key, size, is_own = false](const ir::Asked& asked) mutable -> std::optional<bool> {
    if (asked.question != ir::Question::merge) return std::nullopt;
    // The parts of a group are asked about right after it.
    if (!asked.is_part) is_own = ir::content_hash(asked.graph, asked.nodes) == key;
    return is_own ? std::optional(asked.nodes.size() <= size) : std::nullopt;
  };
}

std::vector<schedule::Answer> differing_merges(const std::vector<schedule::Answer>& own,
                                               const std::vector<schedule::Answer>& usual,
                                               std::uint64_t key) {
  using Given = std::vector<std::pair<std::optional<std::uint32_t>, bool>>;
  const auto by_key = [](const std::vector<schedule::Answer>& answers) {
    std::map<std::uint64_t, Given> result;
    for (const schedule::Answer& each : answers) {
      if (each.question == ir::Question::merge) result[each.key].emplace_back(each.occurrence, each.yes);
    }
    return result;
  };
  std::map<std::uint64_t, Given> mine = by_key(own), known = by_key(usual);
  std::vector<schedule::Answer> result;
  for (const schedule::Answer& each : own) {
    if (each.question != ir::Question::merge) continue;
    if (each.key == key || mine[each.key] != known[each.key]) result.push_back(each);
  }
  return result;
}

}  // namespace fuse::runtime
