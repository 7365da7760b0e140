// A kernel is passed what it mentions and nothing else, and never more than a launch takes.
// SPDX-License-Identifier: Apache-2.0
#include "schedule/segments/argument_limit.hpp"

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "schedule/schedule_support.hpp"
#include "support/sanitized.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

std::size_t arguments(const kernel::Kernel& kernel) {
  std::size_t buffers = 0;
  for (const kernel::Buffer& buffer : kernel.buffers) buffers += buffer.space == kernel::Space::global;
  return buffers + kernel.extents.size();
}

/// Concats of two, one behind the other: each brings an input and a symbol.
Graph growing(int length) {
  Graph g("growing");
  Tensor x = g.input("x", f32, {8});
  for (int i = 0; i < length; ++i) {
    const std::string n = std::to_string(i);
    const Dim size = g.dim("S" + n, {.min = 1, .max = 100});
    x = concat({x, g.input("x" + n, f32, {size})}, 0);
  }
  g.output("y", x);
  return g;
}

}  // namespace

TEST_CASE("symbols that a kernel does not mention take none of its arguments", "[partition][arguments]") {
  Graph g("symbols");
  const std::size_t count = fewer<std::size_t>(600);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    const Dim size = g.dim("S" + n, {.min = 1, .max = 100});
    g.output("y" + n, tanh(exp(g.input("x" + n, f32, {size}))));
  }
  PipelineOptions options;
  options.partition.horizontal = false;
  const Compiled compiled = run_pipeline(ir_of(g), target_profile("h200"), options);
  CHECK(compiled.partition.segments.size() == count);
  for (const schedule::Segment& segment : compiled.partition.segments) CHECK(segment.nodes.size() == 2);
  for (const kernel::Kernel& kernel : compiled.kernels) CHECK(arguments(kernel) == 3);
}

TEST_CASE("a node mentions the symbols of its dims, its operands' dims and its attributes",
          "[partition][arguments]") {
  Graph g("mentions");
  const Dim a = g.dim("A", {.min = 8, .max = 100}), b = g.dim("B", {.min = 8, .max = 100}),
            c = g.dim("C", {.min = 1, .max = 4});
  const Tensor x = g.input("x", f32, {a, b});
  g.output("sum", sum(x, {0, 1}));
  g.output("part", slice(x, 0, c, c + 2));
  g.output("four", g.input("y", f32, {4}) * 2);
  const ir::Graph& graph = ir_of(g);
  const schedule::Mentions mentions(graph);
  using Ids = std::vector<schedule::SymbolId>;
  for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (graph[id].op == ir::Op::reduce_sum) CHECK(mentions.of(id) == Ids{0, 1});
    if (graph[id].op == ir::Op::slice) CHECK(mentions.of(id) == Ids{0, 1, 2});
    if (graph[id].op == ir::Op::mul) CHECK(mentions.of(id).empty());
  }
}

TEST_CASE("symbols count where a kernel mentions them", "[partition][arguments]") {
  Target target = target_profile("h200");
  const Compiled wide = run_pipeline(ir_of(growing(5)), target);
  REQUIRE(wide.kernels.size() == 1);
  CHECK(arguments(wide.kernels[0]) == 6 + 5 + 1);

  target.argument_bytes = 80;  // 10 arguments
  const Compiled narrow = run_pipeline(ir_of(growing(5)), target);
  CHECK(narrow.kernels.size() > 1);
  for (const kernel::Kernel& kernel : narrow.kernels) CHECK(arguments(kernel) <= 10);
  for (const schedule::Group& group : narrow.partition.grouping.groups) CHECK(group.nodes.size() < 5);
}

TEST_CASE("what is stitched takes no more arguments than a launch has, and one kernel where they suffice",
          "[partition][arguments]") {
  Graph g("scales");
  const Tensor x = g.input("x", f32, {64, 256});
  const Tensor centred = x - broadcast_in_dim(sum(x, {1}), {64, 256}, {0});
  for (int i = 0; i < 6; ++i) {
    const std::string n = std::to_string(i);
    g.output("y" + n, centred * broadcast_in_dim(g.input("w" + n, f32, {256}), {64, 256}, {1}));
  }
  constexpr std::size_t all = 1 + 6 + 6;
  PipelineOptions options;
  options.partition.horizontal = false;
  for (std::size_t limit = 4; limit <= all + 1; ++limit) {
    Target target = target_profile("h200");
    target.argument_bytes = 8 * limit;
    const Compiled made = run_pipeline(ir_of(g), target, options);
    INFO(limit);
    CHECK((made.kernels.size() == 1) == (limit > all));  // while groups grow they store the sum, too
    for (const kernel::Kernel& kernel : made.kernels) CHECK(arguments(kernel) <= limit);
  }
}

TEST_CASE("one op that needs more arguments than a launch takes is a user's error",
          "[partition][arguments]") {
  Graph g("wide");
  CustomKernel call{.name = "wide", .source = "FUSE_KERNEL(32) wide("};
  std::vector<Tensor> operands;
  for (int i = 0; i < 512; ++i) {
    const std::string n = std::to_string(i);
    operands.push_back(g.input("x" + n, f32, {4}));
    call.source += "global<const float> x" + n + ", ";
  }
  call.source +=
      "global<float> y) {\n  if (threadIdx.x < 4) store(y, threadIdx.x, load(x0, threadIdx.x));\n}\n";
  call.threads = 32;
  g.output("y", custom_call(call, operands, f32, {4}));
  try {
    run_pipeline(ir_of(g), target_profile("h200"));
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::unsupported);
    CHECK_THAT(error.what(), Catch::Contains("custom_call(f32[4], f32[4], f32[4], ...)") &&
                                 Catch::Contains("4104 bytes of arguments, a launch takes 4096") &&
                                 Catch::Contains("argument_limit_test.cpp:"));
  }
}
