// Rows whose elements threads hold as they were loaded, two of 16 bits in a register.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/kernel_support.hpp"
#include "schedule/nest/usual_nests.hpp"
#include "schedule/schedule_support.hpp"
#include "stitch/rows_of_any_length.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::CachedValue;
using schedule::Choices;

namespace {

Graph normal(std::int64_t columns, DType dtype, std::int64_t rows = 4096) {
  Graph g("normal");
  const Tensor x = convert(g.input("x", dtype, {rows, columns}), f32);
  const Tensor centred = x - mean(x, {1}, {.keep_dims = true});
  g.output("y", convert(centred * rsqrt(mean(centred * centred, {1}, {.keep_dims = true}) + 1e-5), dtype));
  return g;
}

Graph soft(std::int64_t columns, DType dtype, std::int64_t rows = 4096) {
  Graph g("soft");
  g.output("y", softmax(g.input("x", dtype, {rows, columns})));
  return g;
}

schedule::PhaseSchedule phase_of(const Graph& g) {
  const Compiled made = compiled(g, "h200");
  REQUIRE(made.schedules.size() == 1);
  return made.schedules[0].phases[0];
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("long rows of 16 bits are cached packed, unless that repeats what is costly",
          "[stitch][schedule]") {
  const schedule::PhaseSchedule packed = phase_of(normal(16384, bf16));
  CHECK(packed.choices.packed);
  CHECK(packed.choices.block_threads() == 256);  // 64 elements each, in 32 registers
  CHECK(packed.cached == std::vector<CachedValue>{{0, 0, 2}});
  CHECK_FALSE(phase_of(normal(16384, f32)).choices.packed);  // as many registers
  CHECK_FALSE(phase_of(normal(2048, bf16)).choices.packed);  // many blocks have a slot as it is
  CHECK_FALSE(phase_of(soft(16384, bf16)).choices.packed);   // exponentials
  const Choices shared = phase_of(soft(131072, bf16, 512)).choices;
  CHECK(shared.packed);  // blocks of a cluster wait for each other: there is time for them
  CHECK(shared.cluster() > 1);
  // Two operands of 16 bits take as many registers as their sum.
  Graph two("two");
  const Tensor x = two.input("x", bf16, {4096, 16384}), z = two.input("z", bf16, {4096, 16384});
  const Tensor sum = convert(x, f32) + convert(z, f32);
  two.output("y", convert(sum - mean(sum, {1}, {.keep_dims = true}), bf16));
  CHECK_FALSE(phase_of(two).choices.packed);
}

TEST_CASE("behind each pass but the last, a text keeps packed what the next one needs",
          "[stitch][schedule]") {
  const auto text = [](bool packed) {
    const Compiled made = compiled(normal(1024, bf16), "h200");
    const Choices choices{.splits = schedule::nest_of_blocks(64, 8), .register_cache = 32, .packed = packed};
    const schedule::Schedule schedule =
        make_schedule(made.graph, made.partition.segments[0], {{choices}}, target_profile("h200"));
    return print(codegen::lower(made.graph, schedule, 0, "k").kernel);
  };
  CHECK(count(text(true), "keep_packed") == 2);
  CHECK(count(text(false), "keep_packed") == 0);
}

TEST_CASE("a value that a later pass loads is kept packed from there on", "[stitch][schedule]") {
  Graph g("late");
  const Tensor x = convert(g.input("x", bf16, {64, 1024}), f32);
  const Tensor z = convert(g.input("z", bf16, {64, 1024}), f32);
  const Tensor scale = mean(x, {1}, {.keep_dims = true});
  g.output("y", convert(x + z * mean(z * scale, {1}, {.keep_dims = true}), bf16));
  const Compiled made = compiled(g, "h200");
  REQUIRE(made.partition.segments.size() == 1);
  const Choices choices{.splits = schedule::nest_of_blocks(64, 8), .register_cache = 64, .packed = true};
  const schedule::Schedule schedule =
      make_schedule(made.graph, made.partition.segments[0], {{choices}}, target_profile("h200"));
  CHECK(schedule.phases[0].cached == std::vector<CachedValue>{{0, 0, 2}, {1, 1, 2}});
  const std::string text = print(codegen::lower(made.graph, schedule, 0, "k").kernel);
  INFO(text);
  CHECK(count(text, "keep_packed hx ") == 2);
  CHECK(count(text, "keep_packed hz ") == 1);
  CHECK(text.find("store hz[") < text.find("keep_packed hz "));
}

TEST_CASE("packed rows answer right, checked, in any order", "[stitch][emulated]") {
  std::vector<Graph> graphs;
  for (const DType dtype : {bf16, f16, f32}) {
    graphs.push_back(normal(96, dtype, 37));
    graphs.push_back(soft(100, dtype, 37));
  }
  std::uint64_t seed = 1;
  for (const Graph& g : graphs) {
    for (const int vector : {2, 4}) {
      std::vector<Choices> ways;
      for (std::vector<schedule::Split> splits :
           {schedule::nest_of_blocks(64, vector), schedule::nest_of_lanes(64, 32, vector),
            schedule::nest_of_shared_rows(64, 2, vector, schedule::Level::cluster)})
        ways.push_back({.splits = std::move(splits), .register_cache = 64, .packed = true});
      ways.push_back(ways.back());
      ways.back().splits = in_turns(ways.back().splits, 3);  // three clusters take the rows in turns
      ways.push_back(ways.back());
      ways.back().register_cache = 0;
      ways.back().packed = false;
      ways.back().shared_cache = 64 * vector;
      check_ways(g, ways, "tiny3", seed);
    }
  }
}

TEST_CASE("bytes of no whole register are not cached packed", "[stitch][schedule]") {
  const Compiled made = compiled(normal(1024, bf16), "h200");
  const Target target = target_profile("h200");
  const Choices choices{.splits = schedule::nest_of_blocks(64), .register_cache = 32, .packed = true};
  CHECK(thrown_by([&] {
          verify(made.graph, make_schedule(made.graph, made.partition.segments[0], {{choices}}, target),
                 target);
        }).find("packed needs vectors that fill registers") != std::string::npos);
}
