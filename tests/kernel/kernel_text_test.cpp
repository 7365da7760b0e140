// The kernel IR of one kernel for each usual nest: tests/golden/kernel/*.txt.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/kernel_support.hpp"
#include "schedule/nest/usual_nests.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

TEST_CASE("kernel text of an element-wise segment", "[kernel]") {
  Graph g("elements");
  const Dim B = g.dim("B", {.min = 0, .max = 1 << 16, .hint = 64});
  const Tensor x = g.input("x", bf16, {B, 33}), w = g.parameter("w", f32, {33});
  const auto scope = g.scope("scale");
  g.output("y", x * convert(w, bf16));
  check_golden("kernel/element.txt", print(lowered(g, {.splits = schedule::nest_of_elements(256)})));
}

TEST_CASE("kernel text of a row a warp", "[kernel]") {
  Graph g("rows");
  const Dim B = g.dim("B", {.min = 1, .max = 1 << 16, .hint = 64});
  const Tensor x = g.input("x", f32, {B, 100});
  g.output("y", sum(x * x, {1}));
  check_golden("kernel/lanes.txt", print(lowered(g, {.splits = schedule::nest_of_lanes(128)})));
}

TEST_CASE("kernel text of a row a block", "[kernel]") {
  check_golden("kernel/blocks.txt",
               print(lowered(sum_graph({37, 5000}, {1}), {.splits = schedule::nest_of_blocks(256)})));
}

TEST_CASE("kernel text of a tile of columns", "[kernel]") {
  Graph g("columns");
  const Dim B = g.dim("B", {.min = 1, .max = 1 << 16, .hint = 64});
  g.output("y", max(g.input("x", f32, {B, 70}), {0}));
  check_golden("kernel/columns.txt", print(lowered(g, {.splits = schedule::nest_of_columns(256)})));
}

TEST_CASE("kernel text of both launches of a split", "[kernel]") {
  const Graph g = sum_graph({3, 100000}, {1});
  const schedule::Choices choices{.splits = schedule::nest_of_shared_rows(256, 4)};
  check_golden("kernel/split.txt", print(lowered(g, choices, 0)) + print(lowered(g, choices, 1)));
}

TEST_CASE("kernel text of a reduction over pairs", "[kernel]") {
  Graph g("pairs");
  g.output("y", argmax(g.input("x", f32, {7, 100}), 1));
  check_golden("kernel/argmax.txt", print(lowered(g, {.splits = schedule::nest_of_lanes(128)})));
}

TEST_CASE("kernel text of gather and concat", "[kernel]") {
  Graph g("moves");
  const Dim T = g.dim("T", {.min = 1, .max = 1000, .hint = 16});
  const Tensor table = g.parameter("table", f32, {50, 8}), tokens = g.input("tokens", i32, {T});
  const Tensor x = g.input("x", f32, {T, 4});
  g.output("y", concat({gather(table, tokens, 0), x}, 1));
  check_golden("kernel/moves.txt", print(lowered(g, {.splits = schedule::nest_of_elements(256)})));
}

TEST_CASE("a pad tests the dims that it makes longer, and one that adds nothing is its operand", "[kernel]") {
  const auto of = [](const std::vector<Dim>& low, const std::vector<Dim>& high) {
    Graph g("padded");
    const Tensor x = g.input("x", f32, {g.dim("B", {.min = 1, .max = 99}), 8});
    g.output("y", exp(pad(x, 3, low, high)));
    const std::string text = print(lowered(g, {.splits = schedule::nest_of_elements(256)}));
    std::size_t tests = 0;
    for (std::size_t at = 0; (at = text.find(": bool = i", at)) != std::string::npos; ++at) ++tests;
    INFO(text);
    CHECK((text.find("select") != std::string::npos) == (tests > 0));
    return tests;
  };
  CHECK(of({0, 0}, {0, 0}) == 0);
  CHECK(of({1, 0}, {0, 0}) == 1);
  CHECK(of({0, 0}, {0, 2}) == 1);
  CHECK(of({0, 1}, {0, 2}) == 2);
  CHECK(of({1, 2}, {1, 2}) == 4);
}

TEST_CASE("kernel text is the same every time", "[kernel]") {
  const auto text = [] {
    return print(lowered(sum_graph({37, 5000}, {1}), {.splits = schedule::nest_of_blocks(128)}));
  };
  CHECK(text() == text());
}
