// What a block of rows asks for while it computes. SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/prefetch_next_rows.hpp"

#include <functional>

#include "compile/pipeline/pipeline.hpp"
#include "ir/kernel/passes/elide_conditions.hpp"
#include "kernel/kernel_support.hpp"
#include "schedule/nest/usual_nests.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using kernel::Kernel;

namespace {

using Body = std::function<Tensor(Graph&, const Tensor&)>;

/// The one kernel of the body's rows, one row for each block, which lanes keep `kept` elements of.
Kernel of_rows(Graph g, const Dim& length, const Body& body, int kept = 0) {
  const Tensor x = g.input("x", f32, {64, length});
  g.output("y", body(g, x));
  const ir::Graph graph = prepared(g);
  const schedule::Partition partition = schedule::partition(graph);
  REQUIRE(partition.segments.size() == 1);
  const Target target = target_profile("h200");
  const schedule::Choices choices{.splits = schedule::nest_of_lanes(32, 32, 1), .register_cache = kept};
  Kernel kernel = kernel::prefetch_next_rows(kernel::elide_conditions(
      codegen::lower(graph, make_schedule(graph, partition.segments[0], {{choices}}, target), 0, "k")
          .kernel));
  kernel::verify(kernel, target.shared_per_block);
  return kernel;
}

/// The statements that ask, one for each line.
std::string asked(const Kernel& kernel) {
  const std::string text = print(kernel);
  std::string result;
  for (std::size_t at = text.find("prefetch"); at != std::string::npos; at = text.find("prefetch", at + 1))
    result += text.substr(at, text.find("  #", at) - at) + "\n";
  return result;
}

Kernel of_rows(std::int64_t length, const Body& body, int kept = 0) {
  return of_rows(Graph("rows"), length, body, kept);
}

Tensor scaled_by_total(Graph& g, const Tensor& x) {
  const Tensor weight = g.input("w", f32, {x.dims()[1]});
  return x * sum(x, {1}, {.keep_dims = true}) * broadcast_to(weight, x.dims());
}

}  // namespace

TEST_CASE("the loop behind the one that loads asks for the row of the next block", "[kernel][golden]") {
  const Kernel kernel = of_rows(256, scaled_by_total, 8);
  check_golden("kernel/prefetch_next_rows.txt", print(kernel));
  CHECK(asked(kernel) == "prefetch x[32 * k_1 + lane + 256 * row_next] to L1\n");
}

TEST_CASE("longer rows go to the second cache, and rows that fill it are not asked for", "[kernel]") {
  INFO(print(of_rows(2080, scaled_by_total)));
  CHECK(asked(of_rows(2048, scaled_by_total)).ends_with("to L1\n"));
  CHECK(asked(of_rows(2080, scaled_by_total)).ends_with("to L2\n"));
  CHECK(asked(of_rows(65536, scaled_by_total)).ends_with("to L2\n"));
  CHECK(asked(of_rows(65568, scaled_by_total)).empty());
}

TEST_CASE("operands of one row share what may be asked for, and none is asked for twice", "[kernel]") {
  const auto of_two = [](std::int64_t length) {
    return asked(of_rows(length, [](Graph& g, const Tensor& x) {
      const Tensor other = g.input("other", f32, x.dims());
      return scaled_by_total(g, x * other) * sum(exp(x), {1}, {.keep_dims = true});
    }));
  };
  CHECK(of_two(1024) ==
        "prefetch x[c_1 + 1024 * row_next] to L1\nprefetch other[c_1 + 1024 * row_next] to L1\n");
  CHECK(of_two(2048).ends_with("to L2\n"));
  CHECK(of_two(40000) == "prefetch x[c_1 + 40000 * row_next] to L2\n");
}

TEST_CASE("a block that takes rows in turns asks for the row of its next turn", "[kernel]") {
  Graph g("turns");
  const Tensor x = g.input("x", f32, {4096, 256}), total = sum(x, {1}, {.keep_dims = true});
  g.output("dx", x * total);
  g.output("dgamma", sum(x * total, {0}));
  const std::string text = run_pipeline(ir_of(g), target_profile("x86-64-v4")).source.text();
  INFO(text);
  CHECK(text.find(" + 256 * row + ") != std::string::npos);
  CHECK(text.find("prefetch<1>(x, ") != std::string::npos);
}

TEST_CASE("a length with a range is taken at its hint", "[kernel]") {
  const auto of_hint = [](std::int64_t hint) {
    Graph g("rows");
    const Dim length = g.dim("T", {.min = 1, .max = 1 << 20, .hint = hint});
    return asked(of_rows(std::move(g), length, scaled_by_total));
  };
  CHECK(of_hint(100).ends_with("to L1\n"));
  CHECK(of_hint(10000).ends_with("to L2\n"));
  CHECK(of_hint(1000000).empty());
}

TEST_CASE("nothing is asked for by a kernel with one loop, nor where rows are found by a division",
          "[kernel]") {
  CHECK(asked(of_rows(256, [](Graph&, const Tensor& x) { return sum(x, {1}); })).empty());
  CHECK(asked(of_rows(256, [](Graph& g, const Tensor& x) {
          const Tensor turned = reshape(transpose(reshape(x, {8, 8, 256}), {1, 0, 2}), {64, 256});
          return scaled_by_total(g, turned);
        })).empty());
}
