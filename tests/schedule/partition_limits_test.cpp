// Bounds on what one kernel computes hold whatever the graph, and large graphs partition.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "schedule/schedule_support.hpp"
#include "support/sanitized.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

struct Extremes {
  std::size_t segments = 0, inputs = 0, nodes = 0;
  int depth = 0, movement = 0;
};

/// Of the segments of a verified partition: the most inputs, and the longest paths, counted here anew.
Extremes extremes_of(const ir::Graph& graph) {
  const schedule::Partition partition = schedule::partition(graph);
  verify(graph, partition);
  Extremes most{.segments = partition.segments.size()};
  for (const schedule::Segment& segment : partition.segments) {
    if (segment.kind == schedule::Segment::Kind::gemm) continue;
    most.inputs = std::max(most.inputs, segment.inputs.size());
    most.nodes = std::max(most.nodes, segment.nodes.size());
    std::map<ir::NodeId, std::pair<int, int>> length;  // of paths that end at a node: ops, ops that move
    for (const ir::NodeId id : segment.nodes) {
      const ir::OpInfo& row = info(graph[id].op);
      int depth = 0, movement = 0;
      for (const ir::NodeId operand : graph[id].operands) {
        const auto found = length.find(operand);
        if (found == length.end()) continue;
        depth = std::max(depth, found->second.first);
        movement = std::max(movement, found->second.second);
      }
      const bool moves = row.has(ir::Trait::movement) && row.relation != ir::Relation::broadcast;
      length[id] = {depth + 1, movement + moves};
      most.depth = std::max(most.depth, depth + 1);
      most.movement = std::max(most.movement, movement + moves);
    }
  }
  return most;
}

void check_bounds(const Extremes& most) {
  CHECK(most.inputs <= 48);
  CHECK(most.depth <= 200);
  CHECK(most.movement <= 12);
}

Tensor sum_of_all(const std::vector<Tensor>& parts) {
  Tensor total = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) total = total + parts[i];
  return total;
}

}  // namespace

TEST_CASE("a chain of 5000 element-wise ops is cut into segments of bounded depth", "[partition]") {
  Graph g("chain");
  Tensor x = g.input("x", f32, {64});
  for (int i = 0; i < 5000; ++i) x = i % 2 ? tanh(x) : -x;
  g.output("y", x);
  const Extremes most = extremes_of(prepared(g));
  check_bounds(most);
  CHECK(most.segments >= 25);
  CHECK(most.segments <= 60);
}

TEST_CASE("a sum of 300 inputs is cut into segments of bounded inputs", "[partition]") {
  for (const bool tree : {false, true}) {
    Graph g("wide");
    std::vector<Tensor> parts;
    for (int i = 0; i < 300; ++i) parts.push_back(g.input("x" + std::to_string(i), f32, {16}));
    while (tree && parts.size() > 2) {
      std::vector<Tensor> next;
      for (std::size_t i = 0; i + 1 < parts.size(); i += 2) next.push_back(parts[i] + parts[i + 1]);
      if (parts.size() % 2) next.push_back(parts.back());
      parts = std::move(next);
    }
    g.output("y", sum_of_all(parts));
    const Extremes most = extremes_of(prepared(g));
    check_bounds(most);
    CHECK(most.segments >= 7);
    CHECK(most.segments <= 40);
  }
}

TEST_CASE("phases are one kernel only where it reads as many values as a kernel may", "[partition]") {
  Graph g("phases");
  const auto x = [&](const char* name) { return g.input(name, f32, {64, 512}); };
  const Tensor rows = softmax(x("a") + x("b") + x("c"), 1);
  g.output("y", softmax(rows * x("d") - x("e"), 0));
  for (const int most : {3, 4, 5, 6}) {
    PipelineOptions options;
    options.partition.groups.max_inputs = most;
    options.partition.cooperative = schedule::PartitionOptions::Cooperative::always;
    options.partition.regional = false;  // one block would have all of it
    const Compiled made = run_pipeline(ir_of(g), target_profile("h200"), options);
    std::size_t phases = 0, inputs = 0;
    for (const schedule::Segment& segment : made.partition.segments) {
      phases = std::max(phases, segment.phases.size());
      inputs = std::max(inputs, segment.inputs.size());
    }
    INFO(most << " inputs: " << print(made.graph, made.partition));
    CHECK(inputs <= static_cast<std::size_t>(most));
    CHECK((phases > 1) == (most >= 5));
  }
}

TEST_CASE("forty nested slices are cut into segments of bounded movement", "[partition]") {
  Graph g("slices");
  Tensor x = g.input("x", f32, {100});
  for (int i = 0; i < 40; ++i) x = slice(x, 0, 1, x.dim(0));
  g.output("y", x);
  const Extremes most = extremes_of(prepared(g));
  check_bounds(most);
  CHECK(most.segments >= 4);
  CHECK(most.segments <= 8);
}

TEST_CASE("a gather from a gather from a gather is cut too", "[partition]") {
  Graph g("gathers");
  Tensor x = g.input("x", f32, {100});
  const Tensor at = g.input("at", i32, {100});
  for (int i = 0; i < 40; ++i) x = gather(x, at, 0);
  g.output("y", x);
  check_bounds(extremes_of(prepared(g)));
}

TEST_CASE("a value with 200 users is stored once", "[partition]") {
  Graph g("fan");
  const Tensor x = g.input("x", f32, {256}), y = g.input("y", f32, {256});
  const Tensor shared = tanh(x) * y;
  for (int i = 0; i < 200; ++i) g.output("o" + std::to_string(i), shared + i);
  const ir::Graph graph = prepared(g);
  const schedule::Partition partition = schedule::partition(graph, {.stitch = false});
  verify(graph, partition);
  REQUIRE(partition.segments.size() == 201);
  CHECK(partition.segments[0].end == "shared");
  for (std::size_t i = 1; i < partition.segments.size(); ++i) CHECK(partition.segments[i].inputs.size() == 1);
}

TEST_CASE("what is shared again and again does not double the work", "[partition]") {
  // x = x + f(x), 60 times: 2^60 paths, one value a step.
  Graph g("doubling");
  Tensor x = g.input("x", f32, {64});
  for (int i = 0; i < 60; ++i) x = x + tanh(x);
  g.output("y", x);
  const Extremes most = extremes_of(prepared(g));
  check_bounds(most);
  CHECK(most.nodes <= 240);
}

TEST_CASE("the text of a kernel stays small under movement of movement", "[partition]") {
  // Each concat reads its operand at `parts` positions, so a segment of n of them reads it at parts^n.
  for (const std::int64_t parts : {2, 3, 5}) {
    Graph g("rolls");
    Tensor x = g.input("x", f32, {60});
    for (int i = 0; i < 12; ++i) {
      std::vector<Tensor> slices;
      const std::int64_t size = 60 / parts;
      for (std::int64_t p = parts; p-- > 0;) slices.push_back(slice(x, 0, p * size, (p + 1) * size));
      x = concat(slices, 0);
    }
    g.output("y", x);
    const Compiled compiled = run_pipeline(ir_of(g), target_profile("h200"));
    INFO(parts << " parts");
    CHECK(compiled.source.body.size() < 1'000'000);
  }
}

TEST_CASE("a chain of 100,000 ops partitions", "[partition]") {
  Graph g("long");
  Tensor x = g.input("x", f32, {64});
  for (int i = 0; i < fewer(100000); ++i) x = -x;
  g.output("y", x);
  const Extremes most = extremes_of(prepared(g));
  check_bounds(most);
  CHECK(most.segments >= fewer(500u));
}
