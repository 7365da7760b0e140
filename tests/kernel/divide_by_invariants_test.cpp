// Divisions by what a loop does not change. SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/divide_by_invariants.hpp"

#include <functional>

#include "ir/kernel/passes/vectorise.hpp"
#include "kernel/kernel_support.hpp"
#include "schedule/nest/usual_nests.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using kernel::Kernel;

namespace {

Kernel divided(const Kernel& kernel) {
  Kernel result = kernel::divide_by_invariants(kernel::vectorise(kernel));
  kernel::verify(result, target_profile("h200").shared_per_block);
  return result;
}

std::size_t times(const Kernel& kernel, const std::string& what) {
  const std::string text = print(kernel);
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

/// The one kernel of the graph, all of whose values are stages of it.
Kernel stitched(const Graph& from, const schedule::Choices& choices) {
  const ir::Graph graph = prepared(from);
  const schedule::Partition partition = schedule::partition(graph);
  REQUIRE(partition.segments.size() == 1);
  const Target target = target_profile("h200");
  return codegen::lower(graph, make_schedule(graph, partition.segments[0], {{choices}}, target), 0, "k")
      .kernel;
}

/// y = body(x, sum of x over the row), rows of 256.
Kernel of_rows(const std::function<Tensor(const Tensor&, const Tensor&)>& body, int vector, int hold) {
  Graph g("rows");
  const Tensor x = g.input("x", f32, {64, 256});
  g.output("y", body(x, sum(x, {1}, {.keep_dims = true})));
  return stitched(g, {.splits = schedule::nest_of_lanes(128, 32, vector), .register_cache = hold});
}

}  // namespace

TEST_CASE("divisions by a row's total become one reciprocal and corrections", "[kernel]") {
  const Kernel kernel = of_rows([](const Tensor& x, const Tensor& s) { return x / s; }, 4, 32);
  check_golden("kernel/divide_by_invariants.txt", print(kernel::vectorise(kernel)) + print(divided(kernel)));
}

TEST_CASE("lanes of a CPU divide where the division stands", "[kernel]") {
  const Kernel before = of_rows([](const Tensor& x, const Tensor& s) { return x / s; }, 1, 32);
  const Kernel kernel = kernel::divide_lanes_by_invariants(before);
  kernel::verify(kernel, target_profile("h200").shared_per_block);
  INFO(print(kernel));
  CHECK(times(kernel, "reciprocal of") == 1);
  CHECK(times(kernel, "= quotient ") == 1);
  CHECK(times(kernel, "= div ") == 0);
  CHECK(kernel.buffers.size() == before.buffers.size());
}

TEST_CASE("a loop that is not unrolled divides one element at a time", "[kernel]") {
  const Kernel kernel = divided(of_rows([](const Tensor& x, const Tensor& s) { return x / s; }, 1, 0));
  INFO(print(kernel));
  CHECK(times(kernel, "reciprocal of") == 1);
  CHECK(times(kernel, "vector_divide") == 1);
  CHECK(times(kernel, "= div ") == 0);
}

TEST_CASE("what stands around divisions goes on from trip to trip", "[kernel]") {
  // exp(x) is read before and behind both divisions, which have two divisors.
  const Kernel kernel = divided(of_rows(
      [](const Tensor& x, const Tensor& s) {
        const Tensor e = exp(x);
        return e / s / (s + 1.0) * e;
      },
      4, 32));
  INFO(print(kernel));
  CHECK(times(kernel, "reciprocal of") == 2);
  CHECK(times(kernel, "vector_divide") == 2);
  CHECK(times(kernel, "= exp ") == 1);
  CHECK(times(kernel, "= div ") == 0);
}

TEST_CASE("a divisor of its own for each element, and a loop too short to pay, stay divisions", "[kernel]") {
  const Kernel own = divided(of_rows([](const Tensor& x, const Tensor& s) { return s / x; }, 4, 32));
  CHECK(times(own, "vector_divide") == 0);
  CHECK(times(own, "= div ") == 1);
  Graph g("short");
  const Tensor x = g.input("x", f32, {64, 64});
  g.output("y", x / sum(x, {1}, {.keep_dims = true}));
  const Kernel few =
      divided(stitched(g, {.splits = schedule::nest_of_lanes(128, 32, 2), .register_cache = 32}));
  INFO(print(few));
  CHECK(times(few, "vector_divide") == 0);
}

namespace {

/// for i in [0, 8) unrolled { n = load a[i]; <first>; q = n / s; <rest>; store b[i] = q } of one thread.
struct Divided {
  enum : kernel::VarId { n, s, q, v, state };
  enum : kernel::BufferId { a, b, own, x, y };
  Kernel kernel;
  kernel::For loop{.name = "i", .begin = 0, .end = 8, .unrolled = true, .body = {}};
  std::vector<kernel::Stmt> first, rest;

