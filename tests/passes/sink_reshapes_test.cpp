// Reshapes move after what a reduction's loops compute, where the dims allow it.
// SPDX-License-Identifier: Apache-2.0
#include "passes/sink_reshapes.hpp"

#include <algorithm>

#include "base/access.hpp"
#include "passes/common_subexpressions.hpp"
#include "passes/dead_code.hpp"
#include "passes/pass_support.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

ir::Graph sunk(const ir::Graph& graph) {
  return ir::dead_code(ir::common_subexpressions(ir::sink_reshapes(graph)));
}

/// The reshapes of what is computed: those of inputs and parameters are views.
std::size_t reshapes(const ir::Graph& graph) {
  return static_cast<std::size_t>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const ir::Node& node) {
        return node.op == ir::Op::reshape && !ir::is_given(graph[node.operands[0]]);
      }));
}

/// Checks that a graph means the same after the pass, which leaves `left` reshapes of what is computed.
ir::Graph check_sunk(const Graph& g, std::size_t left) {
  const ir::Graph after = sunk(ir_of(g));
  ir::verify(after);
  INFO(print(after));
  CHECK(reshapes(after) == left);
  const bool same = outputs_of(after, 3) == outputs_of(ir_of(g), 3);
  CHECK(same);
  CHECK(print(sunk(after)) == print(after));
  return after;
}

/// x less the maximum of its rows.
Tensor below_maximum(const Tensor& x) {
  return x - broadcast_to(max(x, {-1}, {.keep_dims = true}), x.dims());
}

}  // namespace

TEST_CASE("sink_reshapes does what its header shows", "[passes]") {
  const ir::Graph before = parse_snippet(header_snippet("sink_reshapes", "Before"));
  const ir::Graph after = parse_snippet(header_snippet("sink_reshapes", "After"));
  CHECK(print(sunk(before)) == print(after));
}

TEST_CASE("a reshape passes ops, with constants, broadcasts and values of other operands", "[passes]") {
  Graph g("ops");
  const Tensor e = below_maximum(g.input("x", f32, {12, 10}));
  const Tensor apart = reshape(e, {3, 4, 2, 5});
  const Tensor rows = broadcast_in_dim(g.input("rows", f32, {3, 4}), {3, 4, 2, 5}, {0, 1});
  const Tensor columns = broadcast_in_dim(g.input("columns", f32, {2, 5}), {3, 4, 2, 5}, {2, 3});
  const Tensor other = exp(g.input("other", f32, {3, 4, 2, 5}));
  g.output("y", tanh(apart) * 2 * rows + columns - other);
  const ir::Graph after = check_sunk(g, 2);  // of the result, and of `other`
  CHECK(after[after.outputs[0].node].op == ir::Op::reshape);
}

TEST_CASE("a broadcast along a part of what are dims together keeps a reshape of it", "[passes]") {
  Graph g("part");
  const Tensor apart = reshape(below_maximum(g.input("x", f32, {12, 10})), {3, 4, 10});
  g.output("y", apart * broadcast_in_dim(g.input("z", f32, {4}), {3, 4, 10}, {1}));
  const ir::Graph after = check_sunk(g, 2);  // of the result, and of the broadcast
  CHECK(after[after.outputs[0].node].op == ir::Op::reshape);
}

TEST_CASE("a reduction of dims that the reshape keeps apart reduces the old ones", "[passes]") {
  Graph g("rows");
  const Tensor x = g.input("x", f32, {3, 4, 10});
  const Tensor flat = reshape(below_maximum(x), {12, 10});
  g.output("y", flat / broadcast_to(sum(flat, {1}, {.keep_dims = true}), {12, 10}));
  const ir::Graph after = check_sunk(g, 1);
  for (const ir::Node& node : after.nodes) {
    if (node.op == ir::Op::reduce_sum) CHECK(after[node.operands[0]].type.dims.size() == 3);
  }
}

TEST_CASE("a reduction of a part of a dim, or for a position, stays after the reshape", "[passes]") {
  Graph g("part");
  const Tensor e = below_maximum(g.input("x", f32, {4, 10}));
  g.output("sums", sum(reshape(e, {4, 2, 5}), {2}));
  g.output("positions", argmax(reshape(e, {2, 2, 10}), 2));
  check_sunk(g, 2);
}

TEST_CASE("a position among dims that the reshape joins is searched behind it", "[passes]") {
  Graph g("joined");
  g.output("position", argmax(reshape(below_maximum(g.input("x", f32, {4, 2, 5})), {4, 10}), 1));
  check_sunk(g, 1);
}

TEST_CASE("values of reductions with other loops meet where they did", "[passes]") {
  Graph g("two");
  const Tensor a = below_maximum(g.input("a", f32, {4, 10}));
  const Tensor b = below_maximum(g.input("b", f32, {8, 5}));
  const Tensor both = reshape(a, {8, 5}) * b;
  g.output("y", both);
  const ir::Graph after = check_sunk(g, 1);
  CHECK(after[after.outputs[0].node].op == ir::Op::mul);
}

