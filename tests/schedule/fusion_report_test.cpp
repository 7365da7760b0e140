// Why values are stored between kernels: each reason code arises, and what it says holds: putting the two
// groups together all the same is rejected by the verifier, or costs more in the model.
// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/fusion_report.hpp"

#include <algorithm>
#include <fuse/functions.hpp>

#include "base/access.hpp"
#include "passes/canonical_dims.hpp"
#include "schedule/groups/parallel_stitch.hpp"
#include "schedule/schedule_support.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::Baseline;
using schedule::GroupOptions;
using schedule::Reason;
using schedule::RuleSet;

namespace {

const Target target = target_profile("h200");
const GroupOptions as_printed{.rules = RuleSet::apollo, .layers = 3};

/// A graph in which `reason` stands on an edge.
struct Example {
  Reason reason;
  Graph graph;
  schedule::PartitionOptions options{};
};

Example no_rule() {
  Graph g("no_rule");
  g.output("y", broadcast_in_dim(exp(g.input("x", f32, {128})), {128, 64}, {0}));
  return {Reason::no_rule, g, {.groups = as_printed}};
}
Example layer_off() {
  Graph g("layer_off");
  g.output("y", exp(sum(g.input("x", f32, {128, 64}), {1})));
  return {Reason::layer_off, g, {.groups = {.layers = 1}}};
}
Example loop_dims() {
  Graph g("loop_dims");
  const Tensor sums = sum(g.input("x", f32, {128, 64}), {1});
  g.output("y", sum(broadcast_in_dim(sums, {128, 32}, {0}), {1}));
  return {Reason::loop_dims, g, {.groups = as_printed}};
}
Example parameters() {  // a row of 4096 is a block's work, one of a million several blocks'
  Graph g("parameters");
  const Tensor x = g.input("x", f32, {4, 256, 4096});
  const Tensor sums = sum(x, {2});
  g.output("y", max(x - broadcast_in_dim(sums, {4, 256, 4096}, {0, 1}), {1, 2}));
  return {Reason::parameters, g, {.groups = as_printed}};
}
Example canonical_form() {
  Graph g("canonical_form");
  const Tensor x = g.input("x", f32, {128, 1024});
  g.output("y", sum(x - broadcast_in_dim(sum(x, {1}), {128, 1024}, {0}), {0}));
  return {Reason::canonical_form, g, {.groups = as_printed}};
}
Example coverage() {
  Graph g("coverage");
  const Tensor whole = exp(g.input("x", f32, {128}));
  g.output("whole", whole);
  g.output("part", slice(whole, 0, 3, 64));
  return {Reason::coverage, g, {.regional = false}};
}
Example epilogue() {
  Graph g("epilogue");
  g.output("y", exp(matmul(g.input("a", f32, {64, 64}), g.input("b", f32, {64, 64}))));
  return {Reason::epilogue, g};
}
Example prologue() {
  Graph g("prologue");
  g.output("y", matmul(exp(g.input("a", f32, {64, 64})), g.input("b", f32, {64, 64})));
  return {Reason::prologue, g};
}
Example input_cap() {
  Graph g("input_cap");
  Tensor sum = g.input("x", f32, {64});
  for (int i = 0; i < 5; ++i) sum = sum + g.input("x" + std::to_string(i), f32, {64});
  g.output("y", sum);
  return {Reason::input_cap, g, {.groups = {.max_inputs = 3}}};
}
Example argument_limit() {
  Graph g("argument_limit");
  const Tensor x = g.input("x", f32, {64}), z = g.input("z", f32, {64});
  const Tensor shared = exp(x) * z;
  for (int i = 0; i < 600; ++i) g.output("y" + std::to_string(i), shared + i);
  return {Reason::argument_limit, g};
}
Example cycle() {
  Graph g("cycle");
  const Tensor a = exp(g.input("a", f32, {64, 64})), z = g.input("z", f32, {64, 64});
  const Tensor both = a * z;
  g.output("y", both - matmul(both, g.input("b", f32, {64, 64})));  // an epilogue would add
  return {Reason::cycle, g};
}
Example chain() {
  Graph g("chain");
  const auto product = [&](const Tensor& x, const std::string& name) {
    return matmul(x, g.input(name, f32, {64, 64}));
  };
  const Tensor early = exp(g.input("x", f32, {64, 64}));
  g.output("next", product(product(early, "a"), "b"));
  g.output("late", early - product(product(g.input("z", f32, {64, 64}), "c"), "d"));
  return {Reason::chain, g};
}
Example scheme_unavailable() {
  Graph g("scheme_unavailable");
  const Tensor x = g.input("x", f32, {64, 64});
  g.output("y", sum(x / sum(x, {0}, {.keep_dims = true}), {1}));  // a row needs all columns
  return {Reason::scheme_unavailable,
          g,
          {.cooperative = schedule::PartitionOptions::Cooperative::never, .regional = false}};
}
Example baseline() {
  Graph g("baseline");
  g.output("y", softmax(g.input("x", f32, {64, 64}), -1));
  return {Reason::baseline, g, {.baseline = Baseline::xla}};
}

schedule::UnfusedEdge edge_with(const Example& example, const schedule::Partition& partition) {
  const ir::Graph graph = prepared(example.graph);
  std::string met;
  for (const schedule::UnfusedEdge& edge : unfused_edges(graph, partition, example.options, target)) {
    if (edge.reason == example.reason) return edge;
    met += ' ' + std::string(to_string(edge.reason));
  }
  FAIL("no edge has the reason " << to_string(example.reason) << "; met" << met);
  return {};
}

/// Both groups as one, in the place of the later.
schedule::Grouping together(schedule::Grouping grouping, schedule::GroupId a, schedule::GroupId b) {
  if (a > b) std::swap(a, b);
  schedule::Group& into = grouping.groups[b];
  schedule::Group& from = grouping.groups[a];
  into.nodes.insert(into.nodes.end(), from.nodes.begin(), from.nodes.end());
  std::sort(into.nodes.begin(), into.nodes.end());
  std::vector<ir::NodeId> inputs;
  std::set_union(into.inputs.begin(), into.inputs.end(), from.inputs.begin(), from.inputs.end(),
                 std::back_inserter(inputs));
  std::erase_if(inputs,
                [&](ir::NodeId id) { return std::binary_search(into.nodes.begin(), into.nodes.end(), id); });
  into.inputs = inputs;
  into.outputs.insert(into.outputs.end(), from.outputs.begin(), from.outputs.end());
  grouping.groups.erase(grouping.groups.begin() + a);
  for (schedule::GroupId& of : grouping.of) {
    if (of == schedule::no_group) continue;
    if (of == a) of = b;
    if (of > a) --of;
  }
  return grouping;
}

}  // namespace

