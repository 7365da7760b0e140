// BERT: the GEMM counts of BladeDISC's section 7.3, symbolic dims as static ones, and right results.
// SPDX-License-Identifier: Apache-2.0
#include "../../examples/models/bert.hpp"

#include <algorithm>
#include <cmath>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "eval/evaluate.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/paths.hpp"
#include "tensors/host_tensor.hpp"
#include "tensors/random_fill.hpp"

using namespace fuse;  // NOLINT

namespace {

std::size_t gemms_of(const Compiled& compiled) {
  const std::vector<schedule::Step>& steps = compiled.plan.steps;
  return static_cast<std::size_t>(std::count_if(steps.begin(), steps.end(), [](const schedule::Step& step) {
    return std::holds_alternative<schedule::GemmStep>(step.work);
  }));
}

/// Name and nest of every kernel.
std::vector<std::string> kernels_of(const Compiled& compiled) {
  std::vector<std::string> kernels;
  for (std::size_t i = 0; i < compiled.schedules.size(); ++i) {
    std::size_t kernel = compiled.first_kernel.at(i);
    for (const schedule::KernelSchedule& launch : compiled.schedules[i].kernels) {
      kernels.push_back(compiled.source.kernels.at(kernel++).name + " " + loops_text(launch));
    }
  }
  return kernels;
}

}  // namespace

TEST_CASE("bert: 193 GEMMs, merged 145, and the weights of each layer side by side once", "[runtime][gemm]") {
  const Graph g = Graph::load((test::source_directory() / "examples/graphs/bert_large.fuse").string());
  const Target target = target_profile("h200");
  const Compiled apart = run_pipeline(ir_of(g), target, {.merge_gemms = false});
  const Compiled merged = run_pipeline(ir_of(g), target);
  CHECK(gemms_of(apart) == 24 * 8 + 1);
  CHECK(gemms_of(merged) == 24 * 6 + 1);
  CHECK(apart.plan.setup.empty());
  CHECK(merged.plan.setup.size() == 24);
  for (const schedule::Step& step : merged.plan.setup) CHECK(step.reads.size() == 3);
}

TEST_CASE("bert: a layer has the same kernels with symbolic and with static dims", "[runtime][gemm]") {
  const Graph symbolic = Graph::load((test::source_directory() / "examples/graphs/bert_layer.fuse").string());
  example::Bert model;
  model.batch = 8;  // the hints
  model.sequence = 128;
  const Graph fixed = example::BertGraph(model, "bert_layer").build_layer();
  REQUIRE(ir_of(fixed).symbols.empty());
  REQUIRE(ir_of(symbolic).symbols.size() == 2);
  const Target target = target_profile("h200");
  const Compiled a = run_pipeline(ir_of(symbolic), target), b = run_pipeline(ir_of(fixed), target);
  CHECK(kernels_of(a) == kernels_of(b));
  CHECK(!kernels_of(a).empty());
  CHECK(gemms_of(a) == 6);
  CHECK(gemms_of(b) == 6);
}

TEST_CASE("bert: a small layer on every device, merged or not", "[runtime][gemm][device]") {
  example::Bert model;
  model.hidden = 64;
  model.heads = 2;
  model.intermediate = 96;
  const Graph g = example::BertGraph(model, "layer").build_layer();
  const DimValues dims = {{"B", 2}, {"S", 9}};
  const auto dim = [&](std::string_view name) { return dims.find(name)->second; };
  runtime::Values values;
  for (const ir::Node& node : ir_of(g).nodes) {
    const auto* named = std::get_if<ir::NameAttr>(&node.attr);
    if (!named) continue;
    std::vector<std::int64_t> shape;
    for (const Dim& extent : node.type.dims) shape.push_back(extent.evaluate(dim));
    auto tensor = runtime::HostTensor::make(node.type.dtype, shape);
    if (node.type.dtype == boolean) {
      for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set_int(i, i % 9 < 7);
    } else {
      runtime::random_fill(tensor, 11, named->name, -0.25, 0.25);
    }
    values.emplace(named->name, std::move(tensor));
  }
  const auto exact = evaluate(ir_of(g), values, dim, runtime::Precision::exact).outputs.at("y");
  const auto same = evaluate(ir_of(g), values, dim, runtime::Precision::same_type).outputs.at("y");
  double op_by_op = 0;
  for (std::size_t i = 0; i < exact.element_count(); ++i) {
    op_by_op = std::max(op_by_op, std::abs(same.real()[i] - exact.real()[i]));
  }
  REQUIRE(op_by_op > 0);
  for (const Device& device : test::every_device()) {
    for (const bool merge : {true, false}) {
      INFO(device.name() << " merged " << merge);
      Session session(compile(g, device, {.merge_gemms = merge, .builds = 1}), dims);  // of the hints
      for (const auto& [name, tensor] : values) session.set(name, tensor.data);
      session.run();
      if (device.kind() != DeviceKind::reference) CHECK(session.prepared().gemms() == (merge ? 6 : 8));
      runtime::HostTensor got = runtime::HostTensor::make(bf16, {2, 9, 64});
      session.get("y", got.data);
      double largest = 0;
      for (std::int64_t i = 0; i < got.element_count(); ++i) {
        const double error = std::abs(got.get(i) - exact.real()[static_cast<std::size_t>(i)]);
        if (!(error <= largest)) largest = error;
      }
      CHECK(largest <= 4 * op_by_op);
    }
  }
}
