// Assumptions in the text form: printed, parsed, kept by every pass, wrong ones refused.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/facts_support.hpp"
#include "base/access.hpp"
#include "ir/graph/verify.hpp"
#include "passes/common_subexpressions.hpp"
#include "passes/dead_code.hpp"
#include "passes/drop_broadcasts.hpp"
#include "passes/open_contractions.hpp"
#include "passes/split_concats.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

Graph sample() {
  Graph g("sample");
  const Dim S0 = g.dim("S0"), S2 = g.dim("odd name", {.min = 1, .max = 99}), S3 = g.dim("S3");
  const Tensor x = g.input("x", f32, {S0});
  g.assume(equal(S0, S2 * S3));
  g.assume(divisible(S3, 8));
  g.assume(at_most(S0, 4096));
  g.assume(at_least(S3, 16));
  g.output("y", reshape(x, {S2, S3}));
  return g;
}

std::string parse_error(const std::string& assuming) {
  return facts_error_of([&] {
    Graph::parse(
        "graph @g(%x: f32[4]) -> (y: f32[4]) where B in [0, 7] assuming " + assuming + " { return y = %x }",
        "g.fuse");
  });
}

}  // namespace

TEST_CASE("assumptions are printed with their lines and parse to the same", "[facts][text]") {
  const Graph g = sample();
  const std::string text = g.to_string();
  INFO(text);
  const std::string at = " at assume_text_test.cpp:";
  CHECK(text.find("assuming S0 = \"odd name\" * S3" + at) != std::string::npos);
  CHECK(text.find("8 divides S3" + at) != std::string::npos);
  CHECK(text.find("S0 <= 4096" + at) != std::string::npos);
  CHECK(text.find("16 <= S3" + at) != std::string::npos);
  const Graph again = Graph::parse(text);
  CHECK(again.to_string() == text);
  REQUIRE(ir_of(again).assumptions.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    const ir::Assumption &a = ir_of(g).assumptions[i], &b = ir_of(again).assumptions[i];
    CHECK(a.relation == b.relation);
    CHECK(ir_of(g).locations[a.location] == ir_of(again).locations[b.location]);
  }
  const Graph copy = g;
  CHECK(copy.to_string() == text);
}

TEST_CASE("every pass keeps the assumptions", "[facts][text]") {
  const ir::Graph before = ir_of(sample());
  for (const auto pass : {ir::dead_code, ir::common_subexpressions, ir::open_contractions, ir::split_concats,
                          ir::drop_broadcasts}) {
    const ir::Graph after = pass(before);
    ir::verify(after);
    REQUIRE(after.assumptions.size() == before.assumptions.size());
    for (std::size_t i = 0; i < before.assumptions.size(); ++i) {
      CHECK(after.assumptions[i].relation == before.assumptions[i].relation);
    }
  }
}

TEST_CASE("wrong assumptions in a text are refused with their location", "[facts][text]") {
  CHECK(parse_error("B = 3") == "no error");
  CHECK(parse_error("Q = 3").find("unknown dim Q") != std::string::npos);
  CHECK(parse_error("B < 3").find("expected '=' after '<'") != std::string::npos);
  CHECK(parse_error("B 3").find("expected '=', '<=' or 'divides'") != std::string::npos);
  CHECK(parse_error("B = 3,").find("expected an extent") != std::string::npos);
  CHECK(parse_error("8 divides B + 1, 9 <= B")
            .find("contradiction: g.fuse:1: column 81: 9 <= B cannot hold: B is in [0, 7]") == 0);
}

TEST_CASE("the verifier looks at assumptions", "[facts][text]") {
  ir::Graph graph = ir_of(sample());
  graph.assumptions[0].relation.left = Dim::symbol("stranger", {});
  CHECK_THROWS_WITH(ir::verify(graph), Catch::Contains("dim 'stranger' is not declared in this graph"));
  graph = ir_of(sample());
  graph.assumptions[0].relation.left = Dim::symbol("S0", {.min = 5, .max = 6});
  CHECK_THROWS_WITH(ir::verify(graph), Catch::Contains("dim 'S0' has another range in this graph"));
  graph = ir_of(sample());
  graph.assumptions[2].location = 77;
  CHECK_THROWS_WITH(ir::verify(graph), Catch::Contains("location that does not exist"));
  graph = ir_of(sample());
  graph.assumptions[2].relation = equal(1, 2);
  CHECK_THROWS_WITH(ir::verify(graph), Catch::Contains("1 = 2 cannot hold"));
}
