// One golden for each usual nest, static and symbolic; index types at the exact limit; the target's limits.
// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/usual_nests.hpp"
#include "schedule/schedule_support.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::Choices, schedule::Split;
using schedule::nest_of_blocks, schedule::nest_of_columns, schedule::nest_of_elements,
    schedule::nest_of_lanes, schedule::nest_of_shared_rows, schedule::nest_of_scans_by_threads,
    schedule::nest_of_scans_by_warps;

namespace {

Graph symbolic_sum(const std::vector<std::int64_t>& axes) {
  Graph g("sum");
  const Dim R = g.dim("R", {.min = 1, .max = 1 << 12, .hint = 64});
  const Dim C = g.dim("C", {.min = 0, .max = 1 << 14, .hint = 3000});
  return sum_graph({R, C}, axes, std::move(g));
}

/// Static and symbolic, one below the other.
std::string texts(const Graph& fixed, const Graph& symbolic, const Choices& choices) {
  std::string text;
  for (const Graph* g : {&fixed, &symbolic}) {
    const OneSegment one(*g);
    text += print(one.graph, one.make(choices));
  }
  return text;
}

DType index_of(const Graph& g, const Choices& choices) {
  return OneSegment(g).make(choices).kernels[0].index_type;
}

}  // namespace

TEST_CASE("schedule text of every usual nest", "[schedule]") {
  Graph symbolic("exp");
  const Dim B = symbolic.dim("B", {.min = 0, .max = 1 << 16, .hint = 64});
  check_golden("schedule/element.txt", texts(exp_graph({31, 33}), exp_graph({B, 33}, std::move(symbolic)),
                                             {.splits = nest_of_elements(256)}));
  check_golden("schedule/lanes.txt",
               texts(sum_graph({37, 100}, {1}), symbolic_sum({1}), {.splits = nest_of_lanes(128)}));
  check_golden("schedule/blocks.txt",
               texts(sum_graph({37, 5000}, {1}), symbolic_sum({1}), {.splits = nest_of_blocks(256)}));
  check_golden("schedule/columns.txt",
               texts(sum_graph({100, 70}, {0}), symbolic_sum({0}), {.splits = nest_of_columns(256)}));
  check_golden("schedule/split.txt", texts(sum_graph({2, 100000}, {1}), symbolic_sum({0, 1}),
                                           {.splits = nest_of_shared_rows(256, 8)}));
}

TEST_CASE("a split argmax leaves values and positions", "[schedule]") {
  Graph g("argmax");
  g.output("y", argmax(g.input("x", f32, {3, 100000}), 1));
  const OneSegment one(g);
  const schedule::Schedule s = one.make({.splits = nest_of_shared_rows(256, 4)});
  CHECK(s.scratch == std::vector<schedule::ScratchArray>{{f32, 12}, {i64, 12}});
  check_golden("schedule/split_argmax.txt", print(one.graph, s));
}

TEST_CASE("a scan of rows without elements launches no block", "[schedule]") {
  const auto grid = [](const std::vector<Dim>& dims, std::int64_t axis, const std::vector<Split>& splits) {
    Graph g("scan");
    g.output("y", cumulative_sum(g.input("x", f32, dims), axis));
    const OneSegment one(g);
    const Choices choices = one.defaults("h200");
    CHECK(choices.splits == splits);
    return one.make(choices).kernels[0].grid.to_string();
  };
  CHECK(grid({1000, 0}, 1, nest_of_scans_by_warps(128)) == "0");
  CHECK(grid({1000, 5}, 1, nest_of_scans_by_warps(128)) == "250");
  CHECK(grid({0, 1000}, 0, nest_of_scans_by_threads(256)) == "0");
  CHECK(grid({5, 1000}, 0, nest_of_scans_by_threads(256)) == "4");
}

