// Shared memory is shared by arrays between whose uses there is a barrier, and by no others.
// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/share_scratch.hpp"

#include <functional>
#include <utility>

#include "kernel/kernel_support.hpp"
#include "stitch/stitch_support.hpp"

using namespace fuse;          // NOLINT
using namespace fuse::kernel;  // NOLINT
using namespace fuse::test;    // NOLINT

namespace {

/// Arrays a, b and c of shared memory, and a thread's own d and e, which threads fill and read in the order
/// that a test says.
class Filled {
 public:
  enum : BufferId { a, b, c, d, e };

  Filled() {
    kernel_.name = "filled";
    kernel_.block_threads = 64;
    for (const char* name : {"a", "b", "c"}) kernel_.buffers.push_back({name, f32, Space::shared, 2, true});
    for (const char* name : {"d", "e"}) kernel_.buffers.push_back({name, f32, Space::local, 2, true});
  }
  Filled& put(BufferId array) {
    const auto value = static_cast<VarId>(kernel_.vars.size());
    kernel_.vars.push_back({"v", f32});
    return add(Let{value, Constant{}}).add(Store{array, Dim::index("warp", 2), value});
  }
  Filled& take(BufferId array) {
    const auto value = static_cast<VarId>(kernel_.vars.size());
    kernel_.vars.push_back({"v", f32});
    return add(Let{value, Load{array, 0, {}}});
  }
  Filled& take_from_other(BufferId array) {
    const auto value = static_cast<VarId>(kernel_.vars.size());
    kernel_.vars.push_back({"v", f32});
    return add(Let{value, Load{array, 0, {}, Index(1)}});
  }
  Filled& put_and_keep_packed(BufferId array) { return put(array).add(KeepPacked{array}); }
  Filled& wait() { return add(Barrier{}); }
  Filled& meet() { return add(ClusterBarrier{}); }
  Filled& through(BufferId array) { return put(array).wait().take(array); }
  Filled& loop(const std::function<void(Filled&)>& fill) {
    const std::string name = "i" + std::to_string(loops_++);
    return inside(For{.name = name, .begin = 0, .end = 4, .body = {}}, fill);
  }
  /// A loop that has no trip where N is 0.
  Filled& maybe_loop(const std::function<void(Filled&)>& fill) {
    const Dim trips = Dim::symbol("N", {0, 9});
    if (kernel_.extents.empty()) kernel_.extents.push_back(trips);
    return inside(For{.name = "i" + std::to_string(loops_++), .begin = 0, .end = trips, .body = {}}, fill);
  }
  Filled& only(const Index& index, const std::function<void(Filled&)>& fill) {
    return inside(If{{{index, 1}}, {}}, fill);
  }
  Kernel& kernel() { return kernel_; }

  /// Names of the shared arrays that are left.
  std::string left() {
    For lanes{.name = "lane", .begin = 0, .end = 32, .parallel = Parallel::lane, .body = std::move(body_)};
    For warps{.name = "warp", .begin = 0, .end = 2, .parallel = Parallel::warp, .body = {}};
    warps.body.push_back({std::move(lanes), {}});
    For blocks{.name = "block", .begin = 0, .end = kernel_.grid, .parallel = Parallel::grid, .body = {}};
    blocks.body.push_back({std::move(warps), {}});
    kernel_.body.push_back({std::move(blocks), {}});
    verify(kernel_, 1024);
    const Kernel result = share_scratch(kernel_);
    verify(result, 1024);
    std::string names;
    for (const fuse::kernel::Buffer& buffer : result.buffers) {
      if (buffer.space == Space::shared) names += buffer.name;
    }
    return names;
  }

 private:
  Filled& add(decltype(Stmt::node) node) {
    body_.push_back({std::move(node), {}});
    return *this;
  }
  template <class Around>
  Filled& inside(Around around, const std::function<void(Filled&)>& fill) {
    std::vector<Stmt> outer = std::exchange(body_, {});
    fill(*this);
    around.body = std::exchange(body_, std::move(outer));
    return add(std::move(around));
  }

  Kernel kernel_;
  std::vector<Stmt> body_;
  int loops_ = 0;
};

constexpr auto a = Filled::a, b = Filled::b, c = Filled::c, d = Filled::d, e = Filled::e;

Graph three_passes() {
  Graph g("three_passes");
  const Tensor x = g.input("x", f32, {64, 2048});
  const Tensor y = x / sum(x, {1}, {.keep_dims = true}), z = y / sum(exp(y), {1}, {.keep_dims = true});
  g.output("z", z / max(exp(z), {1}, {.keep_dims = true}));
  return g;
}

}  // namespace

TEST_CASE("share_scratch lays the third pass's array over the first's", "[kernel]") {
  const Compiled whole = compiled(three_passes(), "h200");
  REQUIRE(whole.schedules.size() == 1);
  REQUIRE(units_of(whole.schedules[0].phases[0].choices.splits, 'c', schedule::Level::warp) > 1);
  const Kernel before = codegen::lower(whole.graph, whole.schedules[0], 0, "k").kernel;
  const Kernel after = share_scratch(before);
  verify(after, target_profile("h200").shared_per_block);
  check_golden("kernel/share_scratch.txt", print(before) + print(after));
  CHECK(print(share_scratch(after)) == print(after));
}

