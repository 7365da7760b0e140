// The kernel IR's spec: a small kernel broken by hand, each break has its text.
// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "kernel/kernel_support.hpp"
#include "kernel/sum_reduction.hpp"

using namespace fuse;          // NOLINT
using namespace fuse::kernel;  // NOLINT
using namespace fuse::test;    // NOLINT

namespace {

/// y[32 b + 32 warp + lane] = the warp's sum of x, by way of shared memory: 64 threads a block, B blocks.
struct Small {
  Kernel kernel;
  Dim B = Dim::symbol("B", {.min = 1, .max = 1000});
  Index b = Dim::index("b", B), warp = Dim::index("warp", 2), lane = Dim::index("lane", 32);
  enum : VarId { left, right, combined, acc, value, flag, extra };
  enum : BufferId { x, y, tile };
  std::vector<Stmt> body;  ///< inside the three parallel loops

  Small() {
    kernel.name = "small";
    kernel.block_threads = 64;
    kernel.grid = B;
    kernel.extents = {B};
    kernel.buffers = {{"x", f32, Space::global, 64 * B, false},
                      {"y", f32, Space::global, 64 * B, true},
                      {"tile", f32, Space::shared, 64, true}};
    kernel.vars = {{"left", f32}, {"right", f32},    {"combined", f32}, {"acc", f32},
                   {"v", f32},    {"flag", boolean}, {"n", i64}};
    kernel.reductions = {sum_reduction(f32, left, right, combined)};
    body = {{Declare{0, {acc}}, {}},
            {Let{value, Load{x, at(), {}}}, {"%1 load", "scope", ""}},
            {Combine{0, {acc}, {value}}, {}},
            {WarpCombine{0, {acc}}, {}},
            {Store{tile, 32 * warp + lane, acc}, {}},
            {Barrier{}, {}},
            {Store{y, at(), acc}, {"%2 store", "", ""}}};
  }
  Index at() const { return 64 * b + 32 * warp + lane; }

  static For loop(const std::string& name, const Dim& end, Parallel parallel, std::vector<Stmt> body) {
    return For{.name = name, .begin = 0, .end = end, .parallel = parallel, .body = std::move(body)};
  }
  void place(std::size_t at, decltype(Stmt::node) node) {
    body.insert(body.begin() + static_cast<std::ptrdiff_t>(at), Stmt{std::move(node), {"%9 here", "", ""}});
  }
  /// The statements [first, body.size()) inside an If.
  void guard_from(std::size_t first, std::vector<IndexLess> conditions) {
    std::vector<Stmt> inner(body.begin() + static_cast<std::ptrdiff_t>(first), body.end());
    body.resize(first);
    body.push_back({If{std::move(conditions), std::move(inner)}, {}});
  }
  /// What the verifier says after "kernel small: ".
  std::string text(std::int64_t shared_limit = 1024) {
    Kernel whole = kernel;
    std::vector<Stmt> lanes;
    lanes.push_back({loop("lane", 32, Parallel::lane, body), {}});
    std::vector<Stmt> warps;
    warps.push_back({loop("warp", kernel.block_threads / 32, Parallel::warp, std::move(lanes)), {}});
    whole.body.push_back({loop("b", kernel.grid, Parallel::grid, std::move(warps)), {}});
    return text_of(whole, shared_limit);
  }
  static std::string text_of(const Kernel& whole, std::int64_t shared_limit = 1024) {
    const std::string text = thrown_by([&] { verify(whole, shared_limit); });
    const std::string start = "internal error: kernel small: ";
    return text.starts_with(start) ? text.substr(start.size()) : text;
  }
};

std::string broken(const std::function<void(Small&)>& change) {
  Small small;
  change(small);
  return small.text();
}

}  // namespace

TEST_CASE("a right kernel verifies", "[kernel]") {
  CHECK(Small().text() == "no error");
  CHECK(print(Small().kernel)
            .starts_with("kernel @small(x: global const f32[64 * B], y: global f32[64 * B], B)"));
}

