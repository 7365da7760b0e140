// custom_call with a grid barrier: fuse makes and zeroes the counter, and the kernel's blocks wait for each
// other on every device.
// SPDX-License-Identifier: Apache-2.0
#include "base/access.hpp"
#include "compile/compile.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "ir/graph/hash.hpp"
#include "plan/fallback_launches.hpp"
#include "schedule/schedule_support.hpp"
#include "support/grid_kernels.hpp"
#include "support/op_sweep.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// Every block takes its neighbour's number and puts it, plus one, at its own index, n times over. What a
/// thread read before a barrier, another one has written since.
CustomKernel turns(const Dim& n) {
  CustomKernel kernel{
      .name = "turns",
      .source =
          R"(FUSE_KERNEL(32) turns(global<const int> x, global<int> y, global<int> barrier, long long n) {
  const long long i = (long long)blockIdx.x * 32 + threadIdx.x, next = (i + 32) % (n * 32);
  store(y, i, load(x, i));
  grid_barrier(barrier);
  for (long long round = 0; round < n; ++round) {
    const int v = load(y, next);
    grid_barrier(barrier);
    store(y, i, v + 1);
    grid_barrier(barrier);
  }
}
)",
      .threads = 32,
      .grid = n,
      .extents = {n},
      .grid_barrier = true};
  kernel.reference = [](std::span<const HostView> operands, HostView result) {
    const std::int64_t n = operands[0].dims[0];
    for (std::int64_t i = 0; i < n * 32; ++i) {  // n turns come back to the start
      static_cast<std::int32_t*>(result.data)[i] =
          static_cast<const std::int32_t*>(operands[0].data)[i] + static_cast<std::int32_t>(n);
    }
  };
  return kernel;
}

}  // namespace

TEST_CASE("custom_call with a grid barrier: between our own ops, with a symbolic grid",
          "[ops][device][cuda-text]") {
  for (const std::int64_t n : {0, 1, 5}) {
    OpSweep sweep("grid_barrier");
    const Dim N = sweep.graph().dim("N", {.min = 0, .max = 1000, .hint = 4});
    const Tensor x = sweep.input(i32, {n, 64}, {N, 64});
    const Tensor sums = custom_call(row_sums_and_total(N), {x + 1}, i32, {2 * N});
    sweep.expect_exact("sums", sums * 2);
    sweep.expect_exact("turned", custom_call(turns(N), {slice(x, 1, 0, 32)}, i32, {N, 32}));
    sweep.run_on_test_devices({{"N", n}});
  }
}

TEST_CASE("custom_call with a grid barrier: a count that an earlier run left does no harm",
          "[ops][device][cuda-text]") {
  Graph g("again");
  const Tensor x = g.input("x", i32, {3, 64});
  g.output("y", custom_call(row_sums_and_total(3), {x}, i32, {6}));
  for (const Device& device : test_devices()) {
    Session session(compile(g, device));
    for (const int value : {1, 2, 3}) {
      HostTensor in = HostTensor::make(i32, {3, 64});
      for (std::int64_t i = 0; i < 192; ++i) in.set(i, value);
      session.set("x", in.data);
      session.run();
      HostTensor out = HostTensor::make(i32, {6});
      session.get("y", out.data);
      for (std::int64_t i = 0; i < 6; ++i) CHECK(out.get(i) == (i < 3 ? 64 : 192) * value);
    }
  }
}

TEST_CASE("custom_call with a grid barrier: one step zeroes the counters of all", "[ops]") {
  Graph two("two");
  for (const char* name : {"a", "b"}) {
    two.output(std::string("y") + name,
               custom_call(row_sums_and_total(3), {two.input(name, i32, {3, 64})}, i32, {6}));
  }
  const std::string both = schedule::print(run_pipeline(ir_of(two), target_profile("h200")).plan);
  INFO(both);
  CHECK(both.find("memset v4 = 0") == both.rfind("memset"));
  CHECK(both.find("i32[1] in v4 at 0\n") != std::string::npos);
  CHECK(both.find("i32[1] in v4 at 16\n") != std::string::npos);

  Graph g("planned");
  const Tensor x = g.input("x", i32, {3, 64});
  g.output("y", custom_call(row_sums_and_total(3), {x}, i32, {6}));
  const Compiled compiled = run_pipeline(ir_of(g), target_profile("h200"));
  const std::string plan = schedule::print(compiled.plan);
  INFO(plan);
  CHECK(plan.find("v2 temporary t2: i32[4]\n  v3 temporary t3: i32[1] in v2 at 0\n") != std::string::npos);
  CHECK(plan.find("step 0 zero.barriers: memset v2 = 0 reads [] writes [v2] nodes []\n") !=
        std::string::npos);
  CHECK(plan.find(
            "step 1 row_sums_and_total: kernel #0 grid 3 buffers [v0, v1, v3] extents [3] cooperative reads "
            "[v0, v3] writes [v1] nodes [%1]\n") != std::string::npos);
  CHECK(compiled.source.kernels.at(0).cooperative);
  // What other blocks write is read again behind the barrier: no pointer to it may be a restrict one.
  CHECK(compiled.source.prelude.find("using type = T*;") != std::string::npos);
  CHECK(compiled.source.prelude.find("using global = T* __restrict__") == std::string::npos);
}