TEST_CASE("make_schedule is pure", "[schedule]") {
  const OneSegment one(symbolic_sum({1}));
  for (const std::vector<Split>& splits :
       {nest_of_lanes(128), nest_of_blocks(128), nest_of_columns(128), nest_of_shared_rows(128, 3)}) {
    const Choices choices{.splits = splits};
    const schedule::Schedule first = one.make(choices), second = one.make(choices);
    CHECK(print(one.graph, first) == print(one.graph, second));
    CHECK(first.choices == second.choices);
    CHECK(first.choices.to_string() == choices.to_string());
  }
}

TEST_CASE("i32 only where every index is proven below 2^31", "[schedule]") {
  const Choices element{.splits = nest_of_elements(256)}, row{.splits = nest_of_blocks(256)};
  const std::int64_t limit = std::int64_t{1} << 31;
  // The answer changes once: where the last block's threads no longer fit.
  const auto last_i32 = [](const auto& type_at) {
    std::int64_t low = 1, high = std::int64_t{1} << 33;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (type_at(middle) == i32 ? low : high) = middle;
    }
    return low;
  };
  const std::int64_t fixed = last_i32([&](std::int64_t n) { return index_of(exp_graph({n}), element); });
  CHECK(fixed == limit - 256);
  CHECK(index_of(exp_graph({fixed}), element) == i32);
  CHECK(index_of(exp_graph({fixed + 1}), element) == i64);

  // A symbol counts with the largest value of its range.
  const std::int64_t symbolic = last_i32([&](std::int64_t n) {
    Graph g("exp");
    const Dim B = g.dim("B", {.min = 0, .max = n, .hint = 1});
    return index_of(exp_graph({B}, std::move(g)), element);
  });
  CHECK(symbolic == fixed);
  Graph g("exp");
  const Dim B = g.dim("B", {.min = 1, .max = 1 << 16}), T = g.dim("T", {.min = 1, .max = 1 << 16});
  CHECK(index_of(exp_graph({B, T}, std::move(g)), element) == i64);

  // A reduction's input counts, not its result.
  CHECK(index_of(sum_graph({1 << 10, 1 << 20}, {1}), row) == i32);
  CHECK(index_of(sum_graph({1 << 11, 1 << 20}, {1}), row) == i64);
  const std::int64_t reduced = last_i32([&](std::int64_t n) {
    return index_of(sum_graph({2, n}, {1}), row);
  });
  CHECK(reduced == limit / 2 - 1);
}

TEST_CASE("i64 where a value that is not stored has more elements than fit", "[schedule]") {
  Graph g("inner");
  const Tensor x = g.input("x", f32, {1 << 16}), y = g.input("y", f32, {1 << 16});
  const Tensor all = broadcast_to(reshape(x, {1 << 16, 1}), {1 << 16, 1 << 16}) * y;
  g.output("o", slice(slice(all, 0, 0, 2), 1, 0, 2));
  CHECK(index_of(g, {.splits = nest_of_elements(256)}) == i64);
}

TEST_CASE("i64 where the value of a dim expression, or a symbol in one, needs it", "[schedule]") {
  const Choices element{.splits = nest_of_elements(256)};
  const auto size_of_square = [&](std::int64_t most) {
    Graph g("size");
    const Dim B = g.dim("B", {.min = 1, .max = most});
    g.output("size", g.dim_size(B * B));
    return index_of(g, element);
  };
  CHECK(size_of_square(1 << 10) == i32);
  CHECK(size_of_square(1 << 20) == i64);
  Graph many("mean");
  const Dim N = many.dim("N", {.min = 1, .max = std::int64_t{1} << 40, .hint = 1000});
  many.output("mean", mean(many.input("x", f32, {N})));
  CHECK(index_of(many, element) == i64);  // the division by N
  Graph part("part");
  const Dim P = part.dim("P", {.min = 0, .max = std::int64_t{1} << 34, .hint = 1000});
  CHECK(index_of(exp_graph({P / 64}, std::move(part)), element) == i64);  // P is a parameter of the kernel
}
