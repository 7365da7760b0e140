// Equal segments share a kernel, each step with buffers of its own; and threads change nothing.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "base/access.hpp"
#include "compile/pipeline/experiments.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "runtime/runtime_support.hpp"
#include "schedule/choosers/model_choices.hpp"
#include "schedule/nest/usual_nests.hpp"
#include "support/op_sweep.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// Without stitching, which would make one kernel of what the tests have as several.
Compiled compiled_of(const Graph& g, PipelineOptions options = {}) {
  options.partition.stitch = false;
  return run_pipeline(ir_of(g), target_profile("h200"), options);
}

struct Counts {
  std::size_t kernels = 0, kernel_steps = 0, gemms = 0;
  bool operator==(const Counts&) const = default;
};

Counts counts_of(const Compiled& compiled) {
  Counts counts{.kernels = compiled.source.kernels.size()};
  for (const schedule::Step& step : compiled.plan.steps) {
    counts.kernel_steps += std::holds_alternative<schedule::KernelStep>(step.work);
    counts.gemms += std::holds_alternative<schedule::GemmStep>(step.work);
  }
  return counts;
}

/// Equal layers, each with weights of its own: norm, GEMM, gelu, residual.
Tensor layer(Graph& g, const Tensor& x, int number, const Tensor& gamma, const Tensor& weight,
             double scale = 0.5) {
  const auto scope = g.scope("layer" + std::to_string(number));
  const Tensor zero = g.constant(f32, 0, gamma.dims());
  return x + gelu(matmul(layer_norm(x, gamma, zero), weight)) * scale;
}

Graph layers(int count, const std::vector<Dim>& dims, double odd_scale = 0.5) {
  Graph g("stack");
  if (!dims[0].is_constant()) g.dim(std::string(dims[0].name()), {.min = 1, .max = 4096});
  Tensor x = g.input("x", f32, dims);
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    x = layer(g, x, i, g.parameter("gamma" + n, f32, {32}), g.parameter("weight" + n, f32, {32, 32}),
              i % 2 == 1 ? odd_scale : 0.5);
  }
  g.output("y", x);
  return g;
}

std::string everything(const Compiled& compiled) {
  std::string text = schedule::print(compiled.graph, compiled.partition);
  for (const schedule::Schedule& schedule : compiled.schedules)
    text += schedule::print(compiled.graph, schedule);
  for (const kernel::Kernel& kernel : compiled.kernels) text += kernel::print(kernel);
  return text + compiled.source.text() + schedule::print(compiled.plan);
}

}  // namespace

TEST_CASE("a segment that shares its kernel has a schedule of its own values", "[pipeline][shared]") {
  const auto within = [](const std::vector<ir::NodeId>& all, ir::NodeId id) {
    return std::find(all.begin(), all.end(), id) != all.end();
  };
  const Compiled compiled = run_pipeline(ir_of(layers(3, {64, 32})), target_profile("h200"));
  REQUIRE(compiled.schedules.size() > counts_of(compiled).kernels);  // some share
  for (const schedule::Schedule& schedule : compiled.schedules) {
    for (const schedule::PhaseSchedule& phase : schedule.phases) {
      const std::vector<ir::NodeId>& nodes = phase.computes.nodes;
      for (const schedule::CachedValue& cached : phase.cached)
        CHECK((within(nodes, cached.node) || within(phase.computes.inputs, cached.node)));
      for (const schedule::Section& section : phase.sections) {
        for (const schedule::Stage& stage : section.walks) CHECK(within(nodes, stage.root));
        for (const ir::NodeId root : section.stores) CHECK(within(phase.computes.results, root));
        for (const ir::NodeId input : section.inputs) CHECK(within(phase.computes.inputs, input));
      }
    }
  }
}

