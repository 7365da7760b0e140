// Accesses that lie side by side become one; others stay.
// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/vectorise.hpp"

#include <functional>

#include "kernel/kernel_support.hpp"
#include "schedule/nest/usual_nests.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using kernel::Index;
using kernel::Kernel;
using kernel::Stmt;

namespace {

Kernel vectorised(const Kernel& kernel) {
  Kernel result = kernel::vectorise(kernel);
  kernel::verify(result, target_profile("h200").shared_per_block);
  return result;
}

std::size_t count(const Kernel& kernel, const std::string& what) {
  const std::string text = print(kernel);
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

/// for v in [0, trips) unrolled { a = load x[at]; store y[to] = a }, of a thread: v is the counter.
Kernel copy_loop(
    const Dim& trips, const std::function<Index(const Index& g, const Index& v)>& at,
    const std::function<Index(const Index& g, const Index& v)>& to, bool in_place = false, DType dtype = f32,
    const std::function<void(Kernel&, kernel::For&)>& change = [](Kernel&, kernel::For&) {}) {
  Kernel k;
  k.name = "copy";
  k.block_threads = 32;
  k.grid = 4;
  k.index_type = i32;
  k.buffers = {{"x", dtype, kernel::Space::global, 1024, in_place},
               {"y", dtype, kernel::Space::global, 1024, true}};
  k.vars = {{"a", dtype}};
  const Index g = Dim::index("t", 32), v = Dim::index("v", trips);
  kernel::For loop{.name = "v", .begin = 0, .end = trips, .unrolled = true, .body = {}};
  loop.body.push_back({kernel::Let{0, kernel::Load{0, at(g, v), {}}}, {}});
  loop.body.push_back({kernel::Store{in_place ? 0u : 1u, to(g, v), 0}, {}});
  change(k, loop);
  kernel::For threads{.name = "t", .begin = 0, .end = 32, .parallel = kernel::Parallel::block, .body = {}};
  threads.body.push_back({std::move(loop), {}});
  kernel::For blocks{.name = "b", .begin = 0, .end = 4, .parallel = kernel::Parallel::grid, .body = {}};
  blocks.body.push_back({std::move(threads), {}});
  k.body.push_back({std::move(blocks), {}});
  return k;
}

Index side_by_side(const Index& g, const Index& v) { return 4 * g + v; }

}  // namespace

TEST_CASE("vectorise makes one access of neighbours", "[kernel]") {
  const Kernel rows = lowered(sum_graph({64, 1024}, {1}), {.splits = schedule::nest_of_lanes(128, 32, 4)});
  CHECK(count(vectorised(rows), "vector_load") == 1);
  check_golden("kernel/vectorise.txt", print(rows) + print(vectorised(rows)));
}

TEST_CASE("vectorise: what each element of a row needs, and what several lanes share", "[kernel]") {
  Graph g("scaled");
  const Tensor x = g.input("x", f32, {512, 256}), gamma = g.parameter("gamma", f32, {256});
  const Tensor mean = g.input("mean", f32, {512, 1});
  g.output("y", x * gamma - mean);
  const Kernel kernel = vectorised(lowered(g, {.splits = schedule::nest_of_elements(128, 4)}));
  INFO(print(kernel));
  CHECK(count(kernel, "vector_load x_v = x[4 * ") == 1);
  CHECK(count(kernel, "vector_load gamma_v = gamma[") == 1);
  CHECK(count(kernel, "vector_store") == 1);
  CHECK(count(kernel, "vector_load mean") == 0);  // one value for all of them
}

TEST_CASE("vectorise leaves alone what does not lie side by side from a multiple on", "[kernel]") {
  const Kernel both = vectorised(copy_loop(4, side_by_side, side_by_side));
  CHECK(count(both, "vector_load x_v = x[4 * t]") == 1);
  CHECK(count(both, "vector_store y[4 * t] = y_v") == 1);
  CHECK(count(both, "load x_v[v]") == 1);
  CHECK(count(both, " store y_v[v] = a") == 1);
  const auto kept = [](const Kernel& kernel) { return print(kernel::vectorise(kernel)) == print(kernel); };
  const auto apart = [](const Index& g, const Index& v) { return 4 * g + 2 * v; };
  const auto shifted = [](const Index& g, const Index& v) { return 4 * g + v + 1; };
  const auto unaligned = [](const Index& g, const Index& v) { return 2 * g + v; };
  const auto backward = [](const Index& g, const Index& v) { return 4 * g + 3 - v; };
  for (const auto& index : {+apart, +shifted, +unaligned, +backward}) CHECK(kept(copy_loop(4, index, index)));
  CHECK(kept(copy_loop(
      16, [](const Index& g, const Index& v) { return 16 * g + v; },
      [](const Index& g, const Index& v) { return 16 * g + v; })));  // 64 bytes
  CHECK(kept(copy_loop(
      3, [](const Index& g, const Index& v) { return 3 * g + v; },
      [](const Index& g, const Index& v) { return 3 * g + v; })));
  // A later trip may read what an earlier one stored.
  CHECK(kept(copy_loop(
      4, side_by_side, [](const Index& g, const Index& v) { return 4 * g + v + 1; }, true)));
  CHECK(count(vectorised(copy_loop(
                  8, [](const Index& g, const Index& v) { return 8 * g + v; },
                  [](const Index& g, const Index& v) { return 8 * g + v; }, false, bf16)),
              "vector_") == 2);
}

TEST_CASE("vectorise keeps stores of what later trips load", "[kernel]") {
  // Trip 0 writes what trip 3 reads: behind the loop is too late.
  const auto backwards = [](const Index& g, const Index& v) { return 4 * g + 3 - v; };
  const Kernel swap = copy_loop(4, backwards, side_by_side, true);
  CHECK(print(vectorised(swap)) == print(swap));
  const Kernel apart = copy_loop(4, backwards, side_by_side);
  CHECK(count(vectorised(apart), "vector_store") == 1);
}

TEST_CASE("vectorise takes unrolled loops of all trips, whose elements fill one access", "[kernel]") {
  const auto accesses = [](std::int64_t trips, DType dtype,
                           const std::function<void(Kernel&, kernel::For&)>& change) {
    const auto at = [&](const Index& g, const Index& v) { return trips * g + v; };
    return count(vectorised(copy_loop(trips, at, at, false, dtype, change)), "vector_");
  };
  const auto same = [](Kernel&, kernel::For&) {};
  for (const DType dtype : {u8, f16, f32, f64}) {
    for (const std::int64_t trips : {1, 2, 3, 4, 5, 6, 8, 12, 16, 32}) {
      INFO(to_string(dtype) << ", " << trips << " trips");
      const bool whole = trips == 2 || trips == 4 || trips == 8 || trips == 16;
      const bool fits = trips * static_cast<std::int64_t>(size_of(dtype)) <= kernel::vector_bytes;
      CHECK(accesses(trips, dtype, same) == (whole && fits ? 2U : 0U));
    }
  }
  CHECK(accesses(4, f32, [](Kernel&, kernel::For& loop) { loop.unrolled = false; }) == 0);
  CHECK(accesses(4, f32, [](Kernel&, kernel::For& loop) { loop.begin = 1; }) == 0);
  CHECK(accesses(4, f32, [](Kernel&, kernel::For& loop) { loop.step = 2; }) == 0);
  // Arrays of a thread are no memory to which accesses go.
  for (const kernel::BufferId local : {0u, 1u})
    CHECK(accesses(4, f32, [&](Kernel& k, kernel::For&) {
            k.buffers[local].space = kernel::Space::local;
            k.buffers[local].written = true;
          }) == 1);
}

TEST_CASE("vectorise leaves accesses that some trips have alone, or that others of the loop may meet",
          "[kernel]") {
  enum : kernel::BufferId { x, y, other };
  enum : kernel::VarId { a, b, yes };
  const auto accesses = [](const std::function<void(Kernel&, kernel::For&)>& change) {
    const Kernel kernel =
        copy_loop(4, side_by_side, side_by_side, false, f32, [&](Kernel& k, kernel::For& loop) {
          k.buffers[x].written = true;
          k.buffers.push_back({"other", f32, kernel::Space::local, 4, true});
          k.vars.push_back({"b", f32});
          k.vars.push_back({"yes", boolean});
          change(k, loop);
        });
    return std::pair{count(vectorised(kernel), "vector_load x_v"),
                     count(vectorised(kernel), "vector_store y[")};
  };
  using Counts = std::pair<std::size_t, std::size_t>;
  const Index place = Dim::index("t", 32);
  CHECK(accesses([](Kernel&, kernel::For&) {}) == Counts{1, 1});
  // A condition.
  CHECK(accesses([&](Kernel&, kernel::For& loop) {
          std::get<kernel::Load>(std::get<kernel::Let>(loop.body[0].node).rhs).predicate = yes;
          loop.body.insert(loop.body.begin(), {kernel::Let{yes, kernel::IndexLess{place, 7}}, {}});
        }) == Counts{0, 1});
  // Memory of another block.
  CHECK(accesses([&](Kernel& k, kernel::For& loop) {
          k.buffers[x].space = kernel::Space::shared;
          k.cluster = 2;
          std::get<kernel::Load>(std::get<kernel::Let>(loop.body[0].node).rhs).rank = Index(1);
          loop.body.push_back({kernel::ClusterBarrier{.shared = true}, {}});
        }) == Counts{0, 1});
  // A location that the loop itself binds.
  CHECK(accesses([&](Kernel&, kernel::For& loop) {
          std::get<kernel::Load>(std::get<kernel::Let>(loop.body[0].node).rhs).index =
              side_by_side(Dim::index("w", 32), Dim::index("v", 4));
          loop.body.insert(loop.body.begin(), {kernel::Bind{"w", place}, {}});
        }) == Counts{0, 1});
  // Other accesses of the same memory, one by one or at once.
  CHECK(accesses([&](Kernel&, kernel::For& loop) {
          loop.body.push_back({kernel::Store{x, place + 512, a}, {}});
        }) == Counts{0, 1});
  CHECK(accesses([&](Kernel&, kernel::For& loop) {
          loop.body.push_back({kernel::VectorStore{x, other, 4 * place + 512}, {}});
        }) == Counts{0, 1});
  CHECK(accesses([&](Kernel&, kernel::For& loop) {
          loop.body.push_back({kernel::Let{b, kernel::Load{y, place + 512, {}}}, {}});
        }) == Counts{1, 0});
  CHECK(accesses([&](Kernel&, kernel::For& loop) {
          loop.body.push_back({kernel::VectorLoad{other, y, 4 * place + 512}, {}});
        }) == Counts{1, 0});
  CHECK(accesses([&](Kernel&, kernel::For& loop) {
          loop.body.push_back({kernel::Store{y, place + 512, a}, {}});
        }) == Counts{1, 0});
  // This one alone.
  CHECK(accesses([&](Kernel&, kernel::For& loop) {
          loop.body.push_back({kernel::VectorStore{y, other, 4 * place + 512}, {}});
        }) == Counts{1, 1});
}