TEST_CASE("custom_call with a grid barrier: the text form keeps it, and it tells kernels apart", "[ops]") {
  Graph g("printed");
  const Tensor x = g.input("x", i32, {3, 64});
  g.output("y", custom_call(row_sums_and_total(3), {x}, i32, {6}));
  const Graph again = Graph::parse(g.to_string());
  CHECK(again.to_string() == g.to_string());
  CHECK(g.to_string().find("grid_barrier = true") != std::string::npos);
  ir::Graph other = ir_of(g);
  auto& attr = std::get<ir::CustomAttr>(other.nodes.back().attr);
  const ir::CustomAttr before = attr;
  CHECK(before == attr);
  attr.grid_barrier = false;
  CHECK_FALSE(before == attr);
}

TEST_CASE("custom_call with a grid barrier: a text that calls it must say so", "[ops]") {
  Graph g("refused");
  const Tensor x = g.input("x", i32, {3, 64});
  const auto with = [&](const std::string& from, const std::string& to) {
    CustomKernel kernel = row_sums_and_total(3);
    kernel.grid_barrier = false;
    kernel.source.replace(kernel.source.find(from), from.size(), to);
    return custom_call(kernel, {x}, i32, {6});
  };
  CHECK_THROWS_WITH(with("int", "int"),
                    Catch::Contains("the kernel 'row_sums_and_total' calls grid_barrier and does not say") &&
                        Catch::Contains("set grid_barrier"));
  CHECK_THROWS_WITH(with("grid_barrier(barrier)", "grid_barrier (barrier)"),
                    Catch::Contains("calls grid_barrier"));
  CHECK_NOTHROW(with("grid_barrier(barrier);", "// grid_barrier(barrier) would wait"));
  CHECK_NOTHROW(with("grid_barrier(barrier)", "my_grid_barrier(barrier)"));
  CHECK_THROWS_WITH(
      with("grid_barrier(barrier)", "cluster_barrier()"),
      Catch::Contains("'row_sums_and_total' calls cluster_barrier, and a user's kernel has no clusters"));
  CHECK_THROWS_WITH(
      with("grid_barrier(barrier)", "group_barrier(barrier, 0, 2)"),
      Catch::Contains("'row_sums_and_total' calls group_barrier, and a user's kernel has one counter") &&
          Catch::Contains("grid_barrier"));
}

TEST_CASE("custom_call with parts: what they must be", "[ops]") {
  Graph g("parts");
  const Tensor x = g.input("x", i32, {3, 64});
  const auto call = [&](const auto& change) {
    CustomKernel kernel = row_sums_and_total_in_parts(3);
    change(kernel);
    return custom_call(kernel, {x}, i32, {6});
  };
  CHECK_THROWS_WITH(call([](CustomKernel& k) { k.grid_barrier = false, k.source = k.parts[0]; }),
                    Catch::Contains("the text is not one kernel 'row_sums_and_total'"));
  CHECK_THROWS_WITH(call([](CustomKernel& k) {
                      k.grid_barrier = false;
                      k.source = k.parts[0];
                      k.name += "_0";
                    }),
                    Catch::Contains("the kernel 'row_sums_and_total_0' has parts and no grid barrier"));
  CHECK_THROWS_WITH(call([](CustomKernel& k) { std::swap(k.parts[0], k.parts[1]); }),
                    Catch::Contains("the text is not one kernel 'row_sums_and_total_0'"));
  CHECK_THROWS_WITH(
      call([](CustomKernel& k) { k.parts[1].insert(k.parts[1].rfind('}'), "grid_barrier(barrier);\n"); }),
      Catch::Contains("part 'row_sums_and_total_1' calls grid_barrier"));
  CHECK_NOTHROW(call([](CustomKernel&) {}));
}

TEST_CASE("custom_call with parts: the text form keeps them, and they tell kernels apart", "[ops]") {
  Graph g("printed");
  const Tensor x = g.input("x", i32, {3, 64});
  g.output("y", custom_call(row_sums_and_total_in_parts(3), {x}, i32, {6}));
  const Graph again = Graph::parse(g.to_string());
  CHECK(again.to_string() == g.to_string());
  CHECK(ir::hash(ir_of(again)) == ir::hash(ir_of(g)));
  ir::Graph other = ir_of(g);
  auto& attr = std::get<ir::CustomAttr>(other.nodes.back().attr);
  const ir::CustomAttr before = attr;
  attr.parts.pop_back();
  CHECK_FALSE(before == attr);
  CHECK(ir::hash(other) != ir::hash(ir_of(g)));
}

