// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ir/graph/verify.hpp"
#include "ir/text/print.hpp"
#include "ir_support.hpp"
#include "sample_graph.hpp"
#include "support/sanitized.hpp"

using namespace fuse;
using namespace fuse::ir_test;

namespace {

/// Inputs first, as parsing numbers them; equality up to that order, to scopes without ops and to unused
/// lines.
std::string canonical(const ir::Graph& graph) {
  std::vector<NodeId> position(graph.nodes.size());
  NodeId next = 0;
  for (const bool given : {true, false}) {
    for (NodeId id = 0; id < graph.nodes.size(); ++id) {
      if (std::holds_alternative<NameAttr>(graph[id].attr) == given) position[id] = next++;
    }
  }
  std::vector<std::string> lines(graph.nodes.size());
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph[id];
    const SourceLocation& at = graph.location(node);
    std::string& line = lines[position[id]];
    line = fmt::format("{} {} {} '{}' {}:{}", to_string(node.op), to_string(node.type), node.attr.index(),
                       graph.scope_path(node.scope), at.file, at.line);
    for (const NodeId operand : node.operands) line += fmt::format(" %{}", position[operand]);
  }
  std::string text = graph.name;
  for (const Symbol& symbol : graph.symbols) {
    text += fmt::format("\n{} {} {} {}", symbol.name, symbol.range.min, symbol.range.max, symbol.range.hint);
  }
  for (const std::string& line : lines) text += '\n' + line;
  for (const Output& output : graph.outputs)
    text += fmt::format("\n{} %{}", output.name, position[output.node]);
  return text;
}

/// print and parse are each other's inverse; attributes are compared too.
void check_round_trip(const ir::Graph& graph) {
  verify(graph);
  const std::string text = print(graph);
  INFO(text);
  const ir::Graph parsed = parse(text, "sample.fuse");
  REQUIRE(print(parsed) == text);
  REQUIRE(canonical(parsed) == canonical(graph));
  std::vector<const Node*> nodes;
  for (const bool given : {true, false}) {
    for (const Node& node : graph.nodes) {
      if (std::holds_alternative<NameAttr>(node.attr) == given) nodes.push_back(&node);
    }
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) REQUIRE((parsed.nodes[i].attr == nodes[i]->attr));
}

}  // namespace

TEST_CASE("every op survives printing and parsing", "[ir][text]") {
  const ir::Graph graph = every_op();
  std::vector<bool> seen(op_count);
  for (const Node& node : graph.nodes) seen[static_cast<std::size_t>(node.op)] = true;
  for (std::size_t op = 0; op < seen.size(); ++op) {
    INFO(to_string(static_cast<Op>(op)));
    REQUIRE(seen[op]);
  }
  check_round_trip(graph);
}

TEST_CASE("constants survive exactly", "[ir][text]") {
  Maker m;
  const double tiny = std::numeric_limits<double>::denorm_min(),
               inf = std::numeric_limits<double>::infinity();
  for (const double value : {0.0, -0.0, 0.1, -1.5, tiny, -inf, inf, std::numeric_limits<double>::max(),
                             std::numeric_limits<double>::quiet_NaN()}) {
    m.add(Op::constant, {}, ConstantAttr{value, 0}, Type{f64, {}});
  }
  for (const float value : {0.1f, 1e-45f, 3.4028235e38f}) {
    m.add(Op::constant, {}, ConstantAttr{static_cast<double>(value), 0}, Type{f32, {2, 3}});
  }
  m.add(Op::constant, {}, ConstantAttr{65504, 0}, Type{f16, {}});
  m.add(Op::constant, {}, ConstantAttr{-std::ldexp(1.0, -24), 0}, Type{f16, {}});
  m.add(Op::constant, {}, ConstantAttr{std::ldexp(255.0, 120), 0}, Type{bf16, {}});
  for (const std::int64_t value : {std::numeric_limits<std::int64_t>::min(),
                                   std::numeric_limits<std::int64_t>::max(), std::int64_t{0}}) {
    m.add(Op::constant, {}, ConstantAttr{0, value}, Type{i64, {}});
  }
  m.add(Op::constant, {}, ConstantAttr{0, -2147483648}, Type{i32, {}});
  m.add(Op::constant, {}, ConstantAttr{0, 1}, Type{DType::boolean, {}});
  check_round_trip(m.graph);
}

