// gemm_epilogue: what a GEMM takes over, and what it must not; and the plan of a segment that has one.
// SPDX-License-Identifier: Apache-2.0
#include "schedule/segments/gemm_epilogue.hpp"

#include <functional>

#include "base/access.hpp"
#include "compile/pipeline/make_plan.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "ir/graph/memory_values.hpp"
#include "schedule/schedule_support.hpp"
#include "target/target.hpp"
#include "tensors/host_tensor.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::EpilogueKind;

namespace {

struct Case {
  Graph g{"case"};
  Dim B = g.dim("B", {.min = 1, .max = 100, .hint = 8});
  Tensor x = g.input("x", f32, {B, 6}), w = g.parameter("w", f32, {6, 4}), v = g.parameter("v", f32, {4});
  Tensor r = g.input("r", f32, {B, 4});
  Tensor ab = matmul(x, w);
};

/// "bias %v", "scale 0.5", "none": of the only matmul with two operands x and w.
std::string found(const std::function<void(Case&)>& build) {
  Case c;
  build(c);
  const ir::Graph graph = prepared(c.g);
  const auto users = ir::users(graph);
  const auto in_memory = ir::memory_values(graph);
  for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (!std::holds_alternative<ir::MatmulAttr>(graph[id].attr)) continue;
    const auto epilogue = schedule::gemm_epilogue(graph, id, users, in_memory);
    if (!epilogue) return "none";
    if (epilogue->kind == EpilogueKind::convert) return "convert";
    CHECK(graph[epilogue->result].operands.size() == 2);
    if (epilogue->kind == EpilogueKind::scale) return "scale " + std::to_string(epilogue->scale);
    return std::string(to_string(epilogue->kind)) + " " + graph.value_name(epilogue->operand);
  }
  return "no matmul";
}

}  // namespace

TEST_CASE("gemm_epilogue: what is taken", "[schedule][gemm]") {
  CHECK(found([](Case& c) { c.g.output("y", c.ab + c.v); }) == "bias %v");
  CHECK(found([](Case& c) { c.g.output("y", c.v + c.ab); }) == "bias %v");
  CHECK(found([](Case& c) { c.g.output("y", c.ab + c.r); }) == "add %r");
  CHECK(found([](Case& c) { c.g.output("y", c.ab * 0.5); }) == "scale 0.500000");
  CHECK(found([](Case& c) { c.g.output("y", reshape(c.ab + c.v, {4 * c.B})); }) == "bias %v");
  CHECK(found([](Case& c) {
          c.g.output("y", -matmul(c.ab + c.v, c.g.parameter("u", f32, {4, 4})));
        }) == "bias %v");
}

TEST_CASE("gemm_epilogue: the rounding to the operands' half type, with the bits of two steps",
          "[schedule][gemm][device]") {
  for (const DType dtype : {f16, bf16}) {
    Graph one("one"), two("two");
    for (Graph* const g : {&one, &two}) {
      const Tensor wide =
          matmul(g->input("x", dtype, {33, 70}), g->parameter("w", dtype, {70, 20}), {.result = f32});
      g->output("y", convert(wide, dtype));
      if (g == &two) g->output("wide", wide);  // so the convert is a step
    }
    const auto steps = [](const Graph& g) {
      return run_pipeline(ir_of(g), target_profile("h200")).plan.steps.size();
    };
    CHECK(steps(one) == 1);
    CHECK(steps(two) == 2);
    std::vector<std::byte> results[2];
    for (const Graph* const g : {&one, &two}) {
      const Executable executable = compile(*g, Device::emulated());
      Session session(executable);
      for (const Slot& slot : executable.slots()) {
        if (slot.kind == Slot::Kind::output) continue;
        runtime::HostTensor tensor =
            runtime::HostTensor::make(dtype, {slot.dims[0].constant(), slot.dims[1].constant()});
        for (std::int64_t i = 0; i < tensor.element_count(); ++i)
          tensor.set(i, static_cast<double>((37 * i) % 101 - 50) / 77);
        session.set(slot.name, tensor.data);
      }
      session.run();
      results[g == &two] = session.get("y");
    }
    CHECK(results[0] == results[1]);
  }
  CHECK(found([](Case& c) {  // to another type, the library does not round
          const Tensor x = c.g.input("h", f16, {c.B, 6});
          c.g.output("y", convert(matmul(x, c.g.parameter("u", f16, {6, 4}), {.result = f32}), bf16));
        }) == "none");
}