TEST_CASE("custom_call with parts: the plan names them, and can be cut into them", "[ops]") {
  Graph g("planned");
  const Tensor x = g.input("x", i32, {3, 64});
  g.output("y", custom_call(row_sums_and_total_in_parts(3), {x}, i32, {6}));
  const Compiled compiled = run_pipeline(ir_of(g), target_profile("h200"));
  const std::string plan = schedule::print(compiled.plan);
  INFO(plan);
  CHECK(plan.find(
            "step 1 row_sums_and_total: kernel #0 grid 3 buffers [v0, v1, v3] extents [3] fallback [#1, #2] "
            "cooperative reads [v0, v3] writes [v1] nodes [%1]\n") != std::string::npos);
  CHECK_FALSE(compiled.source.kernels.at(1).cooperative);
  CHECK(compiled.source.kernels.at(2).params.size() == 3);

  const schedule::Plan cut = schedule::with_fallbacks(compiled.plan, schedule::has_fallback);
  schedule::verify(cut);
  const std::string parts = schedule::print(cut);
  INFO(parts);
  CHECK(parts.find("  step 0 row_sums_and_total_0: kernel #1 grid 3 buffers [v0, v1] extents [3] reads [v0] "
                   "writes [v1] nodes [%1]\n"
                   "  step 1 row_sums_and_total_1: kernel #2 grid 3 buffers [v0, v1] extents [3] continues "
                   "reads [v0, v1] writes [v1] nodes [%1]\n}") != std::string::npos);
  const auto none = [](const schedule::Step&) { return false; };
  CHECK(schedule::print(schedule::with_fallbacks(compiled.plan, none)) == plan);

  schedule::Plan broken = cut;
  broken.steps[1].continues = false;
  CHECK(thrown_by([&] { schedule::verify(broken); }).find("is written 2 times, not once") !=
        std::string::npos);
  broken = cut;
  broken.steps[0].continues = true;
  CHECK(thrown_by([&] {
          schedule::verify(broken);
        }).find("continues what the step before it did not begin") != std::string::npos);
}

TEST_CASE("custom_call with a grid barrier: blocks that do not fit the device", "[ops][emulated]") {
  Graph g("large");
  const Tensor x = g.input("x", i32, {7, 64});
  g.output("y", custom_call(row_sums_and_total(7), {x}, i32, {14}));
  const Executable executable = compile(g, Device::emulated({.profile = "tiny3"}));
  CHECK_THROWS_WITH(executable.prepare(),
                    Catch::Contains("kernel 'row_sums_and_total' has 7 blocks that wait for each other, and "
                                    "tiny3 holds 6 of them at a time") &&
                        Catch::Contains("grid_barrier_test.cpp:") && Catch::Contains("custom_call"));
}

TEST_CASE("custom_call with parts: blocks that do not fit the device run in parts", "[ops][emulated]") {
  OpSweep sweep("large");
  const Dim N = sweep.graph().dim("N", {.min = 0, .max = 1000, .hint = 4});
  const Tensor x = sweep.input(i32, {7, 64}, {N, 64});
  sweep.expect_exact("y", custom_call(row_sums_and_total_in_parts(N), {x}, i32, {2 * N}) + 1);
  sweep.run(Device::emulated({.profile = "tiny3"}), {{"N", 7}});

  Graph g("fits or not");
  const Dim M = g.dim("M", {.min = 0, .max = 1000, .hint = 4});
  g.output("y", custom_call(row_sums_and_total_in_parts(M), {g.input("x", i32, {M, 64})}, i32, {2 * M}));
  const Executable executable = compile(g, Device::emulated({.profile = "tiny3"}));
  CHECK(executable.prepare({{"M", 6}}).launches() == 1);
  CHECK(executable.prepare({{"M", 7}}).launches() == 2);
  CHECK(executable.prepare({{"M", 7}}).explain().find("'row_sums_and_total_1'") != std::string::npos);
}

TEST_CASE("custom_call with a grid barrier: two on two streams of a device without room for both",
          "[ops][emulated][streams]") {
  Graph g("two");
  for (const char* name : {"a", "b"}) {
    g.output(std::string("y") + name,
             custom_call(row_sums_and_total(3), {g.input(name, i32, {3, 64})}, i32, {6}));
  }
  for (const bool ordered : {true, false}) {
    INFO("ordered " << ordered);
    Compiled compiled = run_pipeline(ir_of(g), target_profile("tiny2"));
    REQUIRE(compiled.plan.steps.size() == 3);  // the counters set to zero, two kernels
    compiled.streams = {
        .max_streams = 2, .order = {0, 2, 1}, .stream = {0, 0, 1}, .order_cooperative = ordered};
    const Device device = Device::emulated({.profile = "tiny2"});
    Session session(runtime::make_executable(ir_of(g), std::move(compiled), device));
    CHECK(session.prepared().streams() == 2);
    std::vector<std::int32_t> x(3 * 64);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::int32_t>(i);
    session.set("a", std::as_bytes(std::span(x)));
    session.set("b", std::as_bytes(std::span(x)));
    if (!ordered) {
      CHECK_THROWS_WITH(session.run(), Catch::Contains("deadlock on tiny2 (greedy)"));
      continue;
    }
    session.run();
    std::vector<std::int32_t> y(6);
    for (const char* name : {"ya", "yb"}) {
      session.get(name, std::as_writable_bytes(std::span(y)));
      CHECK(y == std::vector<std::int32_t>{2016, 6112, 10208, 18336, 18336, 18336});
    }
  }
}
