// SPDX-License-Identifier: Apache-2.0
#include "plan/program.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fuse::runtime {
namespace {

[[noreturn]] void bad_plan(std::string message) {
  throw Error({.kind = ErrorKind::internal, .code = ErrorCode::internal, .message = std::move(message)});
}

/// Temporaries and packed values are the executable's own.
bool is_slot(const schedule::PlanValue& value) {
  using Kind = schedule::PlanValue::Kind;
  return value.kind != Kind::temporary && value.kind != Kind::packed;
}

schedule::PlanValue::Kind kind_of(const Slot& slot) {
  using Kind = schedule::PlanValue::Kind;
  switch (slot.kind) {
    case Slot::Kind::input:
      return Kind::input;
    case Slot::Kind::parameter:
      return Kind::parameter;
    case Slot::Kind::output:
      break;
  }
  return Kind::output;
}

/// A slot is the plan's value with the same index.
void check_slots(const Program& program) {
  const std::vector<Slot>& slots = program.signature.slots;
  const auto count = static_cast<std::size_t>(
      std::count_if(program.plan.values.begin(), program.plan.values.end(), is_slot));
  if (count != slots.size()) {
    bad_plan(
        fmt::format("the plan has {} inputs, parameters and outputs, the graph {}", count, slots.size()));
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const schedule::PlanValue& value = program.plan.values[i];
    if (value.kind == kind_of(slots[i]) && value.name == slots[i].name && value.dtype == slots[i].dtype &&
        value.dims.size() == slots[i].dims.size()) {
      continue;
    }
    bad_plan(fmt::format("value {} of the plan is not the graph's {} '{}'", i, to_string(slots[i].kind),
                         slots[i].name));
  }
}

/// A kernel's parameters are the step's buffers, then its extents.
void check_kernel(const Program& program, const schedule::Step& step, const schedule::KernelStep& work) {
  const auto where = [&] { return fmt::format("step '{}': ", step.name); };
  if (work.kernel >= program.kernels.size())
    bad_plan(where() + fmt::format("there is no kernel {}", work.kernel));
  const codegen::KernelInfo& kernel = program.kernels[work.kernel];
  if (kernel.params.size() != work.buffers.size() + work.extents.size()) {
    bad_plan(where() + fmt::format("kernel '{}' has {} parameters, the step {} buffers and {} extents",
                                   kernel.name, kernel.params.size(), work.buffers.size(),
                                   work.extents.size()));
  }
  if (!work.touched.empty() && work.touched.size() != work.buffers.size()) {
    bad_plan(where() + fmt::format("it has {} buffers, and says of {} what it touches", work.buffers.size(),
                                   work.touched.size()));
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
    if (program.plan.values[id].dtype != param.dtype) {
      bad_plan(where() + fmt::format("parameter '{}' is {}, its value {}", param.name,
                                     fuse::to_string(param.dtype),
                                     fuse::to_string(program.plan.values[id].dtype)));
    }
    const bool stated = std::find(step.writes.begin(), step.writes.end(), id) != step.writes.end();
    if (param.written && !stated && id != work.counter) {
      bad_plan(where() + fmt::format("kernel '{}' writes '{}' without stating it", kernel.name, param.name));
    }
  }
}

/// What launches and the cost model compute with.
void check_limits(const codegen::KernelInfo& kernel) {
  constexpr int most_threads = 1024, most_cluster = 16, most_blocks = 1024;
  constexpr std::int64_t most_shared = std::int64_t{1} << 20;
  const auto check = [&](const char* what, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value >= least && value <= most) return;
    bad_plan(fmt::format("kernel '{}' has {} {}, where {} to {} are possible", kernel.name, value, what,
                         least, most));
  };
  check("threads a block", kernel.block_threads, 1, most_threads);
  check("blocks a cluster", kernel.cluster, 1, most_cluster);
  check("blocks per multiprocessor", kernel.blocks_per_sm, 0, most_blocks);
  check("bytes of shared memory", kernel.shared_bytes, 0, most_shared);
}

void check_streams(const schedule::StreamChoices& streams) {
  const auto too_high = [](schedule::StreamId id) { return id >= schedule::most_streams; };
  if (streams.max_streams >= 1 && streams.max_streams <= schedule::most_streams &&
      std::none_of(streams.stream.begin(), streams.stream.end(), too_high)) {
    return;
  }
  bad_plan(fmt::format("the plan asks for more than {} streams", schedule::most_streams));
}

void check_run(const Program& program) {
  if (const auto wrong = schedule::misfit(program.run, program.plan)) bad_plan("run: " + wrong->what);
}

/// The run looks a shared buffer up by its donor.
void check_donors(const Program& program) {
  const std::vector<Slot>& slots = program.signature.slots;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const std::optional<std::size_t> donor = slots[i].donor;
    const bool right = !donor || (slots[i].kind == Slot::Kind::output && *donor < slots.size() &&
                                  slots[*donor].kind == Slot::Kind::input);
    if (!right || program.plan.values[i].donor != donor) {
      bad_plan(fmt::format("the {} '{}' has the memory of another value than the plan says",
                           to_string(slots[i].kind), slots[i].name));
    }
  }
}

void check_step(const Program& program, const schedule::Step& step) {
  if (step.origin >= program.origins.size()) {
    bad_plan(fmt::format("step '{}': there is no origin {}", step.name, step.origin));
  }
  const auto* work = std::get_if<schedule::KernelStep>(&step.work);
  if (!work) return;
  check_kernel(program, step, *work);
  for (const schedule::KernelStep& part : work->fallback) {
    if (part.kernel < program.kernels.size()) continue;
    bad_plan(fmt::format("step '{}': there is no kernel {} for a part", step.name, part.kernel));
  }
}

}  // namespace

void verify(const Program& program) {
  schedule::verify(program.plan);
  schedule::verify(program.builds);
  check_slots(program);
  check_donors(program);
  check_streams(program.streams);
  check_run(program);
  for (const codegen::KernelInfo& kernel : program.kernels) check_limits(kernel);
  for (const StepOrigin& origin : program.origins) {
    if (origin.group == schedule::no_group || origin.group < program.groups.size()) continue;
    bad_plan(fmt::format("there is no group {}", origin.group));
  }
  for (const std::vector<schedule::Step>* steps : {&program.plan.setup, &program.plan.steps}) {
    for (const schedule::Step& step : *steps) check_step(program, step);
  }
}

}  // namespace fuse::runtime