TEST_CASE("a barrier where threads of the block may miss it", "[kernel]") {
  const std::string missed = "threads of a block may miss a barrier";
  for (const bool by_lane : {true, false}) {
    CHECK(broken([&](Small& s) { s.guard_from(5, {{by_lane ? s.lane : s.warp, 1}}); }) == missed);
  }
  CHECK(broken([](Small& s) { s.guard_from(4, {{s.at(), 100}}); }) == missed);
  // In a loop whose bounds differ between warps; through a name bound to such an index.
  CHECK(broken([&](Small& s) {
          For loop{.name = "i", .begin = s.warp, .end = 8, .step = 2, .body = {}};
          loop.body.push_back({Barrier{}, {}});
          s.place(6, loop);
        }) == missed);
  CHECK(broken([](Small& s) {
          s.place(0, Bind{"row", 2 * s.b + s.warp});
          s.guard_from(6, {{Dim::index("row", 2 * s.B), 5}});
        }) == missed);
  // The same for all threads of a block: allowed.
  CHECK(broken([](Small& s) { s.guard_from(5, {{s.b, 3}}); }) == "no error");
  CHECK(broken([](Small& s) {
          For loop{.name = "i", .begin = s.b, .end = s.B, .body = {}};
          loop.body.push_back({Barrier{}, {}});
          s.place(6, loop);
        }) == "no error");
}

TEST_CASE("a warp combination where lanes may miss it", "[kernel]") {
  const std::string missed = "lanes of a warp may miss its combination";
  CHECK(broken([](Small& s) { s.guard_from(3, {{s.lane, 16}}); }) == missed);
  CHECK(broken([](Small& s) { s.guard_from(3, {{s.at(), 100}}); }) == missed);
  CHECK(broken([](Small& s) {
          For loop{.name = "i", .begin = s.lane, .end = 100, .step = 32, .body = {}};
          loop.body.push_back({WarpCombine{0, {Small::acc}}, {}});
          s.place(4, loop);
        }) == missed);
  CHECK(broken([](Small& s) {
          s.place(3, WarpCombine{0, {Small::acc}});
          s.body.resize(4);
          s.guard_from(3, {{s.warp, 1}});  // whole warps: allowed
        }) == "no error");
}

TEST_CASE("vectors, and parts of a warp", "[kernel]") {
  enum : BufferId { own = 3 };
  const auto load = [](const Index& index, std::int64_t elements, BufferId from = Small::x,
                       DType dtype = f32) {
    return broken([&](Small& s) {
      s.kernel.buffers.push_back({"x_v", dtype, Space::local, elements, true});
      s.place(0, VectorLoad{own, from, index});
    });
  };
  const Index lane = Dim::index("lane", 32);
  CHECK(load(4 * lane, 4) == "no error");
  CHECK(load(4 * lane + 2, 4) == "a vector load of 4 elements at 4 * lane + 2 (at %9 here)");
  CHECK(load(8 * lane, 8) == "no error");  // 32 bytes are two accesses
  CHECK(load(16 * lane, 16) == "a vector load of 16 elements at 16 * lane (at %9 here)");  // 64 bytes
  CHECK(load(3 * lane, 3) == "a vector load of 3 elements at 3 * lane (at %9 here)");
  CHECK(load(4 * Dim::index("z", 8), 4) == "a vector load uses z, which is not in scope (at %9 here)");
  CHECK(load(4 * lane, 4, Small::tile) == "no error");
  CHECK(load(4 * lane, 4, own) ==
        "a vector load is not between a thread's own array and memory (at %9 here)");
  CHECK(load(4 * lane, 4, Small::x, i32) == "a vector load has another type than its buffer (at %9 here)");
  CHECK(broken([&](Small& s) {
          s.kernel.buffers.push_back({"x_v", f32, Space::local, 4, true});
          s.place(0, VectorStore{Small::x, own, 4 * lane});
        }) == "a store to x, which is only read (at %9 here)");
  const auto kept = [&](DType dtype, std::int64_t elements, Space space) {
    return broken([&](Small& s) {
      s.kernel.buffers.push_back({"h", dtype, space, elements, true});
      s.place(0, KeepPacked{own});
    });
  };
  CHECK(kept(bf16, 6, Space::local) == "no error");
  for (const std::string& error : {kept(bf16, 5, Space::local), kept(f32, 4, Space::shared)})
    CHECK(error == "something else than a thread's own array of whole registers is kept packed (at %9 here)");
  for (const int lanes : {1, 12, 64}) {
    CHECK(broken([&](Small& s) { std::get<WarpCombine>(s.body[3].node).lanes = lanes; }) ==
          "a combination of " + std::to_string(lanes) + " lanes");
  }
  CHECK(broken([&](Small& s) { std::get<WarpCombine>(s.body[3].node).lanes = 8; }) == "no error");
  for (const int stride : {0, 3, 8}) {
    CHECK(broken([&](Small& s) {
            s.body[3].node = WarpCombine{0, {Small::acc}, 8, stride};
          }) == "a combination of 8 lanes that lie " + std::to_string(stride) + " apart");
  }
  CHECK(broken([&](Small& s) { s.body[3].node = WarpCombine{0, {Small::acc}, 8, 4}; }) == "no error");
}

