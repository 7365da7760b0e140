// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/access.hpp"
#include "base/quoting.hpp"
#include "base/suggest.hpp"
#include "plan/fallback_launches.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "runtime/execute/prepared_shapes.hpp"
#include "tensors/host_tensor.hpp"

namespace fuse {
namespace runtime {
namespace {

void keep_setups(std::vector<Build>& builds) {
  for (Build& build : builds) {
    const bool known = std::any_of(builds.begin(), builds.end(), [&](const Build& other) {
      return other.setup && other.program->setup == build.program->setup;
    });
    if (!known) build.setup = setup_of(build.program->plan);
  }
}

std::optional<schedule::Plan> split_plan(const schedule::Plan& plan) {
  if (std::none_of(plan.steps.begin(), plan.steps.end(), schedule::has_fallback)) return std::nullopt;
  schedule::Plan split = schedule::with_fallbacks(plan, schedule::has_fallback);
  schedule::verify(split);
  return split;
}

/// None also where its bytes overflow, which prepare says.
std::optional<FixedSlot> fixed_slot(const Slot& slot) {
  FixedSlot fixed;
  for (const Dim& dim : slot.dims) {
    if (!dim.is_constant()) return std::nullopt;
    fixed.shape.push_back(dim.constant());
  }
  const std::optional<std::int64_t> count = checked_element_count(fixed.shape, slot.dtype);
  if (!count) return std::nullopt;
  fixed.bytes = *count * static_cast<std::int64_t>(size_of(slot.dtype));
  return fixed;
}

/// For each slot, whether the steps of some build read it or write it.
std::vector<char> read_by_steps(const std::vector<Build>& builds) {
  std::vector<char> read(builds.front().program->signature.slots.size());
  for (const Build& build : builds) {
    const schedule::Plan& plan = build.program->plan;
    const std::vector<schedule::ValueId> roots = schedule::roots(plan);
    for (const schedule::Step& step : plan.steps) {
      for (const std::vector<schedule::ValueId>* values : {&step.reads, &step.writes})
        for (const schedule::ValueId id : *values)
          if (roots[id] < read.size()) read[roots[id]] = 1;
    }
  }
  return read;
}

}  // namespace

std::string algorithms_of(const Executable::Impl& executable) {
  std::string text, other;
  for (std::size_t i = 0; i < executable.builds.size(); ++i) {
    const std::vector<schedule::GemmAlgorithms>& tables = executable.builds[i].program->plan.algorithms;
    if (!tables.empty() && executable.builds.size() > 1) text += fmt::format("algorithms of build {}\n", i);
    for (std::size_t j = 0; j < tables.size(); ++j) {
      text += algorithms_text(tables[j], j);
      other = tables[j].library;
    }
  }
  const std::string library = backend_of(executable.device)->gemm_library();
  if (!text.empty() && other != library)
    text += fmt::format("  the library here is {}, which does not know them: it proposes its own\n", library);
  return text;
}

Executable make_executable(const Device& device, std::shared_ptr<const Origin> origin,
                           std::vector<Build> builds) {
  if (builds.front().program->builds.versions != builds.size()) {
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::internal,
                 .message = "an executable would have a table for another number of builds"});
  }
  for (Build& build : builds) {
    if (device.kind() != DeviceKind::reference) verify(*build.program);
    for (const codegen::KernelInfo& kernel : build.program->kernels)
      build.functions.push_back(&build.module->function(kernel.name));
    build.split = split_plan(build.program->plan);
    const auto texts_of = [&](const std::vector<schedule::Step>& steps) {
      std::vector<std::string> texts;
      for (const schedule::Step& step : steps) texts.push_back(step_text(*build.program, step));
      return texts;
    };
    build.texts = texts_of(build.program->plan.steps);
    build.setup_texts = texts_of(build.program->plan.setup);
    if (build.split) build.split_texts = texts_of(build.split->steps);
  }
  std::vector<std::string> names;
  std::vector<std::optional<FixedSlot>> fixed_slots;
  for (const Slot& slot : builds.front().program->signature.slots) {
    names.push_back(fmt::format("{} {}", to_string(slot.kind), in_quotes(slot.name)));
    fixed_slots.push_back(fixed_slot(slot));
  }
  std::vector<char> read;
  if (builds.size() > 1) {
    keep_setups(builds);
    read = read_by_steps(builds);
  }
  return made_of<Executable>(
      std::make_shared<Executable::Impl>(Executable::Impl{.device = device,
                                                          .origin = std::move(origin),
                                                          .builds = std::move(builds),
                                                          .read_in_runs = std::move(read),
                                                          .slot_names = std::move(names),
                                                          .fixed_slots = std::move(fixed_slots)}));
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
  std::string hint = nearest_names(names, name);
  if (other) hint = fmt::format("{} is an {}", in_quotes(name), output ? "input or parameter" : "output");
  throw Error(
      {.code = ErrorCode::unknown_name,
       .message = fmt::format("no {} is named {}", output ? "output" : "input or parameter", in_quotes(name)),
       .hint = std::move(hint)});
}

}  // namespace

Executable::Executable(std::shared_ptr<const Impl> impl)
    : impl_(std::move(impl)), prepared_(std::make_shared<runtime::PreparedShapes>()) {}
const std::vector<Slot>& Executable::slots() const { return impl_->slots(); }
std::size_t Executable::slot(std::string_view name) const { return find_slot(impl_->slots(), name, false); }
std::size_t Executable::output_slot(std::string_view name) const {
  return find_slot(impl_->slots(), name, true);
}
std::string Executable::explain() const {
  return impl_->origin->explain(*impl_) + runtime::algorithms_of(*impl_);
}
const std::string& Executable::source() const { return impl_->origin->source(); }
const Device& Executable::device() const { return impl_->device; }
const Compiled& Executable::stages() const { return impl_->origin->stages(); }

}  // namespace v0
}  // namespace fuse
