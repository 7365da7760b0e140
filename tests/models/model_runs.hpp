// Runs of small models with values of a usual size. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "fusec/values/check.hpp"
#include "fusec/values/inputs.hpp"
#include "model_table/launch_bound.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "tensors/random_fill.hpp"

namespace fuse::test {

/// Random inputs. Matrices are scaled as a model's are at its first training step, so that gates and
/// softmaxes are not at their ends, where wrong inputs would not show.
inline runtime::Values model_values(const Graph& graph) {
  runtime::Values values = fusec::make_inputs(ir_of(graph), {}, {}, 1).values;
  for (const ir::Node& node : ir_of(graph).nodes) {
    if (node.op != ir::Op::parameter || node.type.dims.size() < 2) continue;
    const std::string& name = std::get<ir::NameAttr>(node.attr).name;
    const auto rows = static_cast<double>(node.type.dims.front().constant());
    runtime::random_fill_normal(values.at(name), 1, name, 1 / std::sqrt(rows));
  }
  return values;
}

/// Every output on each device is within the bound of `fusec run --check` of the exact values
/// (docs/fusec.md), and does not have one value throughout.
inline void check_model(const Graph& graph) {
  const runtime::Values values = model_values(graph);
  fusec::OutputChecker checker(ir_of(graph), values, [](std::string_view) { return std::int64_t{0}; });
  for (const Device& device : test_devices(0)) {
    const Executable executable = compile(graph, device);
    Session session(executable);
    for (const auto& [name, tensor] : values) session.set(name, tensor.data);
    session.run();
    for (const Slot& slot : executable.slots()) {
      if (slot.kind != Slot::Kind::output) continue;
      std::vector<std::int64_t> shape;
      for (const Dim& dim : slot.dims) shape.push_back(dim.constant());
      runtime::HostTensor got = runtime::HostTensor::make(slot.dtype, shape);
      session.get(slot.name, got.data);
      const fusec::Verdict verdict = checker.check(slot.name, got);
      INFO(graph.name() << " on " << device.name() << ", " << slot.name << ": " << verdict.text);
      CHECK(verdict.ok);
      if (is_floating(slot.dtype)) CHECK(!verdict.bare);
    }
  }
}

/// The steps of a model's plan and its bound, for an H200.
struct PlannedModel {
  bench::StepCounts steps;
  std::int64_t bound = 0;
};
inline PlannedModel plan_model(const Graph& graph) {
  const Compiled compiled = run_pipeline(ir_of(graph), target_profile("h200"));
  return {.steps = bench::step_counts(compiled.plan), .bound = bench::forced_launches(compiled)};
}

}  // namespace fuse::test