TEST_CASE("random numbers of an array", "[kernel]") {
  enum : BufferId { own = 3 };
  const auto draw = [](const Index& element, std::int64_t elements, DType dtype = f32,
                       Space space = Space::local) {
    return broken([&](Small& s) {
      s.kernel.buffers.push_back({"u_v", dtype, space, elements, true});
      const auto seed = static_cast<VarId>(s.kernel.vars.size());
      s.kernel.vars.push_back({"seed", i64});
      s.place(0, Let{seed, Constant{0, 1}});
      s.place(1, VectorRandom{own, {seed, seed, element, 0}});
    });
  };
  const Index lane = Dim::index("lane", 32);
  CHECK(draw(4 * lane, 4) == "no error");
  CHECK(draw(4 * lane, 4, f64) == "no error");
  CHECK(draw(4 * lane + 2, 4) == "a draw of 4 numbers at 4 * lane + 2 (at %9 here)");
  CHECK(draw(3 * lane, 3) == "a draw of 3 numbers at 3 * lane (at %9 here)");
  CHECK(draw(4 * lane, 4, i32) == "a random number is neither f32 nor f64 (at %9 here)");
  CHECK(draw(4 * lane, 4, f32, Space::shared) ==
        "random numbers go to an array that is not a thread's own (at %9 here)");
  CHECK(draw(4 * Dim::index("z", 8), 4) == "a random number uses z, which is not in scope (at %9 here)");
}

TEST_CASE("stores and buffers", "[kernel]") {
  CHECK(broken([](Small& s) {
          s.place(7, Store{Small::x, s.at(), Small::acc});
        }) == "a store to x, which is only read (at %9 here)");
  CHECK(broken([](Small& s) {
          s.place(1, Let{Small::extra, Load{9, 0, {}}});
        }) == "a buffer does not exist (at %9 here)");
  CHECK(broken([](Small& s) {
          s.place(7, Store{9, 0, Small::acc});
        }) == "a buffer does not exist (at %9 here)");
  CHECK(broken([](Small& s) {
          s.place(1, Let{Small::extra, Load{Small::x, 0, {}}});
        }) == "a load has another type than its buffer (at %9 here)");
  CHECK(broken([](Small& s) {
          s.place(1, Let{Small::flag, IndexLess{s.lane, 3}});
          s.place(8, Store{Small::y, s.at(), Small::flag});
        }) == "flag is used as another type (at %9 here)");
}

TEST_CASE("variables", "[kernel]") {
  CHECK(broken([](Small& s) {
          s.place(0, Store{Small::y, s.at(), Small::value});
        }) == "a variable is used before it is defined (at %9 here)");
  CHECK(broken([](Small& s) {
          s.place(2, Let{Small::value, Constant{1, 0}});
        }) == "v is defined twice (at %9 here)");
  CHECK(broken([](Small& s) {
          s.place(2, Let{77, Constant{1, 0}});
        }) == "a variable does not exist (at %9 here)");
  // What a block defines is gone after it.
  CHECK(broken([](Small& s) {
          If branch{{{s.lane, 3}}, {}};
          branch.body.push_back({Let{Small::extra, IndexValue{s.lane}}, {}});
          s.place(1, branch);
          s.place(2, Let{Small::flag, Compute{ir::Op::eq, {Small::extra, Small::extra}}});
        }) == "a variable is used before it is defined (at %9 here)");
  CHECK(broken([](Small& s) {
          s.place(2, Let{Small::flag, IndexLess{s.lane, 3}});
          s.body.push_back({Let{Small::extra, Load{Small::x, 0, Small::value}}, {"%9 here", "", ""}});
        }) == "a load has another type than its buffer (at %9 here)");
  CHECK(broken([](Small& s) {
          s.kernel.vars.push_back({"w", f32});
          s.place(2, Let{7, Load{Small::x, 0, Small::value}});
        }) == "v is used as another type (at %9 here)");
}