TEST_CASE("a reshape of what no reduction made stays", "[passes]") {
  Graph g("alone");
  g.output("y", exp(reshape(tanh(g.input("x", f32, {12, 10})), {3, 4, 10})));
  CHECK(print(sunk(ir_of(g))) == print(ir_of(g)));
}

TEST_CASE("dims of unknown extents match by their products", "[passes]") {
  Graph g("symbols");
  const Dim a = g.dim("A", {.min = 1, .max = 64}), b = g.dim("B", {.min = 1, .max = 64}),
            n = g.dim("N", {.min = 1, .max = 512});
  const Tensor e = below_maximum(g.input("x", f32, {a * b, n}));
  g.output("split", exp(reshape(e, {a, b, n})));
  const Tensor f = below_maximum(g.input("z", f32, {n, a, b}));
  g.output("merged", f * 2 + reshape(exp(reshape(f, {n * a, b})), {n, a, b}));
  const ir::Graph after = sunk(ir_of(g));
  ir::verify(after);
  INFO(print(after));
  CHECK(reshapes(after) == 1);
}

TEST_CASE("dims match whichever side ends first, by what is known of their extents", "[passes]") {
  for (const std::int64_t most : {8, 1 << 20}) {
    Graph g("sides");
    const auto dims = [&](const char* names, std::int64_t max) {
      std::vector<Dim> result;
      for (const char* name = names; *name != 0; ++name)
        result.push_back(g.dim(std::string(1, *name), {.min = 1, .max = max}));
      return result;
    };
    const std::vector<Dim> made = dims("ABC", 1 << 10), wanted = dims("PQR", most);
    g.output("y", sum(reshape(below_maximum(g.input("x", f32, made)), wanted), {0, 1, 2}));
    const ir::Graph after = sunk(ir_of(g));
    ir::verify(after);
    INFO(print(after));
    CHECK(reshapes(after) == 0);
  }
}

namespace {

using Extents = std::vector<std::int64_t>;

/// Twelve elements, reshaped.
struct Reshaped {
  Extents from, to;
  std::vector<Dim> from_dims{from.begin(), from.end()}, to_dims{to.begin(), to.end()};
  Graph graph{"runs"};
  Tensor made{}, y{};

  Reshaped(Extents before, Extents behind) : from(std::move(before)), to(std::move(behind)) {
    const Tensor x = graph.input("x", f32, from_dims);
    made = x - broadcast_in_dim(max(x, {0, 1, 2}), from_dims, {});
    y = reshape(made, to_dims);
  }

  /// Whether a run of dims begins at the axis: those before it have as many elements as some dims of `from`.
  bool begins(std::size_t axis) const {
    std::int64_t elements = 1, others = 1;
    for (std::size_t i = 0; i < axis; ++i) elements *= to[i];
    for (std::size_t i = 0; others < elements; ++i) others *= from[i];
    return others == elements;
  }

  /// Whether of each run all long dims are taken, or none.
  bool takes_runs(unsigned taken) const {
    std::optional<bool> all;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const bool now = (taken >> axis & 1u) != 0;
      if (begins(axis)) all.reset();
      if (to[axis] == 1) continue;
      if (all.value_or(now) != now) return false;
      all = now;
    }
    return true;
  }

  /// The graph with the result after the pass, which means the same.
  ir::Graph after(const Tensor& result) {
    graph.output("y", result);
    ir::Graph sunken = sunk(ir_of(graph));
    INFO(print(ir_of(graph)) << print(sunken));
    ir::verify(sunken);
    const bool same = outputs_of(sunken, 3) == outputs_of(ir_of(graph), 3);
    CHECK(same);
    return sunken;
  }
};

/// What the output is, but for a reshape.
const ir::Node& result_of(const ir::Graph& graph) {
  const ir::Node& last = graph[graph.outputs[0].node];
  return last.op == ir::Op::reshape ? graph[last.operands[0]] : last;
}

template <class F>
void each_reshape(F&& f) {
  std::vector<Extents> shapes;
  for (const std::int64_t a : {1, 2, 3, 4, 6, 12}) {
    for (const std::int64_t b : {1, 2, 3, 4, 6, 12}) {
      if (12 % (a * b) == 0) shapes.push_back({a, b, 12 / (a * b)});
    }
  }
  for (const Extents& from : shapes) {
    for (const Extents& to : shapes) {
      if (from != to) f(from, to);
    }
  }
}

Extents axes_in(unsigned mask) {
  Extents axes;
  for (std::int64_t axis = 0; axis < 3; ++axis) {
    if ((mask >> axis & 1u) != 0) axes.push_back(axis);
  }
  return axes;
}

}  // namespace