TEST_CASE("the verifier rejects groups that the reason keeps apart", "[partition][unfused]") {
  for (const Example& example :
       {no_rule(), layer_off(), loop_dims(), parameters(), canonical_form(), coverage(), epilogue(),
        prologue(), input_cap(), argument_limit(), cycle()}) {
    INFO(example.graph.name());
    const ir::Graph graph = prepared(example.graph);
    const schedule::Partition partition = schedule::partition(graph, example.options, target);
    CHECK_NOTHROW(verify(graph, partition.grouping, example.options.groups, target));
    const schedule::UnfusedEdge edge = edge_with(example, partition);
    const schedule::Grouping forced = together(partition.grouping, partition.segments[edge.producer].group,
                                               partition.segments[edge.consumer].group);
    CHECK_THROWS_AS(verify(graph, forced, example.options.groups, target), Error);
    CHECK(!schedule::would_change(edge.reason).empty());
  }
}

TEST_CASE("loops that differ by symbols say which assumption makes them equal", "[partition][unfused]") {
  const auto edge = [](bool assumed, std::int64_t longest) {
    Graph g("loops");
    const Dim s = g.dim("S", {.min = 64, .max = 4096}), t = g.dim("T", {.min = 1, .max = longest});
    if (assumed) g.assume(equal(s, t));
    const Tensor sums = sum(g.input("x", f32, {128, s}), {1});
    g.output("y", sum(broadcast_in_dim(sums, {128, t}, {0}), {1}));
    const Example example{Reason::loop_dims, g, {.groups = as_printed}};
    const ir::Graph graph = ir::canonical_dims(prepared(example.graph));
    const schedule::Partition partition = schedule::partition(graph, example.options, target);
    std::string lines;
    for (const schedule::UnfusedEdge& each : unfused_edges(graph, partition, example.options, target))
      lines += std::string(to_string(each.reason)) + " " + each.assume;
    return lines;
  };
  CHECK(edge(false, 4096) == "loop-dims g.assume(equal(S, T));");
  CHECK(edge(false, 63) == "loop-dims ");  // they never are
  CHECK(edge(true, 4096).find("loop-dims") == std::string::npos);
}

