// SPDX-License-Identifier: Apache-2.0
#include "analysis/merge_graph.hpp"

#include <algorithm>
#include <set>

#include "analysis/dags.hpp"
#include "ir/sample_graph.hpp"
#include "support/catch.hpp"
#include "support/sanitized.hpp"

namespace fuse::analysis_test {
namespace {

using analysis::MergeGraph;

/// Sets by a label for each node, everything else computed anew for each question.
struct Plain {
  Operands dag;
  std::vector<NodeId> label;

  explicit Plain(Operands operands) : dag(std::move(operands)), label(dag.size()) {
    for (NodeId i = 0; i < label.size(); ++i) label[i] = i;
  }
  std::set<NodeId> members(NodeId a) const {
    std::set<NodeId> result;
    for (NodeId i = 0; i < label.size(); ++i) {
      if (label[i] == label[a]) result.insert(i);
    }
    return result;
  }
  /// Labels of sets that an edge enters from set a.
  std::set<NodeId> consumers(NodeId a) const {
    std::set<NodeId> result;
    for (NodeId i = 0; i < label.size(); ++i) {
      for (const NodeId operand : dag[i]) {
        if (label[operand] == label[a] && label[i] != label[a]) result.insert(label[i]);
      }
    }
    return result;
  }
  /// From a to b through `least` edges or more.
  bool path(NodeId a, NodeId b, bool direct) const {
    std::set<NodeId> seen;
    std::vector<NodeId> work;
    for (const NodeId c : consumers(a)) {
      if (c == label[b] && direct) return true;
      if (c != label[b]) work.push_back(c);
    }
    while (!work.empty()) {
      const NodeId at = work.back();
      work.pop_back();
      if (!seen.insert(at).second) continue;
      for (const NodeId c : consumers(at)) {
        if (c == label[b]) return true;
        work.push_back(c);
      }
    }
    return false;
  }
  bool would_cycle(NodeId a, NodeId b) const {
    return label[a] != label[b] && (path(a, b, false) || path(b, a, false));
  }
  void merge(NodeId a, NodeId b) {
    const NodeId from = label[b], to = label[a];
    for (NodeId& l : label) {
      if (l == from) l = to;
    }
  }
};

void check_alike(const MergeGraph& sets, const Plain& plain) {
  const auto size = static_cast<NodeId>(plain.label.size());
  std::vector<NodeId> position(size, size);
  const std::vector<NodeId> order = sets.topological();
  for (NodeId i = 0; i < order.size(); ++i) position[order[i]] = i;
  for (NodeId i = 0; i < size; ++i) {
    const std::vector<NodeId> members = sets.members(i);
    CHECK(std::set<NodeId>(members.begin(), members.end()) == plain.members(i));
    CHECK(members.size() == sets.member_count(i));
    CHECK(std::is_sorted(members.begin(), members.end()));
    REQUIRE(position[sets.find(i)] < size);
    std::set<NodeId> names;
    for (const NodeId label : plain.consumers(i)) names.insert(sets.find(label));
    const std::vector<NodeId> consumers = sets.consumers(i);
    CHECK(consumers == std::vector<NodeId>(names.begin(), names.end()));
    for (const NodeId consumer : consumers) {
      CHECK(position[sets.find(i)] < position[consumer]);
      const std::vector<NodeId> producers = sets.producers(consumer);
      CHECK(std::binary_search(producers.begin(), producers.end(), sets.find(i)));
    }
  }
  CHECK(sets.set_count() == order.size());
  CHECK(std::set<NodeId>(plain.label.begin(), plain.label.end()).size() == order.size());
}

TEST_CASE("Cycles are found exactly while sets of random DAGs grow", "[analysis][merge_graph]") {
  const std::uint64_t seed = 20260101;
  for (std::uint64_t trial = 0; trial < 120; ++trial) {
    INFO("seed " << seed << " trial " << trial);
    std::mt19937_64 random(seed + trial);
    const auto size = static_cast<NodeId>(2 + random() % 28);
    const Operands dag = random_dag(random, size, static_cast<NodeId>(1 + random() % 3),
                                    static_cast<NodeId>(1 + random() % size));
    MergeGraph sets(dag);
    Plain plain(dag);
    for (int action = 0; action < 60; ++action) {
      const auto a = static_cast<NodeId>(random() % size), b = static_cast<NodeId>(random() % size);
      INFO("action " << action << " on " << a << " and " << b);
      CHECK(sets.reaches(a, b) == (plain.label[a] != plain.label[b] && plain.path(a, b, true)));
      const bool cycle = plain.would_cycle(a, b);
      if (random() % 2) REQUIRE(sets.would_cycle(a, b) == cycle);
      if (random() % 2) REQUIRE(sets.would_cycle(b, a) == cycle);
      if (cycle) {
        if (random() % 8 == 0) CHECK_THROWS_AS(sets.merge(a, b), Error);
      } else if (random() % 2) {
        plain.merge(a, b);
        const NodeId name = sets.merge(a, b);
        CHECK(sets.find(a) == name);
        CHECK(sets.find(b) == name);
      }
    }
    check_alike(sets, plain);
  }
}

TEST_CASE("The topological order does not depend on how sets were merged", "[analysis][merge_graph]") {
  const Operands dag = transformer(3, 3, 2);
  MergeGraph one(dag), other(dag);
  std::vector<std::pair<NodeId, NodeId>> merged;
  for (NodeId node = 2; node < dag.size(); ++node) {
    const NodeId operand = dag[node][0];
    if (node % 3 == 0 || one.would_cycle(operand, node)) continue;
    one.merge(operand, node);
    merged.emplace_back(operand, node);
  }
  REQUIRE(merged.size() > 10);
  for (auto pair = merged.rbegin(); pair != merged.rend(); ++pair) {
    if (!other.would_cycle(pair->second, pair->first)) other.merge(pair->second, pair->first);
  }
  const auto as_members = [](const MergeGraph& sets) {
    std::vector<std::vector<NodeId>> result;
    for (const NodeId name : sets.topological()) result.push_back(sets.members(name));
    return result;
  };
  CHECK(as_members(one) == as_members(other));
}

TEST_CASE("Sets of an ir::Graph are made from its operands", "[analysis][merge_graph]") {
  const ir::Graph graph = ir_test::every_op();
  MergeGraph sets(graph);
  CHECK(sets.set_count() == graph.nodes.size());
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    for (const NodeId operand : graph[id].operands) CHECK(sets.reaches(operand, id));
  }
}

using Edges = std::vector<std::pair<NodeId, NodeId>>;

/// Merges along edges as a partition does, twice over all of them, while sets stay below a size.
std::uint64_t grow(const Operands& dag, std::size_t most, void (*arrange)(Edges&)) {
  Edges edges;
  for (NodeId node = 0; node < dag.size(); ++node) {
    for (const NodeId operand : dag[node]) edges.emplace_back(operand, node);
  }
  arrange(edges);
  MergeGraph sets(dag);
  std::size_t merges = 0;
  for (int pass = 0; pass < 2; ++pass) {
    for (const auto& [operand, node] : edges) {
      if (sets.same(operand, node)) continue;
      if (sets.member_count(operand) + sets.member_count(node) > most) continue;
      if (sets.would_cycle(operand, node)) continue;
      sets.merge(operand, node);
      ++merges;
    }
  }
  CHECK(merges > dag.size() / 10);
  return sets.visited();
}

TEST_CASE("The edges that searches look at grow with the graph, not faster", "[analysis][merge_graph]") {
  struct Family {
    const char* name;
    Operands (*make)(NodeId);
  };
  const Family families[] = {
      {"chain", [](NodeId n) { return chain(n); }},
      {"transformer", [](NodeId n) { return transformer(n / 35); }},
      {"dense skips", [](NodeId n) { return dense_skips(n, 16); }},
      {"nested skips", [](NodeId n) { return nested_skips(n); }},
      {"fan of 10,000", [](NodeId n) { return fan(n / 2, 1); }},
      {"random, near",
       [](NodeId n) {
         std::mt19937_64 random(7);
         return random_dag(random, n, 2, 50);
       }},
  };
  struct Order {
    const char* name;
    void (*arrange)(Edges&);
  };
  const Order orders[] = {
      {"first to last", [](Edges&) {}},
      {"last to first", [](Edges& edges) { std::reverse(edges.begin(), edges.end()); }},
      {"shuffled",
       [](Edges& edges) {
         std::mt19937_64 random(3);
         std::shuffle(edges.begin(), edges.end(), random);
       }},
      {"longest first",
       [](Edges& edges) {
         const auto length = [](const auto& edge) { return edge.second - edge.first; };
         std::stable_sort(edges.begin(), edges.end(),
                          [&](const auto& a, const auto& b) { return length(a) > length(b); });
       }},
  };
  const auto nodes = test::fewer(NodeId{2500});
  for (const Family& family : families) {
    for (const Order& order : orders) {
      for (const std::size_t most : {std::size_t{8}, std::size_t{1} << 30}) {
        const Operands small = family.make(nodes), large = family.make(8 * nodes);
        const auto ratio = [&](const Operands& dag) {
          return static_cast<double>(grow(dag, most, order.arrange)) / static_cast<double>(edge_count(dag));
        };
        const double at_small = ratio(small), at_large = ratio(large);
        INFO(family.name << ", " << order.name << ", sets of at most " << most << " nodes: " << at_small
                         << " edges looked at for an edge of the graph, then " << at_large);
        CHECK(at_large <= 25);
        CHECK(at_large <= 2 * at_small);
      }
    }
  }
}

}  // namespace
}  // namespace fuse::analysis_test