TEST_CASE("a barrier between the last use and the first makes two arrays one", "[kernel]") {
  CHECK(Filled().through(a).through(b).through(c).left() == "ab");
  CHECK(Filled().through(a).wait().through(b).wait().through(c).left() == "a");
  CHECK(Filled().put(a).put(b).put(c).wait().take(a).take(b).take(c).left() == "abc");
  // In use from the first to the last time, also where nothing reads it.
  CHECK(Filled().through(a).wait().through(b).wait().take(a).wait().through(c).left() == "ab");
}

TEST_CASE("arrays of different types, or that another block reads, stay apart", "[kernel]") {
  Filled other = Filled().through(a).wait().through(b);
  other.kernel().buffers[b].dtype = i32;
  for (Var& var : other.kernel().vars) var.dtype = f32;
  other.kernel().vars[2].dtype = other.kernel().vars[3].dtype = i32;
  CHECK(other.left() == "abc");

  Filled cluster = Filled().put(a).meet().take_from_other(a).wait().through(b).meet();
  cluster.kernel().grid = cluster.kernel().cluster = 2;
  CHECK(cluster.left() == "abc");
}

TEST_CASE("the larger of two arrays is room for both", "[kernel]") {
  Filled wide = Filled().through(a).wait().through(b).wait().through(c);
  wide.kernel().buffers[b].elements = 64;
  CHECK(wide.left() == "a");
  CHECK(share_scratch(wide.kernel()).buffers[0].elements.is(64));
}

TEST_CASE("a statement that reads and writes an array keeps its own", "[kernel]") {
  // b goes, so every array after it has another number.
  Filled f = Filled().through(a).wait().through(b).put_and_keep_packed(d).put_and_keep_packed(e);
  CHECK(f.left() == "ac");
  std::string kept;
  const Kernel after = share_scratch(f.kernel());
  for_each_stmt(after.body, [&](const Stmt& stmt) {
    if (const auto* packed = std::get_if<KeepPacked>(&stmt.node)) kept += after.buffers[packed->array].name;
  });
  CHECK(kept == "de");
}

TEST_CASE("a barrier that may be left out does not stand between", "[kernel]") {
  const Index block = Dim::index("block", 1);
  CHECK(Filled().through(a).only(block, [](Filled& f) { f.wait(); }).through(b).left() == "abc");
  CHECK(Filled().through(a).loop([](Filled& f) { f.wait(); }).through(b).left() == "abc");
  CHECK(Filled().through(a).only(block, [](Filled& f) { f.wait().through(b).wait(); }).through(c).left() ==
        "ac");
}

TEST_CASE("the next trip of a loop comes behind the last one's end", "[kernel]") {
  // a is read, then filled again with no barrier between c's use and its own: three barriers are one too few.
  CHECK(Filled().loop([](Filled& f) { f.through(a).through(b).through(c); }).left() == "abc");
  CHECK(Filled().loop([](Filled& f) { f.through(a).through(b).through(c).wait(); }).left() == "ab");
  CHECK(Filled().loop([](Filled& f) { f.through(a).wait().through(b).wait(); }).left() == "ac");
}

TEST_CASE("what a trip may leave for the next keeps its slot through the loop", "[kernel]") {
  const auto rest = [](Filled& f) { f.wait().through(b).wait(); };
  CHECK(Filled().loop([&](Filled& f) { rest(f.through(a)); }).left() == "ac");
  CHECK(Filled().loop([&](Filled& f) { rest(f.take(a).wait().put(a)); }).left() == "abc");
  CHECK(Filled().put(a).wait().loop([&](Filled& f) { rest(f.take(a)); }).left() == "abc");
  // Filled in some trips alone; by some threads alone is as good as by all.
  const auto filled_if = [&](const Index& index) {
    return Filled().loop([&](Filled& f) { rest(f.only(index, [](Filled& g) { g.put(a); }).wait().take(a)); });
  };
  CHECK(filled_if(Dim::index("i0", 4)).left() == "abc");
  CHECK(filled_if(Dim::index("lane", 32)).left() == "ac");
}

TEST_CASE("what a loop without a trip, or in a trip of another, leaves out keeps its slot", "[kernel]") {
  const auto rest = [](Filled& f) { f.wait().take(a).wait().through(b).wait(); };
  // The inner loop fills a in every one of its trips, but the outer one comes to it in some alone.
  CHECK(Filled()
            .loop([&](Filled& f) {
              rest(f.only(Dim::index("i0", 4), [](Filled& g) { g.loop([](Filled& h) { h.put(a); }); }));
            })
            .left() == "abc");
  CHECK(Filled().loop([&](Filled& f) { rest(f.maybe_loop([](Filled& g) { g.put(a); })); }).left() == "abc");
  CHECK(Filled().loop([&](Filled& f) { rest(f.loop([](Filled& g) { g.put(a); })); }).left() == "ac");
}
