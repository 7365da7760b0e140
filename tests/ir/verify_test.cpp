// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/verify.hpp"

#include "ir_support.hpp"
#include "sample_graph.hpp"

using namespace fuse;
using namespace fuse::ir_test;

namespace {

/// x: f32[B, 4] and its negative, in a scope.
Maker small() {
  Maker m;
  const Dim B = m.dim("B");
  const NodeId x = m.input("x", {f32, {B, 4}});
  m.output("y", m.add(Op::neg, {x}, NoAttr{}, {}, m.scope("s"), m.location("m.cpp", 9)));
  return m;
}

template <class F>
std::string broken(F change) {
  Maker m = small();
  change(m.graph);
  return thrown([&] { verify(m.graph); });
}

}  // namespace

TEST_CASE("sound graphs pass", "[ir][verify]") {
  verify(small().graph);
  verify(every_op());
  verify(ir::Graph{});
}

TEST_CASE("an error is internal, or the user's when asked", "[ir][verify]") {
  Maker m = small();
  m.graph.nodes[1].operands = {1};
  const auto info_of = [&](ErrorKind kind) {
    try {
      verify(m.graph, kind);
    } catch (const Error& error) {
      return error.info();
    }
    return ErrorInfo{};
  };
  REQUIRE(info_of(ErrorKind::internal).kind == ErrorKind::internal);
  REQUIRE(info_of(ErrorKind::user).kind == ErrorKind::user);
  REQUIRE(info_of(ErrorKind::user).code == ErrorCode::cycle);
  REQUIRE(info_of(ErrorKind::user).location == SourceLocation("m.cpp", 9));
  REQUIRE(thrown([&] { verify(m.graph); }) ==
          "m.cpp:9: internal error: neg(f32[B, 4]): %1: operand %1 is used before it is defined\n"
          "  hint: operands stand before their users");
}

TEST_CASE("operands exist, before their users", "[ir][verify]") {
  REQUIRE(broken([](auto& g) { g.nodes[1].operands = {7}; }) ==
          "m.cpp:9: internal error: neg(): %1: operand %7 does not exist\n"
          "  hint: an operand is a node of the graph");
  REQUIRE(broken([](auto& g) {
            g.nodes[1].operands = {0, 0};
          }).find("%1: the op has 2 operands") != std::string::npos);
}

TEST_CASE("types and attributes follow the rules", "[ir][verify]") {
  REQUIRE(broken([](auto& g) {
            g.nodes[1].type.dtype = f64;
          }).find("%1: the result is stated as f64[B, 4]") != std::string::npos);
  REQUIRE(broken([](auto& g) {
            g.nodes[1].attr = AxisAttr{};
          }).find("%1: the attributes are those of another op") != std::string::npos);
  REQUIRE(broken([](auto& g) {
            g.nodes[0].attr = NoAttr{};
          }).find("%0: the attributes are those of another op") != std::string::npos);
}

TEST_CASE("names in a graph are unique and not empty", "[ir][verify]") {
  const auto named = [](auto& g, std::string name) {
    g.nodes.push_back({Op::parameter, NameAttr{std::move(name)}, {}, {f32, {}}, 0, 0});
  };
  REQUIRE(broken([&](auto& g) {
            named(g, "x");
          }).find("%x: the name 'x' is taken by another input or parameter") != std::string::npos);
  REQUIRE(broken([&](auto& g) { named(g, "B"); }).find("the name 'B' is taken by a dim") !=
          std::string::npos);
  REQUIRE(broken([&](auto& g) { named(g, ""); }).find("the name is empty") != std::string::npos);
  REQUIRE(
      broken([](auto& g) {
        g.outputs.push_back({"y", 0});
      }) ==
      "internal error: graph: the name 'y' is taken by another output\n  hint: name each output differently");
  REQUIRE(broken([](auto& g) { g.outputs[0].name.clear(); }).find("an output has no name") !=
          std::string::npos);
  REQUIRE(broken([](auto& g) { g.outputs[0].node = 2; }).find("output 'y' is %2, which does not exist") !=
          std::string::npos);
}

TEST_CASE("dims are declared with their ranges", "[ir][verify]") {
  REQUIRE(broken([](auto& g) { g.symbols.clear(); }).find("%x: dim 'B' is not declared in this graph") !=
          std::string::npos);
  REQUIRE(broken([](auto& g) {
            g.symbols[0].range.max = 5;
          }).find("%x: dim 'B' has another range in this graph") != std::string::npos);
  REQUIRE(broken([](auto& g) {
            g.symbols[0].range.min = -1;
          }).find("dim 'B' has range [-1, 2147483647] and hint 0") != std::string::npos);
  REQUIRE(broken([](auto& g) { g.symbols[0].name.clear(); }).find("a dim has no name") != std::string::npos);
  REQUIRE(broken([](auto& g) {
            g.symbols.push_back(g.symbols[0]);
          }).find("the name 'B' is taken by another dim") != std::string::npos);
  const Dim loop = Dim::index("i", 4), other = Dim::symbol("Q", {});
  REQUIRE(broken([&](auto& g) {
            g.nodes.push_back({Op::dim_size, DimAttr{loop}, {}, {i64, {}}, 0, 0});
          }).find("%2: dim 'i' is not declared in this graph") != std::string::npos);
  REQUIRE(
      broken([&](auto& g) {
        g.nodes.push_back({Op::slice, SliceAttr{{0, 0}, {other, 4}, {1, 1}}, {0}, {f32, {other, 4}}, 0, 0});
      }).find("%2: dim 'Q' is not declared in this graph") != std::string::npos);
}

TEST_CASE("scopes and locations are in range", "[ir][verify]") {
  REQUIRE(broken([](auto& g) { g.nodes[1].scope = 2; }).find("scope or location does not exist") !=
          std::string::npos);
  REQUIRE(broken([](auto& g) { g.nodes[0].location = 9; }).find("scope or location does not exist") !=
          std::string::npos);
  REQUIRE(broken([](auto& g) { g.scopes[1].parent = 1; }).find("scope 1 's' stands before its parent") !=
          std::string::npos);
  REQUIRE(broken([](auto& g) { g.scopes[1].name.clear(); }).find("scope 1 has no name") != std::string::npos);
  REQUIRE(broken([](auto& g) { g.scopes[1].location = 9; }).find("the location of scope 1 does not exist") !=
          std::string::npos);
  REQUIRE(broken([](auto& g) { g.scopes.clear(); }).find("scope 0 is not the root") != std::string::npos);
  REQUIRE(broken([](auto& g) { g.locations.clear(); }).find("location 0 is not the unknown location") !=
          std::string::npos);
}
