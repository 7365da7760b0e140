// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "analysis/dags.hpp"
#include "analysis/dependency.hpp"
#include "ir/ir_support.hpp"

namespace fuse::analysis_test {
namespace {

using analysis::Dominators;
using analysis::Fork;
using ir_test::Maker;

/// Nodes on every path from a node to the root, by sets.
std::vector<std::vector<bool>> plain_dominators(const Operands& next, const std::vector<bool>& ends) {
  const std::size_t size = next.size();
  std::vector<std::vector<bool>> above(size, std::vector<bool>(size, true));
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t node = 0; node < size; ++node) {
      std::vector<bool> all(size, !ends[node] && !next[node].empty());
      for (const NodeId other : next[node]) {
        for (std::size_t i = 0; i < size; ++i) all[i] = all[i] && above[other][i];
      }
      all[node] = true;
      changed = changed || all != above[node];
      above[node] = all;
    }
  }
  return above;
}

void check_dominators(const Operands& next, const std::vector<bool>& ends, std::mt19937_64& random) {
  const Dominators tree = Dominators::of(next, ends);
  const auto above = plain_dominators(next, ends);
  const auto size = static_cast<NodeId>(next.size());
  const auto nearest = [&](const std::vector<bool>& common) {
    NodeId found = Dominators::root;
    for (NodeId i = 0; i < size; ++i) {
      if (common[i] && (found == Dominators::root || above[i][found])) found = i;
    }
    return found;
  };
  for (NodeId node = 0; node < size; ++node) {
    std::vector<bool> others = above[node];
    others[node] = false;
    CHECK(tree.immediate(node) == nearest(others));
    CHECK(tree.dominates(Dominators::root, node));
    CHECK_FALSE(tree.dominates(node, Dominators::root));
    for (NodeId other = 0; other < size; ++other) CHECK(tree.dominates(other, node) == above[node][other]);
  }
  for (int i = 0; i < 20; ++i) {
    std::vector<NodeId> nodes(1 + random() % 4);
    std::vector<bool> common(size, true);
    for (NodeId& node : nodes) {
      node = static_cast<NodeId>(random() % size);
      for (NodeId k = 0; k < size; ++k) common[k] = common[k] && above[node][k];
    }
    CHECK(tree.common(nodes) == nearest(common));
  }
}

TEST_CASE("Dominators of random DAGs are those found by sets", "[analysis][dominators]") {
  const std::uint64_t seed = 20260104;
  for (std::uint64_t trial = 0; trial < 100; ++trial) {
    INFO("seed " << seed << " trial " << trial);
    std::mt19937_64 random(seed + trial);
    const auto size = static_cast<NodeId>(1 + random() % 24);
    const Operands operands = random_dag(random, size, static_cast<NodeId>(1 + random() % 2), 6);
    std::vector<bool> ends(size);
    check_dominators(operands, ends, random);
    Operands users(size);
    for (NodeId node = 0; node < size; ++node) {
      for (const NodeId operand : operands[node]) users[operand].push_back(node);
    }
    for (NodeId node = 0; node < size; ++node) ends[node] = random() % 8 == 0;
    check_dominators(users, ends, random);
  }
}

TEST_CASE("An output is read from outside", "[analysis][dominators]") {
  Maker m;
  const NodeId x = m.input("x", {f32, {4}});
  const NodeId a = m.add(ir::Op::exp, {x}), b = m.add(ir::Op::neg, {a}), c = m.add(ir::Op::abs, {a});
  const NodeId join = m.add(ir::Op::add, {b, c}), last = m.add(ir::Op::mul, {join, join});
  m.output("y", last);
  const auto before = [&] { return analysis::post_dominators(m.graph); };
  CHECK(before().immediate(a) == join);
  CHECK(before().immediate(x) == a);
  CHECK(before().immediate(last) == Dominators::root);
  CHECK(analysis::dominators(m.graph).immediate(join) == a);
  CHECK(analysis::dominators(m.graph).immediate(x) == Dominators::root);
  CHECK(analysis::forks(m.graph, before()) == std::vector<Fork>{{a, {b, c}, join}});
  m.output("too", b);
  CHECK(before().immediate(a) == Dominators::root);
  CHECK(before().immediate(c) == join);
  CHECK(analysis::forks(m.graph, before()) == std::vector<Fork>{{a, {b, c}, Dominators::root}});
}

TEST_CASE("Dominators of a deep and of a wide graph", "[analysis][dominators]") {
  for (const Operands& dag : {chain(100000), fan(10000, 5), nested_skips(100000), dense_skips(20000, 16)}) {
    const Dominators tree = Dominators::of(dag, std::vector<bool>(dag.size()));
    const auto last = static_cast<NodeId>(dag.size() - 1);
    CHECK(tree.dominates(0, last));
    CHECK(tree.immediate(0) == Dominators::root);
    std::vector<NodeId> all(dag.size());
    std::iota(all.begin(), all.end(), NodeId{0});
    CHECK(tree.common(all) == 0);
  }
}

}  // namespace
}  // namespace fuse::analysis_test