TEST_CASE("types of what is computed", "[kernel]") {
  const auto compute = [](VarId result, ir::Op op, std::vector<VarId> operands) {
    return broken([&](Small& s) {
      s.kernel.vars.push_back({"r", result == Small::flag ? boolean : f32});
      s.place(2, Let{Small::extra, IndexValue{s.lane}});
      s.place(3, Let{7, Compute{op, operands}});
    });
  };
  CHECK(compute(Small::value, ir::Op::add, {Small::value, Small::value}) == "no error");
  CHECK(compute(Small::value, ir::Op::add, {Small::value, Small::extra}) ==
        "operands of an element-wise op differ in type (at %9 here)");
  CHECK(compute(Small::value, ir::Op::add, {Small::extra, Small::extra}) ==
        "a let has another type than its op (at %9 here)");
  CHECK(compute(Small::value, ir::Op::lt, {Small::value, Small::value}) ==
        "a let has another type than its op (at %9 here)");
  CHECK(compute(Small::flag, ir::Op::lt, {Small::value, Small::value}) == "no error");
  CHECK(compute(Small::value, ir::Op::add, {Small::value}) ==
        "a let has another arity than its op (at %9 here)");
  CHECK(compute(Small::value, ir::Op::reduce_sum, {Small::value}) ==
        "a let computes an op that is not element-wise (at %9 here)");
  CHECK(compute(Small::value, ir::Op::select, {Small::value, Small::value, Small::value}) ==
        "a select mixes types (at %9 here)");
  CHECK(broken([](Small& s) {
          s.kernel.vars.push_back({"w", f32});
          s.place(2, Let{7, IndexValue{s.lane}});
        }) == "an index becomes a value that is not an integer (at %9 here)");
  CHECK(broken([](Small& s) {
          s.place(2, Let{Small::extra, IndexLess{s.lane, 3}});
        }) == "a comparison of indices is not a bool (at %9 here)");
}

TEST_CASE("index variables", "[kernel]") {
  const Index stranger = Dim::index("stranger", 4);
  const auto not_in_scope = [](const char* what) {
    return std::string(what) + " uses stranger, which is not in scope (at %9 here)";
  };
  CHECK(broken([&](Small& s) {
          s.place(7, Store{Small::y, stranger, Small::acc});
        }) == not_in_scope("a store"));
  CHECK(broken([&](Small& s) {
          s.place(1, Let{Small::extra, IndexValue{stranger}});
        }) == not_in_scope("an index value"));
  CHECK(broken([&](Small& s) {
          s.place(1, Let{Small::flag, IndexLess{0, stranger}});
        }) == not_in_scope("a comparison"));
  CHECK(broken([&](Small& s) { s.place(1, Bind{"row", stranger + 1}); }) == not_in_scope("a binding"));
  CHECK(broken([&](Small& s) { s.place(1, If{{{s.lane, stranger}}, {}}); }) == not_in_scope("a condition"));
  CHECK(broken([&](Small& s) { s.place(1, For{.name = "i", .end = stranger, .body = {}}); }) ==
        not_in_scope("a loop"));
  CHECK(broken([&](Small& s) {
          s.kernel.vars.push_back({"w", f32}), s.place(1, Let{7, Load{Small::x, stranger, {}}});
        }) == not_in_scope("a load"));
  // Symbols are parameters or unknown; the name alone is not enough.
  CHECK(broken([](Small& s) {
          s.kernel.extents.clear(), s.place(1, Bind{"row", s.B});
        }) == "a binding uses B, which is not in scope (at %9 here)");
  CHECK(broken([](Small& s) {
          s.place(1, Bind{"lane", s.b});
        }) == "index variable lane is defined twice (at %9 here)");
  CHECK(broken([](Small& s) {
          s.place(2, BindData{"g", Small::value, s.B});
        }) == "an index from data is not an integer (at %9 here)");
}

TEST_CASE("parallel loops are the launch", "[kernel]") {
  const auto loops = [](const Dim& grid, const Dim& warps, const Dim& lanes) {
    Small s;
    std::vector<Stmt> lane, warp;
    lane.push_back({Small::loop("lane", lanes, Parallel::lane, s.body), {}});
    warp.push_back({Small::loop("warp", warps, Parallel::warp, std::move(lane)), {}});
    s.kernel.body.push_back({Small::loop("b", grid, Parallel::grid, std::move(warp)), {}});
    return Small::text_of(s.kernel);
  };
  const Dim B = Small().B;
  CHECK(loops(B, 2, 32) == "no error");
  const std::string other = "a parallel loop has another extent than the launch";
  CHECK(loops(B + 1, 2, 32) == other);
  CHECK(loops(B, 3, 32) == other);
  CHECK(loops(B, 2, 16) == other);
  CHECK(broken([](Small& s) {
          For serial{.name = "i", .begin = 0, .end = 4, .body = {}};
          serial.body.push_back({Small::loop("t", 64, Parallel::block, {}), {"%9 here", "", ""}});
          s.place(0, serial);
        }) == "a parallel loop inside serial code (at %9 here)");
  Small s;
  For late = Small::loop("b", s.B, Parallel::grid, {});
  late.begin = 1;
  s.kernel.body.push_back({late, {}});
  CHECK(Small::text_of(s.kernel) == "a parallel loop does not start at 0 by 1");
}