  Divided() {
    using namespace fuse::kernel;  // NOLINT
    kernel.name = "divided";
    kernel.block_threads = 32;
    kernel.buffers = {{"a", f32, Space::local, 16, true},
                      {"b", f32, Space::local, 16, true},
                      {"own", f32, Space::local, 16, true},
                      {"x", f32, Space::global, 16, true},
                      {"y", f32, Space::global, 16, true}};
    kernel.vars = {{"n", f32}, {"s", f32}, {"q", f32}, {"v", f32}, {"state", f32}};
    kernel.reductions.push_back({.state = {f32}, .identity = {{}}, .region = {}, .single = ir::Op::add});
  }
  static Dim element() { return Dim::index("i", 8); }
  static kernel::Stmt load(kernel::VarId var, kernel::BufferId from) {
    return {kernel::Let{var, kernel::Load{from, element(), {}, {}}}};
  }
  static kernel::Stmt store(kernel::BufferId to, kernel::VarId var) {
    return {kernel::Store{to, element(), var}};
  }

  Kernel run() {
    using namespace fuse::kernel;  // NOLINT
    loop.body = {load(n, a)};
    loop.body.insert(loop.body.end(), first.begin(), first.end());
    loop.body.push_back({Let{q, Compute{ir::Op::div, {n, s}}}});
    loop.body.insert(loop.body.end(), rest.begin(), rest.end());
    loop.body.push_back(store(b, q));
    kernel.body = {{Let{s, Constant{3, 3}}}, {Declare{0, {state}, {}}}, {loop}};
    return kernel::divide_by_invariants(kernel);
  }
};

bool divides(
    std::vector<kernel::Stmt> first, std::vector<kernel::Stmt> rest,
    const std::function<void(Divided&)>& change = [](Divided&) {}) {
  Divided divided;
  divided.first = std::move(first);
  divided.rest = std::move(rest);
  change(divided);
  return times(divided.run(), "vector_divide") == 1;
}

}  // namespace

TEST_CASE("a loop is parted at a division only where its trips meet in nothing but values", "[kernel]") {
  using D = Divided;
  using namespace fuse::kernel;  // NOLINT
  CHECK(divides({}, {}));
  // Memory of all threads: what is stored first may not be read or overwritten behind, since other names may
  // mean it.
  CHECK(divides({D::load(D::v, D::x)}, {}));
  CHECK(divides({D::load(D::v, D::x)}, {D::store(D::y, D::q)}));
  CHECK(divides({D::store(D::x, D::n)}, {}));
  CHECK_FALSE(divides({D::store(D::x, D::n)}, {D::load(D::v, D::y)}));
  CHECK_FALSE(divides({D::store(D::x, D::n)}, {D::store(D::y, D::q)}));
  CHECK_FALSE(divides({D::load(D::v, D::x)}, {D::store(D::x, D::q)}));
  // Arrays of a thread's own are what they are called.
  CHECK(divides({D::store(D::own, D::n)}, {D::load(D::v, D::x)}));
  CHECK_FALSE(divides({D::store(D::own, D::n)}, {D::load(D::v, D::own)}));
  CHECK_FALSE(divides({D::store(D::own, D::n)}, {D::store(D::own, D::q)}));
  CHECK_FALSE(divides({D::load(D::v, D::own)}, {D::store(D::own, D::q)}));
  // A state that the first part changes and the second reads.
  const Stmt combined{Combine{0, {D::state}, {D::n}}};
  CHECK(divides({combined}, {}));
  CHECK_FALSE(divides({combined}, {D::store(D::y, D::state)}));
  // Loops, conditions and barriers are not parted, nor loops that do not count from 0 one by one.
  CHECK_FALSE(divides({{Barrier{}}}, {}));
  CHECK_FALSE(divides({}, {{Barrier{}}}));
  CHECK_FALSE(divides({}, {}, [](D& d) { d.loop.begin = 1; }));
  CHECK_FALSE(divides({}, {}, [](D& d) { d.loop.step = 2; }));
}

TEST_CASE("behind a division, values are made again where that costs nothing, and kept otherwise",
          "[kernel]") {
  using D = Divided;
  using namespace fuse::kernel;  // NOLINT
  const auto kept = [](Stmt stmt) {
    Divided divided;
    divided.first = {std::move(stmt)};
    divided.rest = {D::store(D::y, D::v)};
    const Kernel result = divided.run();
    INFO(print(result));
    CHECK(times(result, "vector_divide") == 1);
    CHECK(times(result, "store v_k[i] = v") == times(result, "let v: f32 = load v_k[i_1]"));
    return times(result, "store v_k[i] = v") > 0;
  };
  CHECK_FALSE(kept({Let{D::v, Constant{2, 2}}}));
  CHECK_FALSE(kept(D::load(D::v, D::own)));
  CHECK(kept(D::load(D::v, D::x)));
  CHECK(kept({Let{D::v, Compute{ir::Op::exp, {D::n}}}}));
  CHECK(kept({Let{D::v, Load{D::own, D::element(), D::n, {}}}}));
}

TEST_CASE("behind a division, places are named again, those that are data too", "[kernel]") {
  using D = Divided;
  using namespace fuse::kernel;  // NOLINT
  const Dim p = Dim::index("p", 16);
  for (const bool data : {false, true}) {
    Divided divided;
    divided.kernel.vars.push_back({"place", i32});
    const VarId place = 5;
    divided.first = {{Let{place, IndexValue{D::element()}}},
                     data ? Stmt{BindData{"p", place, 16}} : Stmt{Bind{"p", D::element() + 1}}};
    divided.rest = {{Store{D::y, p, D::q}}};
    const Kernel result = divided.run();
    INFO(print(result));
    CHECK(times(result, "vector_divide") == 1);
    CHECK(times(result, "bind p = ") == 2);
    CHECK(times(result, "let place: ") == (data ? 2U : 1U));  // made again, or kept, for the second name
  }
}

TEST_CASE("four divisions or more by one number pay, in one loop or in several", "[kernel]") {
  using D = Divided;
  using namespace fuse::kernel;  // NOLINT
  // The trips of the loop that divides, and of loops around it; all of them are unrolled.
  const auto pays = [](std::vector<std::pair<int, int>> bounds) {
    Divided divided;
    divided.kernel.body = {{Let{D::s, Constant{3, 3}}}};
    std::vector<Stmt> body = {{Let{D::q, Compute{ir::Op::div, {D::n, D::s}}}}};
    int depth = 0;
    for (const auto& [begin, end] : bounds) {
      For loop{.name = "i" + std::to_string(depth++),
               .begin = begin,
               .end = end,
               .unrolled = true,
               .body = std::move(body)};
      body = {{std::move(loop)}};
    }
    divided.kernel.body.push_back(std::move(body[0]));
    return times(kernel::divide_by_invariants(divided.kernel), "reciprocal of") == 1;
  };
  CHECK(pays({{0, 4}}));
  CHECK_FALSE(pays({{0, 3}}));
  CHECK_FALSE(pays({{2, 5}}));
  CHECK(pays({{0, 2}, {0, 2}}));
  CHECK_FALSE(pays({{0, 3}, {0, 1}}));
  CHECK_FALSE(pays({{0, 1}, {0, 3}}));
  CHECK_FALSE(pays({{2, 4}, {0, 1}}));
  CHECK_FALSE(pays({{0, 3}, {0, 1}, {0, 1}}));
}

TEST_CASE("what is divided as a vector: unrolled loops of eight elements or fewer, of f32", "[kernel]") {
  using D = Divided;
  using namespace fuse::kernel;  // NOLINT
  const auto elements = [](const std::function<void(Divided&)>& change) {
    Divided divided;
    change(divided);
    const Kernel result = divided.run();
    std::vector<std::int64_t> found;
    for (const kernel::Buffer& buffer : result.buffers) {
      if (buffer.name == "q_n") found.push_back(buffer.elements.constant());
    }
    CHECK(times(result, "store q_n[") == found.size());
    return found;
  };
  using Elements = std::vector<std::int64_t>;
  CHECK(elements([](Divided&) {}) == Elements{8});
  CHECK(elements([](Divided& d) { d.loop.end = 9; }) == Elements{1});
  CHECK(elements([](Divided& d) { d.loop.unrolled = false; }) == Elements{1});
  for (const DType dtype : {f64, f16, i32})
    CHECK(elements([&](Divided& d) { d.kernel.vars[D::q].dtype = dtype; }) == Elements{});
  // By what the loop computes itself, and in a loop that threads share among them.
  CHECK(elements([](Divided& d) { d.first = {D::load(D::s, D::x)}; }) == Elements{});
  CHECK(elements([](Divided& d) { d.loop.parallel = Parallel::lane; }) == Elements{});
  // Beside a division by the loop's own numbers.
  CHECK(elements([](Divided& d) {
          d.rest = {{Let{D::v, Compute{ir::Op::div, {D::q, D::n}}}}};
        }) == Elements{8});
}

TEST_CASE("a reciprocal is of one loop: the next one may divide by another number of that name", "[kernel]") {
  using D = Divided;
  using namespace fuse::kernel;  // NOLINT
  Divided divided;
  Kernel kernel = divided.run();
  const Stmt loop = kernel.body.back();
  kernel.body = divided.kernel.body;
  kernel.body.push_back(kernel.body.back());
  CHECK(times(kernel::divide_by_invariants(kernel), "reciprocal of s") == 2);
  std::get<For>(kernel.body.back().node)
      .body.insert(std::get<For>(kernel.body.back().node).body.begin(), D::load(D::s, D::x));
  const Kernel changed = kernel::divide_by_invariants(kernel);
  INFO(print(changed));
  CHECK(times(changed, "reciprocal of s") == 1);
  CHECK(times(changed, "= div n, s") == 1);
}