TEST_CASE("gemm_epilogue: what would change a bit is not", "[schedule][gemm]") {
  // A rounding stands between the sums and the addition.
  CHECK(found([](Case& c) {
          const Tensor x = c.g.input("h", f16, {c.B, 6});
          c.ab = matmul(x, c.g.parameter("u", f16, {6, 4}));
          c.g.output("y", c.ab + c.g.parameter("b", f16, {4}));
        }) == "none");
  CHECK(found([](Case& c) {
          const Tensor x = c.g.input("h", f16, {c.B, 6});
          c.ab = matmul(x, c.g.parameter("u", f16, {6, 4}), {.result = f32});
          c.g.output("y", c.ab + c.v);
        }) == "bias %v");
  CHECK(found([](Case& c) { c.g.output("y", c.ab - c.v); }) == "none");
  CHECK(found([](Case& c) { c.g.output("y", c.ab * 0); }) == "none");
  CHECK(found([](Case& c) { c.g.output("y", c.ab + c.ab); }) == "none");
  CHECK(found([](Case& c) {  // down the columns
          c.g.output("y", c.ab + broadcast_in_dim(c.g.input("b", f32, {c.B}), {c.B, 4}, {0}));
        }) == "none");
  CHECK(found([](Case& c) { c.g.output("y", c.ab + c.g.parameter("b", f32, {1})); }) == "none");
  CHECK(found([](Case& c) {  // perhaps a sum of nothing
          const Dim K = c.g.dim("K", {.min = 0, .max = 9, .hint = 8});
          c.ab = matmul(c.g.input("h", f32, {c.B, K}), c.g.input("i", f32, {K, 4}));
          c.g.output("y", c.ab + c.v);
        }) == "none");
}

TEST_CASE("gemm_epilogue: a result that was rounded is not, even where an op would take it",
          "[schedule][gemm]") {
  for (const DType result : {f32, bf16}) {
    ir::Graph graph;  // not verified: no op of today's table takes a bf16
    graph.nodes = {{ir::Op::input, ir::NameAttr{"x"}, {}, {bf16, {2, 3}}},
                   {ir::Op::parameter, ir::NameAttr{"w"}, {}, {bf16, {3, 4}}},
                   {ir::Op::input, ir::NameAttr{"r"}, {}, {result, {2, 4}}},
                   {ir::Op::matmul, ir::MatmulAttr{}, {0, 1}, {result, {2, 4}}},
                   {ir::Op::add, ir::NoAttr{}, {3, 2}, {result, {2, 4}}}};
    graph.outputs = {{"y", 4}};
    const auto epilogue = schedule::gemm_epilogue(graph, 3, ir::users(graph), ir::memory_values(graph));
    CHECK(epilogue.has_value() == (result == f32));
  }
}

TEST_CASE("gemm_epilogue: what saves nothing is not", "[schedule][gemm]") {
  CHECK(found([](Case& c) { c.g.output("y", tanh(c.ab + c.v)); }) == "none");  // the kernel of tanh adds
  CHECK(found([](Case& c) {
          c.g.output("y", c.ab + c.v);
          c.g.output("z", c.ab);
        }) == "none");
  CHECK(found([](Case& c) {
          c.g.output("y", c.ab + c.v);
          c.g.output("z", c.ab * 2);
        }) == "none");
  CHECK(found([](Case& c) { c.g.output("y", c.ab + tanh(c.r)); }) == "none");  // it would have to be stored
}

TEST_CASE("gemm_epilogue: a segment that ends behind its contraction is one step", "[schedule][gemm]") {
  Case c;
  c.g.output("y", c.ab + c.v);
  const ir::Graph graph = prepared(c.g);
  schedule::Partition partition = schedule::partition(graph);
  verify(graph, partition);
  REQUIRE(partition.segments.size() == 1);
  schedule::Segment& segment = partition.segments[0];
  REQUIRE(segment.kind == schedule::Segment::Kind::gemm);
  const schedule::Plan plan = schedule::make_plan(graph, partition, {{}});
  schedule::verify(plan);
  const std::string text = print(plan);
  INFO(text);
  CHECK(plan.steps.size() == 1);
  CHECK(
      text.find("gemm v4 = v0 * v1 bias v2 batch 1 m B n 4 k 6 f32 -> f32 reads [v0, v1, v2] writes [v4] ") !=
      std::string::npos);
  segment.root = 3;  // %r
  CHECK(thrown_by([&] { schedule::make_plan(graph, partition, {{}}); }).find("no epilogue of") !=
        std::string::npos);
}