TEST_CASE("names that are no identifiers are quoted", "[ir][text]") {
  Maker m;
  m.graph.name = "two words\n\"quoted\" \\ \x01";
  const Dim odd = m.dim("batch size", {.min = 1, .max = 3, .hint = 2}), plain = m.dim("B"), in = m.dim("in");
  const NodeId x = m.input("12", {f32, {4 * odd * plain, odd / 2 + in}});
  const NodeId y = m.input("\xc3\xa4 %1", {f32, {}});
  m.input("return", {f32, {}});
  const ScopeId scope = m.scope("a/b", m.scope("scope"), m.location("my file \"x\".cpp", 4294967295U));
  m.add(Op::neg, {x}, NoAttr{}, {}, scope, m.location("/a-b/c+d.cpp", 0));
  m.add(Op::neg, {y}, NoAttr{}, {}, scope, 0);
  m.output("y 1", 3);
  m.output("at", y);
  check_round_trip(m.graph);
}

TEST_CASE("inputs among other ops come first in the text", "[ir][text]") {
  Maker m;
  const NodeId one = m.add(Op::constant, {}, ConstantAttr{1, 0}, Type{f32, {4}});
  const NodeId x = m.input("x", {f32, {4}});
  const NodeId sum = m.add(Op::add, {x, one});
  const NodeId w = m.input("w", {f32, {4}}, Op::parameter);
  m.output("y", m.add(Op::mul, {sum, w}));
  check_round_trip(m.graph);
  REQUIRE(print(m.graph) == R"(graph @graph(%x: f32[4], param %w: f32[4]) -> (y: f32[4]) {
  %2 = constant {value = 0x1p+0} : f32[4]
  %3 = add %x, %2 : f32[4]
  %4 = mul %3, %w : f32[4]
  return y = %4
}
)");
}

TEST_CASE("inputs keep their scope and line", "[ir][text]") {
  Maker m;
  const ScopeId outer = m.scope("layer.0", 0, m.location("m.cpp", 3)), inner = m.scope("attention", outer);
  const LocationId line = m.location("m.cpp", 4);
  m.add(Op::parameter, {}, NameAttr{"w"}, Type{f32, {4}}, inner, line);
  m.add(Op::parameter, {}, NameAttr{"v"}, Type{f32, {4}}, inner, line);
  m.add(Op::input, {}, NameAttr{"x"}, Type{f32, {4}}, outer, 0);
  m.add(Op::neg, {0}, NoAttr{}, {}, inner, line);
  check_round_trip(m.graph);
  REQUIRE(parse(print(m.graph), "f").nodes[0].scope == parse(print(m.graph), "f").nodes[1].scope);
}

TEST_CASE("scopes that are opened again print as further blocks", "[ir][text]") {
  Maker m;
  const LocationId here = m.location("m.cpp", 1), there = m.location("m.cpp", 2);
  const ScopeId a = m.scope("a", 0, here), b = m.scope("b", a, here), c = m.scope("b", a, there);
  const NodeId x = m.input("x", {f32, {4}});
  for (const ScopeId scope : {a, b, a, b, c, ScopeId{0}, c, b}) {
    m.add(Op::neg, {x}, NoAttr{}, {}, scope, scope == b ? 0 : here);
  }
  check_round_trip(m.graph);
}

TEST_CASE("an empty graph has a text", "[ir][text]") {
  REQUIRE(print(ir::Graph{}) == "graph @graph() -> () {\n}\n");
  check_round_trip(ir::Graph{});
}

TEST_CASE("100,000 ops print and parse", "[ir][text]") {
  Maker m;
  const Dim B = m.dim("B", {.min = 1});
  NodeId last = m.input("x", {f32, {B, 1024}});
  ScopeId scope = 0;
  const int ops = test::fewer(100'000);
  for (int i = 1; i < ops; ++i) {
    if (i % 100 == 1) scope = m.scope("block." + std::to_string(i / 100), 0, 0);
    last = m.add(i % 2 ? Op::neg : Op::exp, {last}, NoAttr{}, {}, scope);
  }
  m.output("y", last);
  const std::string text = print(m.graph);
  const ir::Graph parsed = parse(text, "chain.fuse");
  REQUIRE(parsed.nodes.size() == static_cast<std::size_t>(ops));
  REQUIRE(parsed.scopes.size() == static_cast<std::size_t>(ops / 100 + 1));
  REQUIRE((print(parsed) == text));
}