TEST_CASE("shared memory", "[kernel]") {
  Small s;
  CHECK(s.text(256) == "no error");
  CHECK(s.text(255) == "256 bytes of shared memory, the limit is 255");
  s.kernel.buffers.push_back({"more", f64, Space::shared, 100, true});
  CHECK(s.text(1024) == "1056 bytes of shared memory, the limit is 1024");
  CHECK(broken([](Small& t) { t.kernel.buffers[Small::tile].elements = t.B; }) ==
        "buffer tile has no constant size");
  CHECK(broken([](Small& t) { t.kernel.index_type = f32; }) == "the index type is not an integer");
}

TEST_CASE("reductions and their regions", "[kernel]") {
  const auto reduction = [](const std::function<void(Reduction&)>& change) {
    return broken([&](Small& s) { change(s.kernel.reductions[0]); });
  };
  CHECK(reduction([](Reduction& r) { r.left.clear(); }) == "a reduction's region does not match its state");
  CHECK(reduction([](Reduction& r) { r.state.clear(); }) == "a reduction's region does not match its state");
  CHECK(reduction([](Reduction& r) { r.state = {f64}; }) == "a variable is defined with another type");
  CHECK(reduction([](Reduction& r) { r.region.clear(); }) == "a variable is used before it is defined");
  CHECK(reduction([](Reduction& r) { r.region[0].node = Barrier{}; }) ==
        "a combiner region holds more than lets of values");
  CHECK(reduction([](Reduction& r) {
          r.region[0].node = Let{Small::combined, Load{Small::x, 0, {}}};
        }) == "a combiner region holds more than lets of values");
  CHECK(broken([](Small& s) {
          s.body[2].node = Combine{1, {Small::acc}, {Small::value}};
        }) == "a reduction does not exist");
  CHECK(broken([](Small& s) {
          s.body[2].node = Combine{0, {Small::acc}, {}};
        }) == "a combination does not match its reduction");
  CHECK(broken([](Small& s) {
          s.body[3].node = WarpCombine{0, {}};
        }) == "a combination does not match its reduction");
  CHECK(broken([](Small& s) {
          s.body[0].node = Declare{0, {Small::acc, Small::value}};
        }) == "a declaration does not match its reduction");
}

TEST_CASE("barriers of the grid and their counters", "[kernel]") {
  const auto waits = [](const Dim& grid, int cluster, std::int64_t counters, GridBarrier barrier) {
    return broken([&](Small& s) {
      s.kernel.grid = grid;
      s.B = grid;
      s.kernel.cluster = cluster;
      barrier.counter = static_cast<BufferId>(s.kernel.buffers.size());
      s.kernel.buffers.push_back({"count", i32, Space::global, counters, true});
      s.body = {{barrier, {}}};
    });
  };
  const std::string counts = "a grid barrier counts in count", of_groups = "a grid barrier of groups of ";
  const Dim B = Dim::symbol("B", {.min = 1, .max = 1000});
  CHECK(waits(B, 1, 1, {}) == "no error");
  CHECK(waits(9, 1, 1, {.first = 1}) == counts);
  CHECK(waits(9, 1, 4, {.first = 1, .group = 3}) == "no error");
  CHECK(waits(9, 1, 3, {.first = 1, .group = 3}) == counts);
  CHECK(waits(9, 1, 4, {.first = 0, .group = 3}) == counts);  // there all blocks count
  CHECK(waits(9, 1, 4, {.first = 1, .group = 1}) == of_groups + "1 blocks");
  CHECK(waits(B, 1, 400, {.first = 1, .group = 3}) == of_groups + "3 blocks");
  CHECK(waits(9, 3, 4, {.first = 1, .group = 3}) == of_groups + "3 blocks");
}
