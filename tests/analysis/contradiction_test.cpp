// Assumptions that cannot hold: a user error with the lines of what contradicts.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/facts_support.hpp"
#include "base/access.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

const std::string hint = "\n  hint: correct one of the assumptions, or the range of a dim";

std::string contradiction(const std::string& symbols, const std::string& assumptions) {
  return facts_error_of([&] {
    const Graph g = Graph::parse("graph @g(%x: f32[4]) -> (y: f32[4]) where " + symbols + " assuming " +
                                     assumptions + " { return y = %x }",
                                 "g.fuse");
    facts_of(g);
  });
}

}  // namespace

TEST_CASE("an assumption that cannot hold alone is refused where it is made", "[facts][contradiction]") {
  Graph g;
  const Dim B = g.dim("B", {.min = 1, .max = 7}), T = g.dim("T", {.min = 20, .max = 30});
  using Catch::Contains;
  CHECK_THROWS_WITH(g.assume(equal(0, 1)), Contains("assume(): 0 = 1 cannot hold: both are constants"));
  CHECK_THROWS_WITH(g.assume(divisible(B, 8)), Contains("8 divides B cannot hold: B is in [1, 7]"));
  CHECK_THROWS_WITH(g.assume(divisible(B, 0)), Contains("the divisor 0 is not 1 or more"));
  CHECK_THROWS_WITH(g.assume(equal(T, 2 * B)),
                    Contains("T = 2 * B cannot hold: T is in [20, 30], 2 * B is in [2, 14]"));
  CHECK_THROWS_WITH(g.assume(at_most(T, B)), Contains("T <= B cannot hold"));
  CHECK_THROWS_WITH(g.assume(equal(2 * B, 2 * T + 1)), Contains("cannot hold"));
  CHECK(ir_of(g).assumptions.empty());
  Graph other;
  CHECK_THROWS_WITH(other.assume(equal(B, 4)), Contains("dim 'B' was not declared in this graph"));
}

TEST_CASE("assumptions that contradict each other are named with their lines", "[facts][contradiction]") {
  CHECK(contradiction("A in [0, 100], B in [0, 100], C in [0, 100]",
                      "A = B at m.cpp:1, C <= 7 at m.cpp:2, 8 divides B at m.cpp:3, B <= 7 at m.cpp:4, "
                      "1 <= A at m.cpp:5") ==
        "contradiction: m.cpp:5: these cannot hold together: A = B (m.cpp:1); 8 divides B (m.cpp:3); "
        "B <= 7 (m.cpp:4); 1 <= A (m.cpp:5); A in [0, 100]; B in [0, 100]" +
            hint);
  CHECK(contradiction("A in [0, 100], B in [0, 100]", "A = B at m.cpp:1, A = B + 1 at m.cpp:2") ==
        "contradiction: m.cpp:2: these cannot hold together: A = B (m.cpp:1); A = B + 1 (m.cpp:2); "
        "A in [0, 100]; B in [0, 100]" +
            hint);
  CHECK(contradiction("A in [0, 100], B in [0, 100]", "A + 1 <= B at m.cpp:1, B + 1 <= A at m.cpp:2")
            .starts_with("contradiction: m.cpp:2: these cannot hold together: A + 1 <= B (m.cpp:1); "
                         "B + 1 <= A (m.cpp:2)"));
  CHECK(contradiction("B in [0, 100], K in [0, 100]", "8 divides B at m.cpp:1, B = 2 * K + 1 at m.cpp:2")
            .starts_with("contradiction: m.cpp:2"));
}

TEST_CASE("a product between two neighbouring numbers contradicts", "[facts][contradiction]") {
  CHECK(contradiction("A in [0, 100], B in [0, 100], S in [3, 3]", "S = 2 * A * B at m.cpp:1")
            .starts_with("contradiction: m.cpp:1: these cannot hold together: S = 2 * A * B (m.cpp:1)"));
  CHECK(contradiction("A in [0, 100], B in [0, 100], S in [3, 4]", "S = 2 * A * B at m.cpp:1") == "no error");
}