TEST_CASE("24 equal layers have the kernels of two", "[pipeline][shared]") {
  const Dim B = Dim::symbol("B", {.min = 1, .max = 4096});
  const Counts two = counts_of(compiled_of(layers(2, {B, 32}))),
               all = counts_of(compiled_of(layers(24, {B, 32})));
  CHECK(all.kernels == two.kernels);
  CHECK(all.gemms == 24);
  CHECK(all.kernel_steps > 24);
  CHECK((all.kernel_steps - two.kernel_steps) % 22 == 0);
}

TEST_CASE("layers that alternate in a constant have each kernel that sees it twice", "[pipeline][shared]") {
  const Compiled equal = compiled_of(layers(8, {64, 32})), odd = compiled_of(layers(8, {64, 32}, 0.25));
  CHECK(counts_of(odd).kernels > counts_of(equal).kernels);
  CHECK(counts_of(odd).kernels < 2 * counts_of(equal).kernels + 1);
  CHECK(counts_of(odd).kernel_steps == counts_of(equal).kernel_steps);
}

TEST_CASE("steps that share a kernel keep nodes, names and buffers of their own",
          "[pipeline][shared][emulated]") {
  const Compiled compiled = compiled_of(layers(4, {64, 32}));
  const std::vector<std::size_t> uses = kernel_uses(compiled);
  std::set<std::string> names;
  std::vector<bool> seen(uses.size());
  std::size_t shared = 0;
  for (const schedule::Step& step : compiled.plan.steps) {
    const auto* work = std::get_if<schedule::KernelStep>(&step.work);
    if (!work) continue;
    CHECK(names.insert(step.name).second);
    const std::string& kernel = compiled.source.kernels[work->kernel].name;
    INFO(step.name << " runs " << kernel);
    // The kernel has the name of its first step.
    CHECK((step.name == kernel) == !seen[work->kernel]);
    seen[work->kernel] = true;
    const std::string scope = compiled.graph.scope_path(compiled.graph[step.nodes.back()].scope);
    if (!scope.empty()) CHECK(step.name.find(scope.substr(0, scope.find('.'))) != std::string::npos);
    shared += uses[work->kernel] > 1;
  }
  CHECK(shared >= 8);
  // Each layer's weights are read by a step of its own.
  for (int i = 0; i < 4; ++i) {
    std::size_t readers = 0;
    for (const schedule::Step& step : compiled.plan.steps) {
      for (const schedule::ValueId id : step.reads) {
        readers += compiled.plan.values[id].name == "gamma" + std::to_string(i);
      }
    }
    CHECK(readers == 1);
  }
  const std::string& body = compiled.source.body;
  CHECK(body.find("; shared by ") != std::string::npos);
  const std::string explained = compile(layers(4, {64, 32}), Device::emulated(),
                                        {.experiments = experiments({.stitch = Stitch::mapping})})
                                    .explain();
  INFO(explained);
  CHECK(explained.find(" shared by ") != std::string::npos);
}

TEST_CASE("a schedule holds values of its own segment, whatever kernel it shares",
          "[pipeline][shared][stitch]") {
  const auto check = [](const Compiled& compiled) {
    std::set<std::uint32_t> kernels;
    std::size_t shared = 0;
    for (std::size_t i = 0; i < compiled.schedules.size(); ++i) {
      const bool first = kernels.insert(compiled.first_kernel[i]).second;
      for (const schedule::PhaseSchedule& phase : compiled.schedules[i].phases) {
        std::set<ir::NodeId> own(phase.computes.nodes.begin(), phase.computes.nodes.end());
        own.insert(phase.computes.inputs.begin(), phase.computes.inputs.end());
        for (const schedule::CachedValue& cached : phase.cached) {
          INFO("schedule " << i << " holds " << compiled.graph.value_name(cached.node));
          CHECK(own.count(cached.node) == 1);
          shared += !first;
        }
      }
    }
    CHECK(shared > 0);
  };
  check(run_pipeline(ir_of(layers(4, {64, 32})), target_profile("h200")));
  Graph g("phases");  // by rows, then by columns
  for (const char* name : {"a", "b", "c"})
    g.output(std::string(name) + "_y", softmax(softmax(g.input(name, f32, {64, 512}), 1), 0));
  PipelineOptions options;
  options.partition.groups.layers = 0b011;  // else they are one group, and one kernel
  options.partition.cooperative = schedule::PartitionOptions::Cooperative::always;
  const Compiled phases = run_pipeline(ir_of(g), target_profile("h200"), options);
  REQUIRE(phases.schedules.size() == 3);
  REQUIRE(phases.schedules[2].phases.size() > 1);
  check(phases);
}