TEST_CASE("a reduction passes a reshape where it reduces whole runs of dims", "[passes]") {
  each_reshape([](const Extents& from, const Extents& to) {
    for (unsigned reduced = 1; reduced < 8; ++reduced) {
      Reshaped g(from, to);
      const Extents axes = axes_in(reduced);
      const ir::Graph after = g.after(sum(g.y, axes));
      const bool elements =
          std::any_of(axes.begin(), axes.end(), [&](std::int64_t a) { return to[std::size_t(a)] > 1; });
      INFO(print(ir_of(g.graph)) << print(after));
      const ir::Node& node = result_of(after);
      REQUIRE(node.op == ir::Op::reduce_sum);
      CHECK(after[node.operands[0]].type.dims ==
            (elements && g.takes_runs(reduced) ? g.from_dims : g.to_dims));
    }
  });
}

TEST_CASE("a broadcast passes a reshape where it repeats whole runs of dims", "[passes]") {
  each_reshape([](const Extents& from, const Extents& to) {
    for (std::size_t at = 0; at < 4; ++at) {
      for (const std::int64_t count : {1, 5}) {
        Reshaped g(from, to);
        std::vector<Dim> wide = g.to_dims;
        wide.insert(wide.begin() + static_cast<std::ptrdiff_t>(at), count);
        Extents axes;
        for (std::size_t i = 0; i < 3; ++i) axes.push_back(static_cast<std::int64_t>(i < at ? i : i + 1));
        const ir::Graph after = g.after(broadcast_in_dim(g.y, wide, axes));
        INFO(print(ir_of(g.graph)) << print(after));
        bool inside = false;  // a run has long dims on both sides
        for (std::size_t before = 0; before < at; ++before) {
          for (std::size_t behind = at; behind < 3; ++behind) {
            bool one = to[before] > 1 && to[behind] > 1;
            for (std::size_t i = before + 1; i <= behind; ++i) one = one && !g.begins(i);
            inside = inside || one;
          }
        }
        const ir::Node& node = result_of(after);
        REQUIRE(node.op == ir::Op::broadcast_in_dim);
        CHECK(after[node.operands[0]].type.dims == (count == 1 || !inside ? g.from_dims : g.to_dims));
      }
    }
  });
}

TEST_CASE("an operand that repeats whole runs of dims is repeated anew before a reshape", "[passes]") {
  each_reshape([](const Extents& from, const Extents& to) {
    for (unsigned read = 0; read < 8; ++read) {
      for (const bool units : {false, true}) {
        Reshaped g(from, to);
        std::vector<Dim> dims;
        for (std::size_t i = 0; i < 3; ++i) {
          if ((read >> i & 1u) != 0)
            dims.push_back(to[i]);
          else if (units)
            dims.push_back(1);
        }
        const Tensor z = g.graph.input("z", f32, dims);
        const ir::Graph after =
            g.after(g.y + broadcast_in_dim(z, g.to_dims, units ? Extents{0, 1, 2} : axes_in(read)));
        INFO(print(ir_of(g.graph)) << print(after));
        const ir::Node& node = result_of(after);
        REQUIRE(node.op == ir::Op::add);
        CHECK(node.type.dims == g.from_dims);
        CHECK((after[node.operands[1]].op == ir::Op::broadcast_in_dim) == g.takes_runs(read));
      }
    }
  });
}

TEST_CASE("a constant has no reshape", "[passes]") {
  Reshaped g({3, 4, 1}, {2, 6, 1});
  const ir::Graph after = g.after(g.y + g.graph.constant(f32, 2, g.to_dims));
  const ir::Node& node = result_of(after);
  REQUIRE(node.op == ir::Op::add);
  CHECK(after[node.operands[1]].op == ir::Op::constant);
}

TEST_CASE("reductions of values without elements keep their reshapes, wherever the 0 stands", "[passes]") {
  const std::vector<std::vector<Dim>> shapes = {{0, 2, 3}, {2, 0, 3}, {2, 3, 0}};
  for (const auto& from : shapes) {
    for (const auto& to : shapes) {
      Graph g("empty");
      const Tensor x = g.input("x", f32, from);
      const Tensor made = x - broadcast_in_dim(max(x, {0, 1, 2}), from, {});
      g.output("y", sum(reshape(made, to), {1}));
      check_sunk(g, from == to ? 0 : 1);
    }
  }
}

TEST_CASE("values without elements keep their reshapes", "[passes]") {
  Graph g("empty");
  const Tensor e = below_maximum(g.input("x", f32, {0, 10}));
  g.output("y", exp(reshape(e, {0, 5, 2})));
  const ir::Graph after = sunk(ir_of(g));
  ir::verify(after);
  CHECK(after.outputs[0].name == "y");
  CHECK(after[after.outputs[0].node].type.dims == std::vector<Dim>{0, 5, 2});
}
