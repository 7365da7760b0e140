// Rows of any length whose elements shared memory holds from pass to pass.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/kernel_support.hpp"
#include "schedule/nest/usual_nests.hpp"
#include "schedule/schedule_support.hpp"
#include "schedule/segments/vector_width.hpp"
#include "stitch/rows_of_any_length.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::CachedValue;
using schedule::Choices;

namespace {

/// Three passes, of two values that are loaded, one of them shifted.
Graph two_values(const Dim& n, Graph g = Graph("two_values"), DType dtype = f32) {
  const Tensor x = g.input("x", dtype, {300, n}), z = g.input("z", dtype, {300, n + 1});
  const Tensor both = exp(convert(x, f32) * 0.1) + convert(slice(z, 1, 1, n + 1), f32);
  const Tensor centred = both - mean(both, {1}, {.keep_dims = true});
  g.output("y", centred * rsqrt(mean(centred * centred, {1}, {.keep_dims = true}) + 1e-5));
  g.output("position", argmax(both, 1));
  return g;
}

schedule::PhaseSchedule schedule_of(const Graph& g, const char* profile = "h200") {
  const Compiled made = compiled(g, profile);
  REQUIRE(made.schedules.size() == 1);
  return made.schedules[0].phases[0];
}

}  // namespace

TEST_CASE("rows of any length lie in shared memory, as far as they fit", "[stitch][schedule]") {
  const schedule::PhaseSchedule any = schedule_of(any_softmax());
  CHECK(any.choices.register_cache == 0);
  CHECK(any.choices.shared_cache > 8192);
  CHECK(any.cached == std::vector<CachedValue>{{0, 0, 1}});  // x alone: exponentials are computed again
  CHECK(any.elements_per_thread == 0);
  // Less where there is less.
  CHECK(schedule_of(any_softmax(), "tiny3").choices.shared_cache < any.choices.shared_cache / 2);
  CHECK(schedule_of(any_softmax(bf16)).choices.shared_cache > 2 * any.choices.shared_cache - 1024);
  // Registers where they hold it, and nothing that only one pass loads.
  Graph known("known"), once("once");
  known.output("y", softmax(known.input("x", f32, {300, 4096})));
  CHECK(schedule_of(known).choices.shared_cache == 0);
  once.output("y", sum(exp(once.input("x", f32, {300, any_length(once)})), {1}));
  CHECK(schedule_of(once).choices.shared_cache == 0);
  // No longer than the longest row.
  Graph bounded("bounded");
  const Dim n = bounded.dim("N", {.min = 1, .max = 3000, .hint = 200});
  bounded.output("y", softmax(bounded.input("x", f32, {300, n})));
  const Choices& choices = schedule_of(bounded).choices;
  CHECK(choices.shared_cache > 0);
  CHECK(choices.shared_cache < 3000 + choices.block_threads());
}

TEST_CASE("a kernel that holds rows in shared memory", "[stitch][schedule]") {
  const Compiled made = compiled(any_softmax(), "tiny3");
  check_golden("kernel/shared_cache.txt", print(made.kernels.at(0)));
  const schedule::Schedule& schedule = made.schedules.at(0);
  CHECK(shared_bytes(made.graph, schedule.segment, schedule.choices) ==
        static_cast<std::int64_t>(made.source.kernels[0].shared_bytes));
}

TEST_CASE("what shared memory caches is read once", "[stitch][emulated]") {
  CHECK(row_loads(any_softmax(), "h200", 1000) == 1);
  const int cached = schedule_of(any_softmax(), "tiny3").choices.shared_cache;
  CHECK(row_loads(any_softmax(), "tiny3", cached) == 1);
  CHECK(row_loads(any_softmax(), "tiny3", 2 * cached) == 1.5);
}

TEST_CASE("rows in shared memory answer right, checked, in any order", "[stitch][emulated]") {
  Graph odd("odd"), even("even");
  Graph graphs[] = {two_values(101, std::move(odd)), two_values(96, std::move(even), bf16)};
  for (const Graph& g : graphs) {
    const Compiled made = compiled(g, "h200");
    REQUIRE(made.partition.segments.size() == 1);
    const int widest = schedule::widest_vector(made.graph, made.partition.segments[0].phases[0]);
    std::uint64_t seed = 1;
    for (const int vector : {1, widest}) {
      for (const int cached : {vector, 8 * vector, 40, 96, 104}) {
        for (const int blocks : {0, 7}) {
          std::vector<Choices> ways;
          for (std::vector<schedule::Split> splits :
               {schedule::nest_of_blocks(64, vector), schedule::nest_of_lanes(64, 32, vector),
                schedule::nest_of_lanes(64, 8, vector)}) {
            if (blocks > 0) splits = in_turns(std::move(splits), blocks);
            ways.push_back({.splits = std::move(splits), .shared_cache = cached});
          }
          check_ways(g, ways, "tiny2", seed);
        }
      }
    }
  }
}

TEST_CASE("shared memory caches rows of some nests alone", "[stitch][schedule]") {
  const Compiled made = compiled(any_softmax(), "h200");
  const Target target = target_profile("h200");
  const auto verified = [&](const Choices& choices) {
    return thrown_by([&] {
      verify(made.graph, make_schedule(made.graph, made.partition.segments[0], {{choices}}, target), target);
    });
  };
  const Choices good{.splits = schedule::nest_of_blocks(64), .shared_cache = 100};
  CHECK(verified(good) == "no error");
  Choices choices = good;
  choices.register_cache = 8;
  CHECK(verified(choices).find("100 elements of a row in shared memory") != std::string::npos);
  const Choices shared{.splits = schedule::nest_of_shared_rows(64, 2, 1, schedule::Level::cluster),
                       .shared_cache = 192};
  CHECK(verified(shared) == "no error");
  choices = shared;
  choices.shared_cache = 100;  // of 64 threads some would have none
  CHECK(verified(choices).find("100 elements of a row in shared memory") != std::string::npos);
  choices = shared;
  choices.splits = schedule::nest_of_shared_rows(64, 2);
  CHECK(verified(choices).find("192 elements of a row in shared memory") != std::string::npos);
  choices = good;
  choices.splits = schedule::nest_of_columns(64);  // a part of shared memory for each of the 32 rows
  CHECK(verified(choices) == "no error");
}