TEST_CASE("what equal segments are given decides their results", "[pipeline][shared][device]") {
  OpSweep sweep("shared");
  const Dim B = sweep.graph().dim("B", {.min = 1, .max = 64});
  Tensor x = sweep.input(f32, {5, 32}, {B, 32});
  for (int i = 0; i < 3; ++i) {
    x = layer(sweep.graph(), x, i, sweep.input(f32, {32}), sweep.input(f32, {32, 32}));
    sweep.expect("layer " + std::to_string(i), x,
                 [](std::size_t, double exact) { return 1e-3 + 1e-3 * std::abs(exact); });
  }
  // The same op on operands in either order, on one buffer twice, and on scalars.
  const Tensor a = sweep.input(f32, {5, 32}, {B, 32}), b = sweep.input(f32, {5, 32}, {B, 32});
  sweep.expect("a - b", a - b, [](std::size_t, double exact) { return 1e-6 * std::abs(exact); });
  sweep.expect("b - a", b - a, [](std::size_t, double exact) { return 1e-6 * std::abs(exact); });
  sweep.expect_exact("a > a", a > a);
  sweep.expect_exact("a > b", a > b);
  sweep.expect_exact("b > a", b > a);
  for (int i = 0; i < 2; ++i) {
    const Tensor long_rows = sweep.input(f32, {1, 100'000});
    sweep.expect_exact("position of the largest",
                       argmax(long_rows, 1));  // two launches with parts between them
  }
  const Counts counts = counts_of(compiled_of(sweep.built()));
  CHECK(counts.kernels + 5 <= counts.kernel_steps);
  sweep.run_on_test_devices({{"B", 5}});
}

TEST_CASE("equal updates in place share their kernel", "[pipeline][shared][device]") {
  Graph g("caches");
  for (const char* name : {"0", "1"}) {
    const std::string n = name;
    const Tensor old = g.input("old" + n, f32, {6, 4}), at = g.input("at" + n, i64, {});
    g.output("new" + n, dynamic_update_slice(old, g.input("row" + n, f32, {1, 4}) * 2, {at, 0}), old);
  }
  CHECK(counts_of(compiled_of(g)) == Counts{.kernels = 1, .kernel_steps = 2});
  for (const Device& device : test_devices()) {
    Session session(compile(g, device));
    for (const int n : {0, 1}) {
      session.set("old" + std::to_string(n), bytes_of(std::vector<float>(24, static_cast<float>(n))));
      session.set("row" + std::to_string(n), bytes_of(std::vector<float>(4, static_cast<float>(10 + n))));
      session.set("at" + std::to_string(n), bytes_of(std::vector<std::int64_t>{1 + 2 * n}));
    }
    session.run();
    for (const int n : {0, 1}) {
      std::vector<float> expected(24, static_cast<float>(n));
      std::fill_n(expected.begin() + 4 * (1 + 2 * n), 4, static_cast<float>(2 * (10 + n)));
      CHECK(values_of<float>(session.get("new" + std::to_string(n))) == expected);
    }
  }
}

TEST_CASE("equal segments with different choices have kernels of their own", "[pipeline][shared]") {
  int asked = 0;
  PipelineOptions options;
  options.choose = [&](const ir::Graph& graph, const schedule::Segment& segment, const Target& target) {
    schedule::KernelChoices choices = schedule::model_choices(graph, segment, target).value();
    choices.phases[0].splits = schedule::nest_of_elements(asked++ % 3 == 0 ? 64 : 128);
    return choices;
  };
  Graph g("choices");
  for (int i = 0; i < 9; ++i) {
    const std::string n = std::to_string(i);
    g.output("y" + n, exp(g.input("x" + n, f32, {1000})));
  }
  const Compiled compiled = compiled_of(g, options);
  CHECK(asked == 9);  // each segment, in order
  CHECK(counts_of(compiled) == Counts{.kernels = 2, .kernel_steps = 9});
  CHECK(kernel_uses(compiled) == std::vector<std::size_t>{3, 6});
}

TEST_CASE("plan and text are the same on any number of threads", "[pipeline][shared]") {
  const Dim B = Dim::symbol("B", {.min = 1, .max = 4096});
  std::vector<Graph> graphs = {layers(6, {B, 32}, 0.25), layers(3, {64, 32})};
  Graph many("many");  // no two equal
  many.dim("B", {.min = 1, .max = 4096});
  for (int i = 0; i < 60; ++i) {
    const std::string n = std::to_string(i);
    many.output("y" + n, sum(exp(many.input("x" + n, f32, {B, 16 + i})), {i % 2}));
  }
  graphs.push_back(many);
  for (const Graph& graph : graphs) {
    const std::string one = everything(compiled_of(graph, {.threads = 1}));
    for (const int threads : {2, 8, 0}) {
      INFO(ir_of(graph).name << " on " << threads);
      CHECK((everything(compiled_of(graph, {.threads = threads})) == one));
    }
  }
  CHECK(error_of([&] { compiled_of(many, {.threads = -1}); }).find("cannot run on -1 threads") !=
        std::string::npos);
}

TEST_CASE("what fails in one of many segments is told as on one thread", "[pipeline][shared]") {
  Graph g("failing");
  for (int i = 0; i < 40; ++i) {
    const std::string n = std::to_string(i);
    g.output("y" + n, exp(g.input("x" + n, f32, {1000 + i})));
  }
  const auto told = [&](int threads) {
    PipelineOptions options{.threads = threads};
    options.choose = [](const ir::Graph& graph, const schedule::Segment& segment, const Target& target) {
      schedule::KernelChoices choices = schedule::model_choices(graph, segment, target).value();
      const Dim& extent = graph[segment.root].type.dims[0];
      if (extent.is(1017) || extent.is(1031)) choices.phases[0].splits = schedule::nest_of_elements(2048);
      return choices;
    };
    return error_of([&] { compiled_of(g, options); });
  };
  const std::string one = told(1);
  CHECK(one.find("a block of 2048 threads") != std::string::npos);
  for (const int threads : {2, 8}) CHECK(told(threads) == one);
}

TEST_CASE("a fault in a shared kernel names the step that met it", "[pipeline][shared][emulated]") {
  Graph g("faulty");
  for (int i = 0; i < 2; ++i) {
    const auto scope = g.scope("layer" + std::to_string(i));
    g.output("y" + std::to_string(i), exp(g.input("x" + std::to_string(i), f32, {64})));
  }
  const Device device = Device::emulated({.checked = true});
  const Prepared prepared =
      compile(g, device, {.experiments = experiments({.stitch = Stitch::mapping})}).prepare();
  std::vector<Buffer> buffers;
  std::vector<BufferView> views;
  for (int slot = 0; slot < 4; ++slot) {
    buffers.push_back(device.allocate(256));
    if (slot != 1) buffers.back().upload(bytes_of(std::vector<float>(64, 1)));  // nobody wrote x1
    views.push_back(buffers.back().view());
  }
  Stream stream = device.stream();
  Workspace workspace = prepared.workspace();
  const std::string text = text_of(prepared.run(stream, views, workspace));
  INFO(text);
  CHECK(text.find("step 1, kernel 'faulty_layer1_1' (exp in layer1), which runs 'faulty_layer0_0' of "
                  "shared_kernels_test.cpp:") != std::string::npos);
  CHECK(text.find("faulty_layer0_0: ") != std::string::npos);
}
