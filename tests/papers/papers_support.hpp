// The papers' graphs (tests/papers/*.fuse) and how they are cut. Values go by the names that the file gives
// them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <fuse/graph.hpp>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/access.hpp"
#include "passes/canonical_dims.hpp"
#include "schedule/fusion/partition.hpp"
#include "schedule/groups/group_graph.hpp"
#include "support/catch.hpp"
#include "support/paths.hpp"

namespace fuse::test {

using Groups = std::vector<std::vector<std::string>>;
using Numbers = std::vector<std::pair<std::string, std::string>>;

inline const schedule::GroupOptions layer_1{.layers = 1};
inline const schedule::GroupOptions layers_1_2{.layers = 3};
inline const schedule::GroupOptions layer_1_apollo{.rules = schedule::RuleSet::apollo, .layers = 1};
inline const schedule::GroupOptions apollo{.rules = schedule::RuleSet::apollo};

/// A graph as the file has it: no passes.
class PaperGraph {
 public:
  explicit PaperGraph(const std::string& name) {
    std::ifstream in(source_directory() / "tests" / "papers" / (name + ".fuse"));
    REQUIRE(in.is_open());
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    graph_ = ir::canonical_dims(ir_of(Graph::parse(text)));  // one form for extents known to be equal
    // The text numbers values; its names say which is which, in order.
    for (ir::NodeId id = 0; id < graph_.nodes.size(); ++id) {
      const auto* given = std::get_if<ir::NameAttr>(&graph_[id].attr);
      names_.push_back(given ? given->name : std::string());
    }
    std::size_t next = 0;
    const std::regex statement("%([A-Za-z0-9_]+) = ");
    for (std::sregex_iterator at(text.begin(), text.end(), statement), end; at != end; ++at) {
      while (!names_[next].empty()) ++next;
      names_[next] = (*at)[1];
    }
  }

  const ir::Graph& graph() const { return graph_; }
  const std::string& name(ir::NodeId id) const { return names_[id]; }
  ir::NodeId id(const std::string& name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    REQUIRE(found != names_.end());
    return static_cast<ir::NodeId>(found - names_.begin());
  }

  schedule::Grouping grouping(const schedule::GroupOptions& options) const {
    schedule::Grouping result = schedule::group(graph_, options, target_profile("h200"));
    schedule::verify(graph_, result, options, target_profile("h200"));
    return result;
  }
  schedule::Partition partition(const schedule::PartitionOptions& options) const {
    schedule::Partition result = schedule::partition(graph_, options, target_profile("h200"));
    schedule::verify(graph_, result);
    return result;
  }

 private:
  ir::Graph graph_;
  std::vector<std::string> names_;
};

inline Groups groups_of(const std::string& name, const schedule::GroupOptions& options) {
  const PaperGraph paper(name);
  Groups groups;
  for (const schedule::Group& group : paper.grouping(options).groups) {
    groups.emplace_back();
    for (const ir::NodeId id : group.nodes) groups.back().push_back(paper.name(id));
  }
  return groups;
}

inline std::size_t kernels_of(const std::string& name, const schedule::GroupOptions& options) {
  return PaperGraph(name).partition({.groups = options}).segments.size();
}

inline std::vector<std::string> roots_of(const std::string& name, schedule::Baseline baseline) {
  const PaperGraph paper(name);
  std::vector<std::string> roots;
  for (const schedule::Segment& segment : paper.partition({.baseline = baseline}).segments)
    roots.push_back(paper.name(segment.root));
  return roots;
}

/// Why the groups of two values are apart, once the rules have done what they can.
inline schedule::Verdict verdict_of(const std::string& name, const schedule::GroupOptions& options,
                                    const std::string& producer, const std::string& consumer) {
  const PaperGraph paper(name);
  const Target target = target_profile("h200");
  schedule::GroupGraph groups(paper.graph(), paper.grouping(options), options, target);
  const auto from = groups.find(paper.id(producer)), to = groups.find(paper.id(consumer));
  REQUIRE(from != to);
  return groups.judge(from, to, true);
}

}  // namespace fuse::test
