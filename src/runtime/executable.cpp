// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/nearest.hpp"
#include "ir/verify.hpp"
#include "runtime/compile_cache.hpp"
#include "runtime/contract.hpp"
#include "runtime/executable_impl.hpp"
#include "runtime/host_tensor.hpp"

namespace fuse {
namespace runtime {
namespace {

[[noreturn]] void bad_plan(std::string message) {
  throw Error({.kind = ErrorKind::internal, .code = ErrorCode::internal, .message = std::move(message)});
}

std::vector<Slot> slots_of(const ir::Graph& graph) {
  std::vector<Slot> slots;
  for (const ir::Node& node : graph.nodes) {
    if (node.op != ir::Op::input && node.op != ir::Op::parameter) continue;
    const Slot::Kind kind = node.op == ir::Op::input ? Slot::Kind::input : Slot::Kind::parameter;
    slots.push_back({kind, ir::attr<ir::NameAttr>(node).name, node.type.dtype, node.type.dims});
  }
  for (const ir::Output& output : graph.outputs) {
    const ir::Type& type = graph[output.node].type;
    slots.push_back({Slot::Kind::output, output.name, type.dtype, type.dims});
    if (!output.donated()) continue;
    const std::string& donor = ir::attr<ir::NameAttr>(graph[output.donor]).name;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].kind == Slot::Kind::input && slots[i].name == donor) slots.back().donor = i;
    }
  }
  return slots;
}

/// Temporaries and packed values are the executable's own.
bool is_slot(const schedule::PlanValue& value) {
  using Kind = schedule::PlanValue::Kind;
  return value.kind != Kind::temporary && value.kind != Kind::packed;
}

/// A slot of the graph is the plan's value with the same index.
void check_slots(const std::vector<Slot>& slots, const ir::Graph& graph, const schedule::Plan& plan) {
  using Kind = schedule::PlanValue::Kind;
  std::size_t count = 0;
  for (const schedule::PlanValue& value : plan.values) count += is_slot(value);
  if (count != slots.size()) {
    bad_plan(
        fmt::format("the plan has {} inputs, parameters and outputs, the graph {}", count, slots.size()));
  }
  // The plan's extents are canonical, the user's as they were written.
  std::optional<analysis::Facts> facts;
  const auto same = [&](const Dim& mine, const Dim& planned) {
    if (mine == planned) return true;
    if (!facts) facts = analysis::facts_of(graph);
    return facts->equal(mine, planned);
  };
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const schedule::PlanValue& value = plan.values[i];
    const Kind kind = slots[i].kind == Slot::Kind::input       ? Kind::input
                      : slots[i].kind == Slot::Kind::parameter ? Kind::parameter
                                                               : Kind::output;
    if (value.kind == kind && value.name == slots[i].name && value.dtype == slots[i].dtype &&
        std::equal(slots[i].dims.begin(), slots[i].dims.end(), value.dims.begin(), value.dims.end(), same)) {
      continue;
    }
    bad_plan(fmt::format("value {} of the plan is not the graph's {} '{}'", i, to_string(slots[i].kind),
                         slots[i].name));
  }
}

/// A kernel's parameters are the step's buffers, then its extents.
void check_kernel(const schedule::Plan& plan, const schedule::Step& step, const schedule::KernelStep& work,
                  const codegen::Source& source) {
  const auto where = [&] { return fmt::format("step '{}': ", step.name); };
  if (work.kernel >= source.kernels.size())
    bad_plan(where() + fmt::format("there is no kernel {}", work.kernel));
  const codegen::KernelInfo& kernel = source.kernels[work.kernel];
  if (kernel.params.size() != work.buffers.size() + work.extents.size()) {
    bad_plan(where() + fmt::format("kernel '{}' has {} parameters, the step {} buffers and {} extents",
                                   kernel.name, kernel.params.size(), work.buffers.size(),
                                   work.extents.size()));
  }
  for (std::size_t i = 0; i < kernel.params.size(); ++i) {
    const codegen::KernelParam& param = kernel.params[i];
    const bool is_buffer = i < work.buffers.size();
    if (is_buffer != (param.kind == codegen::KernelParam::Kind::buffer)) {
      bad_plan(where() +
               fmt::format("parameter '{}' of kernel '{}' is of another kind", param.name, kernel.name));
    }
    if (!is_buffer) continue;
    const schedule::ValueId id = work.buffers[i];
    if (plan.values[id].dtype != param.dtype) {
      bad_plan(where() + fmt::format("parameter '{}' is {}, its value {}", param.name,
                                     fuse::to_string(param.dtype), fuse::to_string(plan.values[id].dtype)));
    }
    const bool stated = std::find(step.writes.begin(), step.writes.end(), id) != step.writes.end();
    if (param.written && !stated && id != work.counter) {
      bad_plan(where() + fmt::format("kernel '{}' writes '{}' without stating it", kernel.name, param.name));
    }
  }
}

}  // namespace

