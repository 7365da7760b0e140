// SPDX-License-Identifier: Apache-2.0
#include "cases/case_gemms.hpp"

#include <algorithm>
#include <vector>

#include "base/access.hpp"
#include "cases/case_data.hpp"
#include "compile/pipeline/pipeline.hpp"

namespace fuse::bench {
namespace {

using schedule::GemmStep;

std::int64_t elements(const schedule::Plan& plan, schedule::ValueId id) {
  while (plan.values[id].inside && plan.values[id].inside->is_rest) id = plan.values[id].inside->whole;
  return product(plan.values[id].dims).constant();
}

std::vector<const GemmStep*> gemms_of(const schedule::Plan& plan) {
  std::vector<const GemmStep*> gemms;
  for (const schedule::Step& step : plan.steps) {
    if (const auto* gemm = std::get_if<GemmStep>(&step.work)) gemms.push_back(gemm);
  }
  return gemms;
}

runtime::GemmDesc describe(const schedule::Plan& plan, const GemmStep& step) {
  runtime::GemmDesc d{
      .batch = step.batch.constant(), .m = step.m.constant(), .n = step.n.constant(), .k = step.k.constant()};
  // An operand with the elements of one matrix is shared by the batch.
  const auto stride = [&](schedule::ValueId id, std::int64_t matrix) {
    return d.batch > 1 && elements(plan, id) == matrix ? 0 : matrix;
  };
  d.stride_a = stride(step.a, d.m * d.k);
  d.stride_b = stride(step.b, d.k * d.n);
  d.stride_c = d.m * d.n;
  d.transpose_a = step.transpose_a;
  d.transpose_b = step.transpose_b;
  d.operand = step.operand;
  d.result = step.result;
  d.epilogue = step.epilogue;
  d.scale = step.scale;
  d.algorithm = step.algorithm.rank;
  for (const auto* layout : {&step.layout, &step.layout_a, &step.layout_b}) {
    if (!*layout) continue;
    d.batch = (*layout)->inner.constant();
    d.calls = (*layout)->outer.constant();
  }
  const auto lay_out = [&](const std::optional<schedule::GemmLayout>& layout, std::int64_t& row,
                           std::int64_t& stride, std::int64_t& call) {
    call = stride * d.batch;
    if (!layout) return;
    row = layout->row.constant();
    stride = layout->inner_stride.constant();
    call = layout->outer_stride.constant();
  };
  lay_out(step.layout_a, d.row_a, d.stride_a, d.call_a);
  lay_out(step.layout_b, d.row_b, d.stride_b, d.call_b);
  lay_out(step.layout, d.row_c, d.stride_c, d.call_c);
  return d;
}

struct Ready {
  std::unique_ptr<runtime::Gemm> gemm;
  Buffer a, b, c, extra;
};

/// As `first` has it; without one, made on the host.
Buffer operand(const Device& device, const char* name, DType dtype, std::int64_t count, const Buffer* first) {
  Buffer buffer = device.allocate(count * static_cast<std::int64_t>(size_of(dtype)));
  if (!first) {
    buffer.upload(data_of({Slot::Kind::parameter, name, dtype, {count}}).data);
    return buffer;
  }
  Stream stream = device.stream();
  backend_of(device)
      ->copy(queue_of(stream), buffer.address(), first->address(), buffer.size())
      .throw_if_failed();
  stream.synchronize().throw_if_failed();
  return buffer;
}

Ready make_ready(const Device& device, const schedule::Plan& plan, const GemmStep& step, const Ready* first) {
  Ready ready;
  ready.gemm = backend_of(device)->prepare_gemm(describe(plan, step));
  ready.a = operand(device, "a", step.operand, elements(plan, step.a), first ? &first->a : nullptr);
  ready.b = operand(device, "b", step.operand, elements(plan, step.b), first ? &first->b : nullptr);
  if (step.extra) {
    ready.extra =
        operand(device, "extra", step.result, elements(plan, *step.extra), first ? &first->extra : nullptr);
  }
  ready.c = device.allocate(elements(plan, step.c) * static_cast<std::int64_t>(size_of(step.result)));
  return ready;
}

}  // namespace

double gemm_flops(const Executable& executable) {
  double flops = 0;
  for (const GemmStep* step : gemms_of(stages_of(executable).plan)) {
    flops += 2.0 * static_cast<double>(step->batch.constant()) * static_cast<double>(step->m.constant()) *
             static_cast<double>(step->n.constant()) * static_cast<double>(step->k.constant());
  }
  return flops;
}

Spread time_gemms(const Executable& executable, DeviceTimer& timer) {
  const schedule::Plan& plan = stages_of(executable).plan;
  const std::vector<const GemmStep*> steps = gemms_of(plan);
  std::vector<std::vector<Ready>> sets(1);
  std::int64_t bytes = 0, scratch = 0;
  for (const GemmStep* step : steps) {
    const Ready& ready = sets[0].emplace_back(make_ready(executable.device(), plan, *step, nullptr));
    bytes += ready.a.size() + ready.b.size() + ready.c.size();
    scratch = std::max(scratch, ready.gemm->workspace_bytes());
  }
  sets.resize(static_cast<std::size_t>(timer.sets_past_l2(bytes)));
  for (std::size_t set = 1; set < sets.size(); ++set) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      sets[set].push_back(make_ready(executable.device(), plan, *steps[i], &sets[0][i]));
    }
  }

  const Buffer workspace = executable.device().allocate(scratch);  // one GEMM runs at a time
  return timer.device(static_cast<std::int64_t>(sets.size()), [&](std::int64_t set) -> Status {
    for (const Ready& ready : sets[static_cast<std::size_t>(set)]) {
      Status status = ready.gemm->run(queue_of(timer.stream()), ready.a.address(), ready.b.address(),
                                      ready.c.address(), workspace.address(), ready.extra.address());
      if (!status) return status;
    }
    return {};
  });
}

}  // namespace fuse::bench
