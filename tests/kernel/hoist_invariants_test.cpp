// What is the same in all trips goes before the loop, unless the loop changes it or may not run.
// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/hoist_invariants.hpp"

#include <functional>

#include "kernel/kernel_support.hpp"
#include "schedule/nest/usual_nests.hpp"

using namespace fuse;          // NOLINT
using namespace fuse::kernel;  // NOLINT
using namespace fuse::test;    // NOLINT

namespace {

/// for i in [begin, end) { m = load x[3]; d = m + m; <extra>; store y[i] = d } of one thread.
struct Looped {
  enum : VarId { m, d, state };
  enum : BufferId { x, y };
  Kernel kernel;
  For loop{.name = "i", .begin = 0, .end = 8, .body = {}};

  Looped() {
    kernel.name = "looped";
    kernel.block_threads = 32;
    kernel.buffers = {{"x", f32, Space::global, 64, true}, {"y", f32, Space::global, 64, true}};
    kernel.vars = {{"m", f32}, {"d", f32}};
    loop.body.push_back({Let{m, Load{x, 3, {}}}, {}});
    loop.body.push_back({Let{d, Compute{ir::Op::add, {m, m}}}, {}});
    loop.body.push_back({Store{y, Dim::index("i", 8), d}, {}});
  }

  /// Statements that stay in the loop.
  std::size_t left() {
    For lanes{.name = "lane", .begin = 0, .end = 32, .parallel = Parallel::lane, .body = {}};
    lanes.body.push_back({std::move(loop), {}});
    For blocks{.name = "b", .begin = 0, .end = 1, .parallel = Parallel::grid, .body = {}};
    blocks.body.push_back({std::move(lanes), {}});
    kernel.body.push_back({std::move(blocks), {}});
    verify(kernel, 0);
    const Kernel result = hoist_invariants(kernel);
    verify(result, 0);
    const auto& body = std::get<For>(std::get<For>(result.body[0].node).body[0].node).body;
    return std::get<For>(body.back().node).body.size();
  }
};

std::size_t left(const std::function<void(Looped&)>& change) {
  Looped looped;
  change(looped);
  return looped.left();
}

}  // namespace

TEST_CASE("hoist_invariants moves loads, and what is computed of them", "[kernel]") {
  Graph g("shifted");
  const Tensor x = g.input("x", f32, {512, 256}), mean = g.input("mean", f32, {512, 1});
  g.output("y", x - mean * mean);
  const Kernel before = lowered(g, {.splits = schedule::nest_of_elements(128, 4)});
  const Kernel after = hoist_invariants(before);
  verify(after, target_profile("h200").shared_per_block);
  check_golden("kernel/hoist_invariants.txt", print(before) + print(after));
  CHECK(print(hoist_invariants(after)) == print(after));
}

TEST_CASE("hoist_invariants leaves random numbers whose seed, offset or element the loop changes",
          "[kernel]") {
  for (const int changed : {-1, 0, 1, 2}) {
    INFO(changed);
    const std::size_t stay = left([&](Looped& looped) {
      enum : VarId { drawn = 2, fixed, counted };
      looped.kernel.vars = {{"m", f32}, {"d", f32}, {"drawn", f32}, {"fixed", i64}, {"counted", i64}};
      Random random{};
      random.seed = changed == 0 ? counted : fixed;
      random.offset = changed == 1 ? counted : fixed;
      random.element = changed == 2 ? Dim::index("i", 8) : Dim(5);
      auto& body = looped.loop.body;
      body.insert(body.begin(), {Let{fixed, IndexValue{7}}, {}});
      body.insert(body.begin() + 1, {Let{counted, IndexValue{Dim::index("i", 8)}}, {}});
      body.insert(body.begin() + 2, {Let{drawn, random}, {}});
    });
    CHECK(stay == (changed < 0 ? 2U : 3U));  // the store, `counted`, and the number
  }
}

TEST_CASE("hoist_invariants leaves a pair one of whose values the loop changes", "[kernel]") {
  enum : VarId { counted = 2, two };
  const auto stay = [](VarId first, VarId second) {
    return left([&](Looped& looped) {
      looped.kernel.vars = {{"m", f32}, {"d", f32}, {"counted", f32}, {"two", f16, true}};
      auto& body = looped.loop.body;
      body.insert(body.begin() + 1, {Let{counted, Load{Looped::x, Dim::index("i", 8), {}}}, {}});
      body.insert(body.begin() + 2, {Let{two, Pair{first, second}}, {}});
    });
  };
  CHECK(stay(Looped::m, Looped::m) == 2);  // the store and `counted`
  CHECK(stay(counted, Looped::m) == 3);
  CHECK(stay(Looped::m, counted) == 3);
}

