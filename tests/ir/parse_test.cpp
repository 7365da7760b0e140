// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "ir/text/print.hpp"
#include "ir_support.hpp"

using namespace fuse;
using namespace fuse::ir_test;

namespace {

/// The text of a body in a graph with two inputs and a dim.
std::string in_body(const std::string& body, const std::string& returned = "%x") {
  return "graph @g(%x: f32[B, 4], param %w: bf16[4]) -> (y: f32[B, 4])\n    where B in [1, 8] {\n" + body +
         "\n  return y = " + returned + "\n}\n";
}

Node parsed_node(const std::string& body) { return parse(in_body(body), "f").nodes.at(2); }

double constant(const std::string& value, const std::string& dtype) {
  return attr<ConstantAttr>(parsed_node("%2 = constant {value = " + value + "} : " + dtype + "[]")).real;
}

}  // namespace

TEST_CASE("text by hand parses to a graph", "[ir][parse]") {
  const ir::Graph graph = parse(R"(# a comment
graph @"by hand"(%x: bf16[B, 2 * 4], param %w: f32[8])
  -> (y: f32[B, 8], "x again": bf16[B, 8])  # symbols stand behind their first use
  where B in [1, 16] hint 4 {
  %wide = convert %x : f32[B, 8]  %2 = broadcast_in_dim %w {dims = [1]} : f32[B, 8]
  scope scale at main.cpp:4 {
    %7 = mul %wide, %2 : f32[B, 8]
    %3b = neg %7 : f32[B, 8] at "other file.cpp":5
    %4 = neg %3b : f32[B, 8] at ?
  }
  return y = %7, "x again" = %x
}
)",
                                "f");
  REQUIRE(graph.name == "by hand");
  REQUIRE(graph.nodes.size() == 7);
  REQUIRE(graph.symbols.at(0).range == DimRange{1, 16, 4});
  REQUIRE(graph.nodes[0].op == Op::input);
  REQUIRE(graph.nodes[1].op == Op::parameter);
  REQUIRE(to_string(graph.nodes[0].type) == "bf16[B, 8]");
  REQUIRE(graph.nodes[4].operands == std::vector<NodeId>{2, 3});
  REQUIRE(graph.scope_path(graph.nodes[4].scope) == "scale");
  REQUIRE(graph.location(graph.nodes[4]) == SourceLocation("main.cpp", 4));
  REQUIRE(graph.location(graph.nodes[5]) == SourceLocation("other file.cpp", 5));
  REQUIRE(graph.location(graph.nodes[6]) == SourceLocation());
  REQUIRE(graph.outputs.at(1).name == "x again");
  REQUIRE(graph.outputs[1].node == 0);
}

TEST_CASE("numbers are rounded once to the type", "[ir][parse]") {
  REQUIRE(constant("0x1p-10", "f32") == 0.0009765625);
  REQUIRE(constant("0.1", "f64") == 0.1);
  REQUIRE(constant("0.1", "f32") == static_cast<double>(0.1F));
  REQUIRE(constant("1e-5", "f32") == static_cast<double>(1e-5F));
  REQUIRE(constant("-3", "f16") == -3);
  REQUIRE(constant("257", "bf16") == 256);
  // Through f64 first this would round to 0x1.000002p0.
  REQUIRE(constant("0x1.000001000000000001p0", "f32") == 0x1.000002p0);
  REQUIRE(constant("1.00048828125000000001", "f16") == 0x1.004p0);
  REQUIRE(constant("1.00390625000000000001", "bf16") == 0x1.02p0);
  REQUIRE(constant("0x1.002000000000000000001p0", "f16") == 0x1.004p0);
  REQUIRE(constant("0.0000000000000000000000e-99999999999999999999", "f16") == 0);
  // The largest and the smallest that the types have room for.
  REQUIRE(constant("65519.999999999999999999", "f16") == 65504);
  REQUIRE(constant("0x1.00000000000000000001p-25", "f16") == 0x1p-24);
  REQUIRE(constant("0x1.fefffffffffffffffffp127", "bf16") == 0x1.fep127);
  REQUIRE(constant("5e-41", "bf16") == 0x1p-133);
  REQUIRE(std::signbit(constant("-0.0", "f64")));
  REQUIRE(constant("-inf", "f16") == -std::numeric_limits<double>::infinity());
  REQUIRE(std::isnan(constant("nan", "bf16")));
}

TEST_CASE("values are known by how they are written", "[ir][parse]") {
  // A number, the same with zeros before it, one that no list has room for, a name of digits: five values.
  const ir::Graph graph = parse(R"(graph @g(%"7": f32[4]) -> (y: f32[4]) {
  %7 = exp %"7" : f32[4]
  %007 = log %7 : f32[4]
  %99999999999999999999999 = neg %007 : f32[4]
  %4000000 = abs %99999999999999999999999 : f32[4]
  %0 = add %4000000, %7 : f32[4]
  return y = %0
})",
                                "f");
  REQUIRE(graph.nodes.size() == 6);
  for (NodeId id = 1; id < 5; ++id) CHECK(graph[id].operands == std::vector<NodeId>{id - 1});
  CHECK(graph[5].operands == std::vector<NodeId>{4, 1});
}

TEST_CASE("dims are expressions", "[ir][parse]") {
  const Dim B = Dim::symbol("B", {.min = 1, .max = 8});
  const auto size = [](const std::string& dim) {
    return attr<DimAttr>(parsed_node("%2 = dim_size {dim = " + dim + "} : i64[]")).dim;
  };
  REQUIRE(size("1 + 2 * 3 - 4") == 3);
  REQUIRE(size("(1 + 2) * 3") == 9);
  REQUIRE(size("-7 / 2") == -4);
  REQUIRE(size("- -7 % 4") == 3);
  REQUIRE(size("2 * B * (B + 1)") == 2 * B * B + 2 * B);
  REQUIRE(size("(B + 1) / 4 - B % 3") == (B + 1) / 4 - B % 3);
  REQUIRE(size("B %4") == B % 4);
  REQUIRE(size("B%B") == 0);
  REQUIRE(size("9223372036854775807") == std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("attributes may stand in any order", "[ir][parse]") {
  const Node node = parsed_node("%2 = slice %w {strides = [1], limits = [3], starts = [1]} : bf16[2]");
  REQUIRE((attr<SliceAttr>(node) == SliceAttr{{1}, {3}, {1}}));
  const Node product =
      parsed_node("%2 = matmul %x, %x {transpose_b = true, transpose_a = false} : f32[B, B]");
  REQUIRE((attr<MatmulAttr>(product) == MatmulAttr{false, true}));
}
