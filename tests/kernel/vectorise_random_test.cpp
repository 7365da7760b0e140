// Random numbers of neighbours are drawn at once; others stay.
// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/vectorise_random.hpp"

#include "ir/kernel/passes/hoist_invariants.hpp"
#include "kernel/kernel_support.hpp"
#include "schedule/nest/usual_nests.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using kernel::Index;
using kernel::Kernel;

namespace {

/// seed = 1; for v in [0, trips) unrolled { u = random seed, seed, element at; store y[trips * t + v] = u }
/// of a thread.
Kernel draw_loop(std::int64_t trips, const std::function<Index(const Index& t, const Index& v)>& at,
                 bool seed_inside = false) {
  enum : kernel::VarId { seed, u };
  Kernel k;
  k.name = "draw";
  k.block_threads = 32;
  k.index_type = i32;
  k.buffers = {{"y", f32, kernel::Space::global, 32 * trips, true}};
  k.vars = {{"seed", i64}, {"u", f32}};
  const Index t = Dim::index("t", 32), v = Dim::index("v", trips);
  kernel::For loop{.name = "v", .begin = 0, .end = trips, .unrolled = true, .body = {}};
  kernel::For threads{.name = "t", .begin = 0, .end = 32, .parallel = kernel::Parallel::block, .body = {}};
  const kernel::Stmt one{kernel::Let{seed, kernel::Constant{0, 1}}, {}};
  (seed_inside ? loop.body : threads.body).push_back(one);
  loop.body.push_back({kernel::Let{u, kernel::Random{seed, seed, at(t, v), 0}}, {}});
  loop.body.push_back({kernel::Store{0, trips * t + v, u}, {}});
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
  CHECK(is_kept(draw_loop(
      4, [](const Index& t, const Index& v) { return 4 * t + v; }, true)));  // the seed is of a trip
}