TEST_CASE("products above 2^63 contradict bounded dims", "[facts][contradiction]") {
  const std::string big = "[2147483647, 2147483647]";
  CHECK(contradiction("S in [0, 2147483647], A in " + big + ", B in " + big + ", C in " + big,
                      "A * B * C = S at m.cpp:1")
            .starts_with("contradiction: "));
  // Two steps, each of which fits.
  CHECK(contradiction("A in [1, 9], B in [1, 2147483647], C in [1, 2147483647], D in [1, 2147483647]",
                      "B = 1099511627776 * A at m.cpp:1")
            .starts_with("contradiction: "));
  CHECK(
      contradiction("A in [1, 2147483647], B in [1, 9000000000000000000], C in [1, 9000000000000000000]",
                    "B = 1099511627776 * A at m.cpp:1, C = 1099511627776 * B at m.cpp:2")
          .starts_with("contradiction: m.cpp:2: these cannot hold together: B = 1099511627776 * A (m.cpp:1); "
                       "C = 1099511627776 * B (m.cpp:2)"));
}

TEST_CASE("an op that needs what assumptions forbid is named", "[facts][contradiction]") {
  Graph g("g");
  const Dim B = g.dim("B", {.min = 0, .max = 100}), T = g.dim("T", {.min = 0, .max = 100});
  const Tensor x = g.input("x", f32, {B}), y = g.input("y", f32, {T});
  g.assume(at_most(B + 1, T));
  g.output("z", x + y);
  const std::string text = facts_error_of([&] { compile(g, Device::reference()); });
  INFO(text);
  CHECK(text.find("contradiction: contradiction_test.cpp:") == 0);
  CHECK(text.find("B + 1 <= T (contradiction_test.cpp:") != std::string::npos);
  CHECK(text.find(", which ") != std::string::npos);
}

TEST_CASE("the core of a long contradiction is short", "[facts][contradiction]") {
  std::string symbols = "d0 in [0, 100]", assumptions = "1 <= d0 at m.cpp:9999";
  for (int i = 1; i < 200; ++i) {
    symbols += ", d" + std::to_string(i) + " in [0, 100]";
    assumptions +=
        ", d" + std::to_string(i / 2) + " <= d" + std::to_string(i) + " at m.cpp:" + std::to_string(i);
  }
  const std::string text = contradiction(symbols, assumptions + ", d8 = 0 at m.cpp:10000");
  CHECK(text.find("1 <= d0 (m.cpp:9999); d0 <= d1 (m.cpp:1); d1 <= d2 (m.cpp:2); d2 <= d4 (m.cpp:4); "
                  "d4 <= d8 (m.cpp:8); d8 = 0 (m.cpp:10000); d0 in") != std::string::npos);
}

TEST_CASE("the range of a dim that an equation replaces holds for what replaces it",
          "[facts][contradiction]") {
  const auto refused = [](const std::string& symbols, const std::string& assumptions) {
    const std::string error = contradiction(symbols, assumptions);
    INFO(assumptions << ": " << error);
    REQUIRE((error == "no error" || error.starts_with("contradiction: ")));
    return error != "no error";
  };
  const std::string sum = "A in [0, 100], B in [0, 100], S in [20, 100]";
  CHECK(refused(sum, "S = A + B, 101 <= A + B"));
  CHECK_FALSE(refused(sum, "S = A + B, 100 <= A + B"));
  CHECK(refused(sum, "S = A + B, A + B <= 19"));
  CHECK_FALSE(refused(sum, "S = A + B, A + B <= 20"));
  CHECK(refused("A in [0, 100], S in [0, 100]", "S = A + 90, 11 <= A"));
  CHECK_FALSE(refused("A in [0, 100], S in [0, 100]", "S = A + 90, 10 <= A"));
}

TEST_CASE("of a divisor above its range a dim is 0", "[facts][contradiction]") {
  const std::string few = "S in [0, 7], T in [0, 100]";
  const Graph g = Graph::parse(
      "graph @g(%x: f32[S]) -> (y: f32[S]) where S in [0, 7] assuming 16 divides S { return y = %x }",
      "g.fuse");
  CHECK(facts_of(g).canonical(Dim::symbol("S", {0, 7})).is(0));
  CHECK(contradiction(few, "16 divides S, S = T, 1 <= T").starts_with("contradiction: "));
  CHECK(contradiction(few, "16 divides S, S = T") == "no error");
  CHECK(contradiction(few, "7 divides S, S = T, 1 <= T") == "no error");
}
