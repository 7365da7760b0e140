// Divisions by what a loop does not change. SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/divide_by_invariants.hpp"

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
  g.output("y", body(x, sum(x, {1}, true)));
  return stitched(g, {.splits = schedule::nest_of_lanes(128, 32, vector), .register_cache = hold});
}

}  // namespace

TEST_CASE("divisions by a row's total become one reciprocal and corrections", "[kernel]") {
  const Kernel kernel = of_rows([](const Tensor& x, const Tensor& s) { return x / s; }, 4, 32);
  check_golden("kernel/divide_by_invariants.txt", print(kernel::vectorise(kernel)) + print(divided(kernel)));
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
  g.output("y", x / sum(x, {1}, true));
  const Kernel few =
      divided(stitched(g, {.splits = schedule::nest_of_lanes(128, 32, 2), .register_cache = 32}));
  INFO(print(few));
  CHECK(times(few, "vector_divide") == 0);
}
