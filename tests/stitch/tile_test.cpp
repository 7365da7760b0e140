// Transposes inside element-wise kernels go through shared memory, a tile at a time.
// SPDX-License-Identifier: Apache-2.0
#include "fuzz/judge/execute.hpp"
#include "kernel/kernel_support.hpp"
#include "schedule/mapping/schemes.hpp"
#include "schedule/nest/usual_nests.hpp"
#include "schedule/segments/transposed.hpp"
#include "stitch/stitch_support.hpp"
#include "support/stitch_cases.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::Choices;

namespace {

/// y = exp(x)^T + z, and its square.
Graph transposed_sum(DType dtype, const std::vector<Dim>& dims,
                     const std::vector<std::int64_t>& permutation) {
  Graph g("transposed_sum");
  std::vector<Dim> to;
  for (const std::int64_t dim : permutation) to.push_back(dims[static_cast<std::size_t>(dim)]);
  const Tensor y = transpose(exp(g.input("x", dtype, dims)), permutation) + g.input("z", dtype, to);
  g.output("y", y);
  g.output("square", y * y);
  return g;
}

bool in_tiles(const Graph& g) {
  const Compiled made = compiled(g, "h200");
  REQUIRE(made.schedules.size() == 1);
  return walks_tiles(made.schedules[0].phases[0].choices);
}

}  // namespace

TEST_CASE("what lies along another dim is read in tiles", "[stitch][schedule]") {
  CHECK(in_tiles(transposed_sum(f32, {100, 200}, {1, 0})));
  CHECK(in_tiles(transposed_sum(bf16, {8, 100, 64}, {0, 2, 1})));
  CHECK(in_tiles(transposed_sum(f32, {64, 100, 1, 40}, {3, 1, 2, 0})));
  Graph any("any");
  const Dim n = any.dim("N", {.min = 1, .max = 4096, .hint = 512});
  any.output("y", transpose(any.input("x", f32, {n, 64}), {1, 0}) * 2);
  CHECK(in_tiles(any));
  // The innermost dim stays, or a side is so short that most of a tile would be empty.
  CHECK_FALSE(in_tiles(transposed_sum(f32, {8, 100, 64}, {1, 0, 2})));
  CHECK(in_tiles(transposed_sum(f32, {100, 200, 1}, {1, 0, 2})));
  CHECK_FALSE(in_tiles(transposed_sum(f32, {100, 8}, {1, 0})));
  CHECK_FALSE(in_tiles(transposed_sum(f32, {8, 100}, {1, 0})));
}

TEST_CASE("lanes of a tile access four bytes where all values are smaller", "[stitch][schedule]") {
  const auto vector_of = [](DType dtype, std::int64_t columns) {
    const Compiled made = compiled(transposed_sum(dtype, {768, columns}, {1, 0}), "h200");
    REQUIRE(made.schedules.size() == 1);
    return made.schedules[0].phases[0].choices.to_string();
  };
  CHECK(vector_of(f32, 1024).find("vector") == std::string::npos);
  CHECK(vector_of(bf16, 1024).find("x:vector2") != std::string::npos);
  CHECK(vector_of(bf16, 1023).find("vector") == std::string::npos);
}

TEST_CASE("a tile's kernel", "[stitch][schedule]") {
  const Compiled made = compiled(transposed_sum(f32, {100, 200}, {1, 0}), "h200");
  check_golden("kernel/tile.txt", print(made.kernels.at(0)));
  CHECK(made.schedules[0].kernels[0].tiles.is(4 * 7));
  CHECK(schedule::schemes_text(made.graph, made.schedules[0]) == "regional %3, independent %5");
  CHECK(made.source.kernels[0].shared_bytes == 4 * 32 * 33);
}

TEST_CASE("of transposes along two dims, those along one are in tiles", "[stitch][schedule]") {
  Graph g("two_ways");
  const Tensor a = transpose(g.input("a", f32, {64, 64, 64}), {2, 1, 0}),
               b = transpose(g.input("b", f32, {64, 64, 64}), {0, 2, 1}),
               c = transpose(g.input("c", f32, {64, 64, 64}), {2, 1, 0});
  g.output("y", a + b + c);
  const Compiled made = compiled(g, "h200");
  REQUIRE(made.schedules.size() == 1);
  CHECK(walks_tiles(made.schedules[0].phases[0].choices));
  const auto tiles = static_cast<std::int64_t>(made.source.kernels[0].shared_bytes / (4 * 32 * 33));
  const auto values = schedule::transposed(made.graph, made.schedules[0].phases[0].computes);
  REQUIRE(values);
  CHECK(tiles == static_cast<std::int64_t>(values->nodes.size()));
  CHECK(values->nodes.size() < 3);
}

TEST_CASE("transposes move their floor", "[stitch][emulated]") {
  for (const DType dtype : {f32, bf16, f64}) {
    const Graph g = transposed_sum(dtype, {512, 1024}, {1, 0});
    const runtime::Traffic traffic = large_traffic(g);
    INFO(to_string(dtype) << ": " << traffic.sectors() << " bytes in sectors, floor " << traffic.floor);
    CHECK(traffic.requested() == traffic.floor);
    CHECK(traffic.sectors() == traffic.floor);
  }
}

TEST_CASE("transposes answer right, checked, in any order; without their barrier they fault",
          "[stitch][emulated]") {
  const auto outcome = [](const Graph& g, const fuzz::RunOptions& options, const Choices& choices) {
    fuzz::Batch batch({case_of(g, options)}, {},
                      [&](const ir::Graph&, const schedule::Segment&, const Target&) {
                        return schedule::KernelChoices{{choices}};
                      });
    const fuzz::Outcome result = batch.run(0);
    INFO(result.text);
    return to_string(result.verdict);
  };
  const Graph sizes[] = {transposed_sum(f32, {37, 70}, {1, 0}), transposed_sum(f64, {3, 33, 64}, {0, 2, 1}),
                         transposed_sum(bf16, {40, 2, 35}, {2, 1, 0}), transposed_sum(f32, {32, 32}, {1, 0})};
  for (const Graph& g : sizes) {
    for (const Choices& choices :
         {Choices{.splits = schedule::nest_of_tiles(256)}, Choices{.splits = schedule::nest_of_tiles(96)},
          Choices{.splits = schedule::in_turns(schedule::nest_of_tiles(128), 2)},
          Choices{.splits = schedule::in_turns(schedule::nest_of_tiles(128), 100)}}) {
      for (std::uint64_t seed = 0; seed <= 2; ++seed) {
        const fuzz::RunOptions options{
            .profile = "tiny3", .checked = true, .threads = 2, .shuffle_seed = seed, .optimization = 0};
        CHECK(outcome(g, options, choices) == to_string(fuzz::Verdict::ok));
        fuzz::RunOptions without = options;
        without.fault = "barrier.0";
        CHECK(outcome(g, without, choices) == to_string(fuzz::Verdict::fault));
      }
    }
  }
}
