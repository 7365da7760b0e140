// Random numbers of neighbours are drawn at once; others stay.
// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/vectorise_random.hpp"

#include <functional>

#include "ir/kernel/passes/hoist_invariants.hpp"
#include "kernel/kernel_support.hpp"
#include "schedule/nest/usual_nests.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using kernel::Index;
using kernel::Kernel;

namespace {

/// What a draw is made of, and the loop makes anew in each trip.
enum class Inside : std::uint8_t { nothing, seed, offset };

/// seed = 1; offset = 2; for v in [0, trips) unrolled { u = random seed, offset, element at;
/// store y[trips * t + v] = u } of a thread.
Kernel draw_loop(
    std::int64_t trips, const std::function<Index(const Index& t, const Index& v)>& at,
    Inside inside = Inside::nothing, const std::function<void(kernel::For&)>& change = [](kernel::For&) {}) {
  enum : kernel::VarId { seed, offset, u };
  Kernel k;
  k.name = "draw";
  k.block_threads = 32;
  k.index_type = i32;
  k.buffers = {{"y", f32, kernel::Space::global, 32 * trips, true}};
  k.vars = {{"seed", i64}, {"offset", i64}, {"u", f32}};
  const Index t = Dim::index("t", 32), v = Dim::index("v", trips);
  kernel::For loop{.name = "v", .begin = 0, .end = trips, .unrolled = true, .body = {}};
  kernel::For threads{.name = "t", .begin = 0, .end = 32, .parallel = kernel::Parallel::block, .body = {}};
  const kernel::Stmt one{kernel::Let{seed, kernel::Constant{0, 1}}, {}};
  const kernel::Stmt two{kernel::Let{offset, kernel::Constant{0, 2}}, {}};
  (inside == Inside::seed ? loop.body : threads.body).push_back(one);
  (inside == Inside::offset ? loop.body : threads.body).push_back(two);
  loop.body.push_back({kernel::Let{u, kernel::Random{seed, offset, at(t, v), 0}}, {}});
  loop.body.push_back({kernel::Store{0, trips * t + v, u}, {}});
  change(loop);
  threads.body.push_back({std::move(loop), {}});
  kernel::For blocks{.name = "b", .begin = 0, .end = 1, .parallel = kernel::Parallel::grid, .body = {}};
  blocks.body.push_back({std::move(threads), {}});
  k.body.push_back({std::move(blocks), {}});
  return k;
}

Kernel drawn_at_once(const Kernel& kernel) {
  kernel::verify(kernel, 0);
  Kernel result = kernel::vectorise_random(kernel);
  kernel::verify(result, 0);
  return result;
}

bool is_kept(const Kernel& kernel) { return print(drawn_at_once(kernel)) == print(kernel); }

}  // namespace

TEST_CASE("vectorise_random draws neighbours at once", "[kernel]") {
  Graph g("dropped");
  const Tensor x = g.input("x", f32, {512, 256}), seed = g.input("seed", i64, {});
  g.output("y", select(random_uniform(f32, {512, 256}, seed, 0) >= 0.25, x, 0.0));
  const Kernel before = kernel::hoist_invariants(lowered(g, {.splits = schedule::nest_of_elements(128, 4)}));
  check_golden("kernel/vectorise_random.txt", print(before) + print(drawn_at_once(before)));
}

TEST_CASE("vectorise_random leaves alone what is not side by side from a multiple on", "[kernel]") {
  for (const std::int64_t n : {2, 4, 8, 16}) {
    CHECK_FALSE(is_kept(draw_loop(n, [&](const Index& t, const Index& v) { return n * t + v; })));
  }
  CHECK_FALSE(is_kept(draw_loop(4, [](const Index& t, const Index& v) { return 8 * t + v + 12; })));
  CHECK(is_kept(draw_loop(3, [](const Index& t, const Index& v) { return 3 * t + v; })));
  CHECK(is_kept(draw_loop(4, [](const Index& t, const Index& v) { return 4 * t + v + 2; })));
  CHECK(is_kept(draw_loop(4, [](const Index& t, const Index& v) { return 2 * t + v; })));
  CHECK(is_kept(draw_loop(4, [](const Index& t, const Index& v) { return 4 * t + 3 - v; })));
  CHECK(is_kept(draw_loop(4, [](const Index& t, const Index& v) { return 4 * t + 4 * v; })));
  for (const Inside inside : {Inside::nothing, Inside::seed, Inside::offset}) {
    const auto neighbours = [](const Index& t, const Index& v) { return 4 * t + v; };
    CHECK(is_kept(draw_loop(4, neighbours, inside)) == (inside != Inside::nothing));
  }
}

TEST_CASE("vectorise_random takes unrolled loops of all trips, of as many numbers as are drawn at once",
          "[kernel]") {
  const auto kept = [](std::int64_t trips, const std::function<void(kernel::For&)>& change) {
    return is_kept(draw_loop(
        trips, [&](const Index& t, const Index& v) { return trips * t + v; }, Inside::nothing, change));
  };
  const auto same = [](kernel::For&) {};
  for (const std::int64_t trips : {1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 64}) {
    INFO(trips << " trips");
    CHECK(kept(trips, same) == (trips != 2 && trips != 4 && trips != 8 && trips != 16));
  }
  CHECK(kept(4, [](kernel::For& loop) { loop.unrolled = false; }));
  CHECK(kept(4, [](kernel::For& loop) { loop.begin = 1; }));
  CHECK(kept(4, [](kernel::For& loop) { loop.step = 2; }));
  // The first element of a trip is one that the loop itself binds.
  const auto bound = [](const Index&, const Index& v) { return 4 * Dim::index("w", 32) + v; };
  CHECK(is_kept(draw_loop(4, bound, Inside::nothing, [](kernel::For& loop) {
    loop.body.insert(loop.body.begin(), {kernel::Bind{"w", Dim::index("t", 32)}, {}});
  })));
}