TEST_CASE("a value that GEMMs wait for is not made with what waits for other GEMMs", "[partition][unfused]") {
  const Example example = chain();
  const ir::Graph graph = prepared(example.graph);
  const schedule::Partition partition = schedule::partition(graph, example.options, target);
  const schedule::UnfusedEdge edge = edge_with(example, partition);
  using Numbers = std::vector<std::pair<std::string, std::string>>;
  CHECK(edge.numbers == Numbers{{"calls before", "2"}, {"calls after", "2"}});
  CHECK(!schedule::would_change(edge.reason).empty());
}

TEST_CASE("a segment that carries a value past a reduction is rejected", "[partition][unfused]") {
  for (const Example& example : {scheme_unavailable(), baseline()}) {
    INFO(example.graph.name());
    const ir::Graph graph = prepared(example.graph);
    schedule::Partition partition = schedule::partition(graph, example.options, target);
    const schedule::UnfusedEdge edge = edge_with(example, partition);
    schedule::Segment& consumer = partition.segments[edge.consumer];
    const schedule::Segment& producer = partition.segments[edge.producer];
    for (std::vector<ir::NodeId>* nodes : {&consumer.nodes, &consumer.phases[0].nodes}) {
      nodes->insert(nodes->begin(), producer.nodes.begin(), producer.nodes.end());
      std::sort(nodes->begin(), nodes->end());
    }
    CHECK_THROWS_WITH(verify(graph, partition), Catch::Contains("must end a segment"));
  }
}

TEST_CASE("a GEMM is in no group with ops that are no epilogue of it", "[partition][unfused]") {
  Graph g("beside");
  const Tensor product = matmul(g.input("x", f32, {64, 32}), g.parameter("w", f32, {32, 48}));
  g.output("y", sum(product, {1}));
  const ir::Graph graph = prepared(g);
  const schedule::Partition partition = schedule::partition(graph, {}, target);
  REQUIRE(partition.segments.size() == 2);
  CHECK_THROWS_WITH(
      verify(graph, together(partition.grouping, partition.segments[0].group, partition.segments[1].group),
             {}, target),
      Catch::Contains("the GEMM library runs nothing besides its epilogue"));
}

TEST_CASE("a user's kernel stands alone", "[partition][unfused]") {
  Graph g("boundary");
  const Tensor x = exp(g.input("x", f32, {64}));
  CustomKernel call;
  call.name = "twice";
  call.source =
      "FUSE_KERNEL(256) twice(global<const float> x, global<float> y) {\n"
      "  const int i = threadIdx.x;\n  if (i < 64) store(y, i, 2 * load(x, i));\n}\n";
  g.output("y", -custom_call(call, {x}, f32, {64}));
  const ir::Graph graph = prepared(g);
  const schedule::Partition partition = schedule::partition(graph, {}, target);
  const std::vector<schedule::UnfusedEdge> edges = unfused_edges(graph, partition, {}, target);
  REQUIRE(edges.size() == 2);
  for (const schedule::UnfusedEdge& edge : edges) {
    CHECK(edge.reason == Reason::boundary);
    CHECK_THROWS_WITH(verify(graph,
                             together(partition.grouping, partition.segments[edge.producer].group,
                                      partition.segments[edge.consumer].group),
                             {}, target),
                      Catch::Contains("a user's kernel stands alone"));
  }
}

TEST_CASE("side by side, two kernels that fill the device take longer", "[partition][unfused]") {
  Graph g("no_gain");
  for (const char* name : {"a", "b"})
    g.output(std::string("y") + name, exp(g.input(name, f32, {1 << 20, 1024})));
  schedule::GroupGraph groups(ir_of(g), {}, target);
  const schedule::ParallelModel model = schedule::contention_model(ir_of(g), groups, target);
  const std::vector<schedule::GroupGraph::Id> ids = {ir_of(g).outputs[0].node, ir_of(g).outputs[1].node};
  CHECK(model.together(ids) > model.alone(ids[0]) + model.alone(ids[1]));
}

TEST_CASE("an edge tells what fusing would save", "[partition][unfused]") {
  Graph g("bytes");
  const Dim B = g.dim("B", {.min = 1, .max = 4096});
  g.output("y", softmax(g.input("x", f32, {B, 64}), -1));
  const ir::Graph graph = prepared(g);
  const schedule::Partition partition = schedule::partition(graph, {.stitch = false}, target);
  const std::vector<schedule::UnfusedEdge> edges = unfused_edges(graph, partition, {}, target);
  REQUIRE(edges.size() == 3);  // max to sum, max to div, sum to div
  for (const schedule::UnfusedEdge& edge : edges) CHECK(edge.bytes == 4 * B);
  CHECK(partition.refusals.size() == 1);
  CHECK(partition.refusals[0].at.size() == 3);
}