namespace {

std::shared_ptr<const Module> loaded(const std::shared_ptr<const Compiled>& compiled, Backend& backend,
                                     int threads) {
  // The key keeps the stages alive: the text is theirs.
  ModuleKey key({compiled, &compiled->source}, backend.build_key());
  if (auto found = backend.cache().modules.find(key)) return found;
  std::shared_ptr<const Module> module = backend.load(compiled->source, threads);
  backend.cache().modules.insert(std::move(key), module);
  return module;
}

}  // namespace

Executable make_executable(std::shared_ptr<const ir::Graph> graph, std::shared_ptr<const Compiled> compiled,
                           const Device& device, int threads, std::shared_ptr<const Module> module) {
  auto impl = std::make_shared<Executable::Impl>(
      Executable::Impl{.device = device, .user_graph = std::move(graph), .stages = std::move(compiled)});
  impl->slots = slots_of(impl->graph);
  if (device.kind() == DeviceKind::reference) return Executable(std::move(impl));

  const schedule::Plan& plan = impl->compiled.plan;
  schedule::verify(plan);
  check_slots(impl->slots, impl->graph, plan);
  for (const std::vector<schedule::Step>* steps : {&plan.setup, &plan.steps}) {
    for (const schedule::Step& step : *steps) {
      const auto* work = std::get_if<schedule::KernelStep>(&step.work);
      if (work) check_kernel(plan, step, *work, impl->compiled.source);
    }
  }
  impl->source = impl->compiled.source.text();
  if (!impl->compiled.source.kernels.empty()) {
    impl->module = module ? std::move(module) : loaded(impl->stages, *device.backend(), threads);
    for (const codegen::KernelInfo& kernel : impl->compiled.source.kernels) {
      impl->functions.push_back(&impl->module->function(kernel.name));
    }
  }
  return Executable(std::move(impl));
}

Executable make_executable(ir::Graph graph, Compiled compiled, const Device& device,
                           std::unique_ptr<Module> module) {
  return make_executable(std::make_shared<const ir::Graph>(std::move(graph)),
                         std::make_shared<const Compiled>(std::move(compiled)), device, 0, std::move(module));
}

Executable make_executable(Compiled compiled, const Device& device) {
  ir::Graph graph = compiled.graph;
  return make_executable(std::move(graph), std::move(compiled), device);
}

}  // namespace runtime

inline namespace v0 {
namespace {

std::size_t find_slot(const std::vector<Slot>& slots, std::string_view name, bool output) {
  std::vector<std::string> names;
  bool other = false;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const bool wanted = (slots[i].kind == Slot::Kind::output) == output;
    if (wanted && slots[i].name == name) return i;
    if (wanted) names.push_back(slots[i].name);
    other |= !wanted && slots[i].name == name;
  }
  std::string hint = ir::nearest_names(names, name);
  if (other)
    hint = fmt::format("{} is an {}", runtime::in_quotes(name), output ? "input or parameter" : "output");
  throw Error({.code = ErrorCode::unknown_name,
               .message = fmt::format("no {} is named {}", output ? "output" : "input or parameter",
                                      runtime::in_quotes(name)),
               .hint = std::move(hint)});
}

}  // namespace

const std::vector<Slot>& Executable::slots() const { return impl_->slots; }
std::size_t Executable::slot(std::string_view name) const { return find_slot(impl_->slots, name, false); }
std::size_t Executable::output_slot(std::string_view name) const {
  return find_slot(impl_->slots, name, true);
}
std::string Executable::explain() const { return runtime::explain(*impl_); }
const std::string& Executable::source() const { return impl_->source; }
const Device& Executable::device() const { return impl_->device; }
const Compiled& Executable::stages() const { return impl_->compiled; }

Executable compile(const Graph& graph, const Device& device, const CompileOptions& options) {
  runtime::contract::forbid("compiles");
  const ir::Graph& ir = graph.ir();
  ir::verify(ir, ErrorKind::internal);
  if (ir.outputs.empty()) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("graph '{}' has no outputs: there is nothing to compute", ir.name),
                 .hint = "name a result with Graph::output"});
  }
  const auto user = std::make_shared<const ir::Graph>(ir);
  if (device.kind() == DeviceKind::reference) {
    Compiled compiled;
    compiled.guards = analysis::guards_of(ir);
    compiled.graph = ir;
    return runtime::make_executable(user, std::make_shared<const Compiled>(std::move(compiled)), device);
  }
  runtime::Backend& backend = *device.backend();
  runtime::GraphKey key(user, options);
  std::shared_ptr<const Compiled> compiled = backend.cache().stages.find(key);
  if (!compiled) {
    compiled =
        std::make_shared<const Compiled>(run_pipeline(ir, backend.target(), pipeline_options(options)));
    backend.cache().stages.insert(std::move(key), compiled);
  }
  return runtime::make_executable(user, std::move(compiled), device, options.threads);
}

}  // namespace v0
}  // namespace fuse
