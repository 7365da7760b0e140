// SPDX-License-Identifier: Apache-2.0
#include "analysis/dependency.hpp"

#include <algorithm>

#include "analysis/influence.hpp"
#include "support/sanitized.hpp"

namespace fuse::analysis_test {
namespace {

using analysis::ElementRelation;
using analysis::Multiplicity;
using analysis::relation_within;
using namespace ir;  // NOLINT: tables of ops
using ir_test::Maker;

std::vector<NodeId> all_nodes(const ir::Graph& graph) {
  std::vector<NodeId> nodes;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) nodes.push_back(id);
  return nodes;
}

/// A path of one-operand ops from a new input.
struct Path {
  Maker m;
  std::vector<NodeId> nodes;
  explicit Path(std::vector<Dim> dims) { nodes.push_back(m.input("x", {f64, std::move(dims)})); }
  Path& then(Op op, Attr attr, std::optional<std::vector<Dim>> dims = {}) {
    std::optional<Type> type;
    if (dims) type = Type{f64, std::move(*dims)};
    nodes.push_back(m.add(op, {nodes.back()}, std::move(attr), std::move(type)));
    return *this;
  }
  std::string relation() const {
    const ElementRelation along = analysis::relation_along(m.graph, nodes);
    const ElementRelation within = relation_within(m.graph, nodes.front(), nodes.back(), nodes);
    CHECK(to_string(along) == to_string(within));
    return to_string(along);
  }
};

TEST_CASE("There is no relation along a path that is none", "[analysis][dependency]") {
  Maker m;
  const NodeId x = m.input("x", {f64, {4}}), y = m.input("y", {f64, {4}});
  const NodeId of_x = m.add(Op::exp, {x}), end = m.add(Op::neg, {of_x});
  const auto along = [&](std::vector<NodeId> path) {
    return to_string(analysis::relation_along(m.graph, path));
  };
  CHECK(along({x, of_x, end}) == "bijective (0 -> 0); one_to_one; (i0) -> (i0)");
  CHECK(along({y, of_x}) == along({x, end}));
  CHECK(along({y, of_x}).find("none") != std::string::npos);
}

TEST_CASE("Relations compose along a path, their maps by substitution", "[analysis][dependency]") {
  const DimsAttr first{{0}}, last{{1}}, swap{{1, 0}};
  CHECK(Path({4, 8}).then(Op::reduce_sum, last).then(Op::broadcast_in_dim, first, {{4, 8}}).relation() ==
        "bijective (0 -> 0), general (1 -> 1); general; (i0, i1) -> (i0, k0) for k0 in [0, 8)");
  CHECK(Path({4, 8}).then(Op::reduce_sum, last).then(Op::broadcast_in_dim, last, {{3, 4}}).relation() ==
        "injective (- -> 0), bijective (0 -> 1), surjective (1 -> -); general; (i0, i1) -> (i1, k0) for k0 "
        "in [0, 8)");
  CHECK(Path({4}).then(Op::broadcast_in_dim, first, {{4, 8}}).then(Op::reduce_sum, last).relation() ==
        "bijective (0 -> 0); one_to_one; (i0) -> (i0)");
  CHECK(Path({4, 8}).then(Op::transpose, swap).then(Op::transpose, swap).relation() ==
        "bijective (0 -> 0), bijective (1 -> 1); one_to_one; (i0, i1) -> (i0, i1)");
  CHECK(Path({4, 8}).then(Op::transpose, swap).then(Op::reduce_max, first).relation() ==
        "bijective (0 -> 0), surjective (1 -> -); many_to_one; (i0) -> (i0, k0) for k0 in [0, 8)");
  CHECK(Path({4, 8}).then(Op::reverse, last).then(Op::reverse, last).relation() ==
        "bijective (0 -> 0), bijective (1 -> 1); one_to_one; (i0, i1) -> (i0, i1)");
  CHECK(Path({4, 8}).then(Op::reshape, NoAttr{}, {{32}}).then(Op::reshape, NoAttr{}, {{4, 8}}).relation() ==
        "bijective (0 -> 0), bijective (1 -> 1); one_to_one; (i0, i1) -> (i0, i1)");
  CHECK(Path({9})
            .then(Op::slice, SliceAttr{{1}, {9}, {2}})
            .then(Op::slice, SliceAttr{{1}, {4}, {1}})
            .relation() == "general (0 -> 0); one_to_one; (i0) -> (2 * i0 + 3)");
  CHECK(
      Path({4, 8}).then(Op::exp, NoAttr{}).then(Op::reduce_sum, DimsAttr{{0, 1}}).relation() ==
      "surjective (0 -> -), surjective (1 -> -); many_to_one; () -> (k0, k1) for k0 in [0, 4), k1 in [0, 8)");
}

TEST_CASE("Symbolic extents compose by their forms", "[analysis][dependency]") {
  const DimRange range{.min = 1, .max = 1 << 20};
  const Dim B = Dim::symbol("B", range),
            T = Dim::symbol("i0", range);  // a symbol may be named as a variable is
  CHECK(Path({B, T})
            .then(Op::reduce_sum, DimsAttr{{1}})
            .then(Op::broadcast_in_dim, DimsAttr{{0}}, {{B, T}})
            .relation() ==
        "bijective (0 -> 0), general (1 -> 1); general; (i0, i1) -> (i0, k0) for k0 in [0, i0)");
  CHECK(
      Path({B, T, 8})
          .then(Op::reshape, NoAttr{}, {{B * T, 8}})
          .then(Op::reshape, NoAttr{}, {{B, T, 8}})
          .relation() ==
      "bijective (0 -> 0), bijective (1 -> 1), bijective (2 -> 2); one_to_one; (i0, i1, i2) -> (i0, i1, i2)");
  CHECK(Path({B, T, 12})
            .then(Op::reshape, NoAttr{}, {{B, T, 3, 4}})
            .then(Op::transpose, DimsAttr{{0, 2, 1, 3}})
            .relation() ==
        "bijective (0 -> 0), general (1 -> 1), general (2 -> 2), general (- -> 3); one_to_one; "
        "(i0, i1, i2, i3) -> (i0, i2, 4 * i1 + i3)");
}

TEST_CASE("Where paths meet their relations join", "[analysis][dependency]") {
  Maker m;
  const NodeId x = m.input("x", {f64, {4, 8}});
  const NodeId sum = m.add(Op::reduce_sum, {x}, DimsAttr{{1}});
  const NodeId wide = m.add(Op::broadcast_in_dim, {sum}, DimsAttr{{0}}, Type{f64, {4, 8}});
  const NodeId centred = m.add(Op::sub, {x, wide});
  const NodeId square = m.add(Op::mul, {centred, centred});
  const std::vector<NodeId> all = all_nodes(m.graph), direct = {centred};
  CHECK(to_string(relation_within(m.graph, x, centred, all)) ==
        "bijective (0 -> 0), general (1 -> 1); general; (i0, i1) -> (i0, i1); "
        "(i0, i1) -> (i0, k0) for k0 in [0, 8)");
  CHECK(to_string(relation_within(m.graph, x, square, direct)) ==
        "bijective (0 -> 0), bijective (1 -> 1); one_to_one; (i0, i1) -> (i0, i1)");
  CHECK(relation_within(m.graph, x, square, {}).multiplicity == Multiplicity::none);
  CHECK(relation_within(m.graph, square, x, all).multiplicity == Multiplicity::none);
  CHECK(relation_within(m.graph, sum, sum, all).bijective());
  const std::vector<NodeId> from_sum = {sum, wide, centred, square};
  const ElementRelation behind = relation_within(m.graph, sum, square, all);
  CHECK(to_string(behind) == to_string(analysis::relation_along(m.graph, from_sum)));
  CHECK(behind.multiplicity == Multiplicity::one_to_many);
  const NodeId other = m.input("other", {f64, {4, 8}});
  CHECK(relation_within(m.graph, other, m.add(Op::neg, {x}), all_nodes(m.graph)).multiplicity ==
        Multiplicity::none);
}

TEST_CASE("Random numbers depend on where they stand, whatever is computed before and behind them",
          "[analysis][dependency]") {
  Maker m;
  const NodeId seed = m.input("seed", {i64, {}}), offset = m.input("offset", {i64, {}});
  const NodeId drawn =
      m.add(Op::random_uniform, {m.add(Op::neg, {seed}), offset}, RandomAttr{3}, Type{f64, {4}});
  const NodeId last = m.add(Op::neg, {drawn});
  const std::string alone = to_string(analysis::element_relation(m.graph, drawn, 0));
  for (const NodeId end : {drawn, last}) {
    const ElementRelation relation = relation_within(m.graph, seed, end, all_nodes(m.graph));
    CHECK(relation.general());
    CHECK(to_string(relation) == alone);
  }
}

TEST_CASE("A long path keeps its relation small", "[analysis][dependency]") {
  Path same({4, 8}), reversed({9}), scanned({9});
  for (int i = 0; i < test::fewer(100'000, 25); ++i) same.then(Op::neg, NoAttr{});
  CHECK(same.relation() == "bijective (0 -> 0), bijective (1 -> 1); one_to_one; (i0, i1) -> (i0, i1)");
  for (int i = 0; i <= 2 * test::fewer(500); ++i) reversed.then(Op::reverse, DimsAttr{{0}});
  CHECK(reversed.relation() == "general (0 -> 0); one_to_one; (i0) -> (-i0 + 8)");
  for (int i = 0; i < test::fewer(1000); ++i) scanned.then(Op::cumulative_sum, ScanAttr{0});
  const ElementRelation widened = analysis::relation_along(scanned.m.graph, scanned.nodes);
  CHECK(widened.unknown());
  CHECK(widened.general());
  CHECK(widened.multiplicity == Multiplicity::general);
}

/// Values of random shape from random movements and sums of x, each weighted anew so that nothing cancels.
struct Grower {
  Maker m;
  std::mt19937_64 random;
  std::vector<NodeId> values;

  explicit Grower(std::uint64_t seed) : random(seed) { values.push_back(m.input("x", {f64, {2, 3}})); }
  std::size_t pick(std::size_t n) { return static_cast<std::size_t>(random() % n); }
  const std::vector<Dim>& dims(NodeId id) const { return m.graph[id].type.dims; }
  NodeId filler() { return m.add(Op::constant, {}, ConstantAttr{0.5, 0}, Type{f64, {}}); }

  void weigh(NodeId value) {
    const NodeId weight = m.input("w" + std::to_string(value), m.graph[value].type);
    values.push_back(m.add(Op::mul, {value, weight}));
  }

  void grow() {
    const NodeId x = values[values.size() - 1 - pick(std::min<std::size_t>(values.size(), 3))];
    const std::vector<Dim> dims = this->dims(x);
    const auto rank = static_cast<std::int64_t>(dims.size());
    const std::int64_t axis = rank ? static_cast<std::int64_t>(pick(dims.size())) : 0;
    const auto at = static_cast<std::size_t>(axis);
    const std::vector<Dim> zeros(dims.size(), Dim(0));
    const std::size_t choice = pick(9);
    if (rank == 0 || choice == 0) {
      std::vector<Dim> wide = dims;
      if (count_of(dims) > 12) return;
      const std::size_t position = pick(dims.size() + 1);
      wide.insert(wide.begin() + static_cast<std::ptrdiff_t>(position), Dim(2));
      DimsAttr attr;
      for (std::size_t i = 0; i < dims.size(); ++i)
        attr.dims.push_back(static_cast<std::int64_t>(i + (i >= position)));
      return weigh(m.add(Op::broadcast_in_dim, {x}, attr, Type{f64, wide}));
    }
    switch (choice) {
      case 1:
        return weigh(m.add(Op::reduce_sum, {x}, DimsAttr{{axis}}));
      case 2: {
        DimsAttr attr;
        for (std::int64_t i = 0; i < rank; ++i) attr.dims.push_back((i + 1) % rank);
        return weigh(m.add(Op::transpose, {x}, attr));
      }
      case 3: {
        const std::int64_t count = count_of(dims), by = count % 3 == 0 ? 3 : count % 2 == 0 ? 2 : 1;
        return weigh(m.add(Op::reshape, {x}, NoAttr{}, Type{f64, {by, count / by}}));
      }
      case 4: {
        if (dims[at].constant() < 2) return;
        SliceAttr attr{zeros, dims, std::vector<std::int64_t>(dims.size(), 1)};
        (pick(2) ? attr.starts[at] = 1 : attr.limits[at] = dims[at] - 1);
        return weigh(m.add(Op::slice, {x}, attr));
      }
      case 5:
        return weigh(m.add(Op::reverse, {x}, DimsAttr{{axis}}));
      case 6: {
        if (count_of(dims) > 12) return;
        PadAttr attr{zeros, zeros};
        (pick(2) ? attr.low : attr.high)[at] = 1;
        return weigh(m.add(Op::pad, {x, filler()}, attr));
      }
      case 7:
        if (count_of(dims) > 8) return;
        return weigh(m.add(Op::concat, {x, values[pick(values.size())]}, AxisAttr{axis}));
      case 8:
        return weigh(m.add(Op::cumulative_sum, {x}, ScanAttr{axis, false, pick(2) == 0}));
    }
  }
};

TEST_CASE("Composed relations of random graphs say what is read", "[analysis][dependency]") {
  const std::uint64_t seed = 20260103;
  int exact = 0, empty = 0;
  for (std::uint64_t trial = 0; trial < test::fewer<std::uint64_t>(150); ++trial) {
    INFO("seed " << seed << " trial " << trial);
    Grower g(seed + trial);
    const std::size_t steps = 2 + g.pick(5);
    for (std::size_t i = 0; i < steps; ++i) {
      try {
        g.grow();
      } catch (const Error&) {  // a concat of shapes that do not fit
      }
      if (g.values.size() > 2 && g.dims(g.values.back()) == g.dims(g.values[g.values.size() - 2]))
        g.weigh(g.m.add(Op::add, {g.values.back(), g.values[g.values.size() - 2]}));
    }
    g.m.output("y", g.values.back());
    const ElementRelation relation = relation_within(g.m.graph, 0, g.values.back(), all_nodes(g.m.graph));
    INFO(to_string(relation));
    std::vector<Pairs> runs = influence(g.m.graph, "x", 4, seed + trial);
    runs.erase(runs.begin(), runs.begin() + 2);  // weights of 0 and 1 hide and cancel
    const Pairs tried = all_of(runs), said = pairs_of(relation);
    if (relation.data_dependent()) {
      CHECK(std::includes(said.begin(), said.end(), tried.begin(), tried.end()));
    } else {
      CHECK(tried == said);
      ++exact;
    }
    empty += tried.empty();
    check_promises(relation, runs);
  }
  CHECK(exact > test::fewer(120));
  CHECK(empty < 15);
}

}  // namespace
}  // namespace fuse::analysis_test