TEST_CASE("hoist_invariants leaves what the loop changes, or a loop that may not run", "[kernel]") {
  CHECK(left([](Looped&) {}) == 1);
  CHECK(left([](Looped& l) { std::get<Store>(l.loop.body[2].node).buffer = Looped::x; }) == 3);
  CHECK(left([](Looped& l) { l.loop.body.push_back({Barrier{}, {}}); }) == 4);
  CHECK(left([](Looped& l) { l.loop.begin = Dim::index("lane", 32); }) == 3);
  CHECK(left([](Looped& l) { l.loop.end = 0; }) == 3);
  CHECK(left([](Looped& l) {
          std::get<Load>(std::get<Let>(l.loop.body[0].node).rhs).index = Dim::index("i", 8);
        }) == 3);
}

TEST_CASE("hoist_invariants leaves loads where the loop waits for other threads, in whatever way",
          "[kernel]") {
  for (const Stmt& wait : {Stmt{Barrier{}}, Stmt{GridBarrier{.counter = Looped::y}}, Stmt{ClusterBarrier{}},
                           Stmt{ClusterArrive{}}, Stmt{ClusterWait{}}}) {
    for (const std::ptrdiff_t at : {0, 3}) {
      Looped looped;
      looped.loop.body.insert(looped.loop.body.begin() + at, wait);
      looped.kernel.body = {{looped.loop}};
      CHECK(std::get<For>(hoist_invariants(looped.kernel).body.back().node).body.size() == 4);
    }
  }
}

TEST_CASE("hoist_invariants asks for the predicate and the block of a load", "[kernel]") {
  enum : VarId { fixed = 2, counted };
  // Of `load x[3] where ...`, its sum, and the store the last stays, with what the loop changes.
  const auto stay = [](const std::function<void(Load&)>& change) {
    Looped looped;
    looped.kernel.vars = {{"m", f32}, {"d", f32}, {"fixed", boolean}, {"counted", boolean}};
    change(std::get<Load>(std::get<Let>(looped.loop.body[0].node).rhs));
    auto& body = looped.loop.body;
    body.insert(body.begin(), {Let{fixed, Constant{1, 1}}, {}});
    body.insert(body.begin() + 1, {Let{counted, IndexLess{Dim::index("i", 8), 3}}, {}});
    looped.kernel.body = {{looped.loop}};
    return std::get<For>(hoist_invariants(looped.kernel).body.back().node).body.size();
  };
  CHECK(stay([](Load&) {}) == 2);
  CHECK(stay([](Load& load) { load.predicate = fixed; }) == 2);
  CHECK(stay([](Load& load) { load.predicate = counted; }) == 4);
  CHECK(stay([](Load& load) { load.rank = 1; }) == 2);
  CHECK(stay([](Load& load) { load.rank = Dim::index("i", 8); }) == 4);
}

TEST_CASE("hoist_invariants moves a place that is data with what is read there", "[kernel]") {
  enum : VarId { fixed = 2, counted };
  const auto stay = [](VarId value, const Dim& extent) {
    Looped looped;
    looped.kernel.vars = {{"m", f32}, {"d", f32}, {"fixed", i32}, {"counted", i32}};
    std::get<Load>(std::get<Let>(looped.loop.body[0].node).rhs).index = Dim::index("p", 8);
    auto& body = looped.loop.body;
    body.insert(body.begin(), {Let{fixed, IndexValue{5}}, {}});
    body.insert(body.begin() + 1, {Let{counted, IndexValue{Dim::index("i", 8)}}, {}});
    body.insert(body.begin() + 2, {BindData{"p", value, extent}, {}});
    looped.kernel.body = {{looped.loop}};
    return std::get<For>(hoist_invariants(looped.kernel).body.back().node).body.size();
  };
  CHECK(stay(fixed, 8) == 2);  // the store and `counted`
  CHECK(stay(counted, 8) == 5);
  CHECK(stay(fixed, Dim::index("i", 8) + 1) == 5);
}

TEST_CASE("hoist_invariants leaves what a loop inside changes", "[kernel]") {
  Looped looped;
  std::get<Load>(std::get<Let>(looped.loop.body[0].node).rhs).index = Dim::index("j", 4);
  For inner{.name = "j", .begin = 0, .end = Dim::index("i", 8), .body = std::move(looped.loop.body)};
  looped.loop.body = {{std::move(inner)}};
  looped.kernel.body = {{looped.loop}};
  CHECK(print(hoist_invariants(looped.kernel)) == print(looped.kernel));
}
