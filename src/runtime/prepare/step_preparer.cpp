// SPDX-License-Identifier: Apache-2.0
#include "runtime/prepare/step_preparer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "plan/decision_line.hpp"

namespace fuse::runtime {
namespace {

using schedule::Step;

[[noreturn]] void fail(const Step& step, const std::string& message) {
  throw Error({.kind = ErrorKind::internal,
               .code = ErrorCode::internal,
               .message = fmt::format("step '{}': {}", step.name, message)});
}

std::string_view noun(ReadyStep::Kind kind) {
  switch (kind) {
    case ReadyStep::Kind::kernel:
      return "kernel";
    case ReadyStep::Kind::gemm:
      return "gemm";
    case ReadyStep::Kind::copy:
      return "copy";
    case ReadyStep::Kind::memset:
      return "memset";
    case ReadyStep::Kind::pack:
      return "pack";
  }
  return "?";
}

}  // namespace

bool StepPreparer::prepare(const Step& step, ReadyStep& ready) {
  return std::visit([&](const auto& work) { return prepare(step, work, ready); }, step.work);
}

bool StepPreparer::prepare_for_run(const Step& step, const ReadyStep* alike, ReadyStep& ready) {
  if (const auto* kernel = std::get_if<schedule::KernelStep>(&step.work); alike && kernel) {
    prepare_as(*alike, *kernel, ready);
    return true;
  }
  if (const auto* gemm = std::get_if<schedule::GemmStep>(&step.work); alike && gemm && !b_counts_) {
    prepare_as(*alike, *gemm, ready);
    return true;
  }
  packs_ = out_.executable->builds.size() == 1;  // builds would have to share what each packs
  const bool has_work = prepare(step, ready);
  packs_ = false;
  return has_work;
}

ReadyArgument* StepPreparer::add_arguments(ReadyStep& ready, std::size_t count) {
  const std::size_t first = out_.arguments.size();
  ready.arguments = {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count)};
  out_.arguments.resize(first + count);
  return out_.arguments.data() + first;
}

void StepPreparer::add_arguments(ReadyStep& ready, std::initializer_list<ValueLocation> locations) {
  ReadyArgument* to = add_arguments(ready, locations.size());
  for (const ValueLocation& location : locations) (to++)->location = location;
}

StepLabel StepPreparer::label(std::size_t index, ReadyStep::Kind kind) {
  const std::string& text =
      texts_ ? (*texts_)[index] : out_.texts.emplace_back(step_text(*build_.program, plan_.steps[index]));
  return {.number = index, .noun = noun(kind), .text = &text};
}

StepLabel StepPreparer::setup_label(std::size_t index, ReadyStep::Kind kind) {
  return {.before = "setup ", .number = index, .noun = noun(kind), .text = &build_.setup_texts[index]};
}

bool StepPreparer::prepare(const Step& step, const schedule::KernelStep& work, ReadyStep& ready) {
  const codegen::KernelInfo& kernel = build_.program->kernels[work.kernel];
  const std::int64_t grid = binding_.value(work.grid);
  if (grid < 0) fail(step, fmt::format("a grid of {}{}", grid, binding_.at({work.grid})));
  if (grid == 0) return false;
  if (grid > std::numeric_limits<std::int32_t>::max()) {
    throw Error({.code = ErrorCode::invalid_extent,
                 .message = fmt::format("kernel '{}' needs {} blocks{}, a launch has at most 2147483647",
                                        step.name, grid, binding_.at({work.grid}))});
  }
  if (kernel.params.size() > max_arguments) {
    fail(step, fmt::format("{} kernel parameters, at most {}", kernel.params.size(), max_arguments));
  }
  ready.function = build_.functions[work.kernel];
  ready.grid.x = grid;
  ready.arguments = {static_cast<std::uint32_t>(out_.arguments.size()),
                     static_cast<std::uint32_t>(kernel.params.size())};
  for (const ValueId id : work.buffers) out_.arguments.push_back({false, locations_.location(id), 0});
  for (std::size_t i = 0; i < work.extents.size(); ++i) {
    const codegen::KernelParam& param = kernel.params[work.buffers.size() + i];
    const std::int64_t value = binding_.value(work.extents[i]);
    if (param.dtype == i32 && value != static_cast<std::int32_t>(value)) {
      fail(step, fmt::format("extent '{}' = {} does not fit its 32 bits", param.name, value));
    }
    out_.arguments.push_back({true, {}, value});
  }
  return true;
}

void StepPreparer::prepare_as(const ReadyStep& alike, const schedule::KernelStep& work, ReadyStep& ready) {
  ready.function = alike.function;
  ready.grid = alike.grid;
  ReadyArgument* to = add_arguments(ready, alike.arguments.count);
  for (const ValueId id : work.buffers) (to++)->location = locations_.location(id);
  std::copy_n(out_.arguments.data() + alike.arguments.first + work.buffers.size(), work.extents.size(), to);
}

void StepPreparer::prepare_as(const ReadyStep& alike, const schedule::GemmStep& work, ReadyStep& ready) {
  ready.kind = alike.kind;
  if (ready.kind == ReadyStep::Kind::memset) return add_arguments(ready, {locations_.location(work.c)});
  ready.calls = alike.calls;
  ready.gemm = alike.gemm;
  ReadyArgument* const to = add_arguments(ready, gemm_argument::count);
  to[gemm_argument::a].location = locations_.location(work.a);
  to[gemm_argument::b].location = locations_.location(work.b);
  to[gemm_argument::c].location = locations_.location(work.c);
  to[gemm_argument::scratch] = out_.arguments[alike.arguments.first + gemm_argument::scratch];
  if (work.extra) to[gemm_argument::extra].location = locations_.location(*work.extra);
}

std::int64_t StepPreparer::stride(const Step& step, ValueId id, DType dtype, std::int64_t batch,
                                  std::int64_t rows, std::int64_t columns, bool shareable) const {
  const schedule::PlanValue& value = plan_.values[id];
  std::int64_t matrix = 0, all = 0;
  if (__builtin_mul_overflow(rows, columns, &matrix) || __builtin_mul_overflow(matrix, batch, &all)) {
    throw Error({.code = ErrorCode::invalid_extent,
                 .message = fmt::format("gemm '{}': {} x {} x {} elements overflow 63 bits", step.name, batch,
                                        rows, columns)});
  }
  const std::int64_t elements = locations_.bytes(id) / static_cast<std::int64_t>(size_of(value.dtype));
  if (value.dtype == dtype && elements == all) return matrix;
  if (value.dtype == dtype && elements == matrix && shareable) return 0;
  fail(step, fmt::format("'{}' is {} with {} elements, the gemm needs {} with {}", value.name,
                         fuse::to_string(value.dtype), elements, fuse::to_string(dtype), all));
}

GemmDesc StepPreparer::described(const Step& step, const schedule::GemmStep& work) const {
  GemmDesc desc;
  desc.batch = binding_.value(work.batch);
  desc.m = binding_.value(work.m);
  desc.n = binding_.value(work.n);
  desc.k = binding_.value(work.k);
  desc.transpose_a = work.transpose_a;
  desc.transpose_b = work.transpose_b;
  desc.operand = work.operand;
  desc.result = work.result;
  if (std::min({desc.batch, desc.m, desc.n, desc.k}) < 0) fail(step, "a gemm with a negative extent");
  if (!work.layout_a) desc.stride_a = stride(step, work.a, work.operand, desc.batch, desc.m, desc.k, true);
  if (!work.layout_b) desc.stride_b = stride(step, work.b, work.operand, desc.batch, desc.k, desc.n, true);
  desc.stride_c = stride(step, work.c, work.result, desc.batch, desc.m, desc.n, false);
  scatter(work, desc);
  return desc;
}

const std::string* StepPreparer::recorded(const schedule::GemmStep& work) const {
  if (!work.algorithms) return nullptr;
  const schedule::GemmAlgorithms& algorithms = plan_.algorithms[*work.algorithms];
  if (algorithms.library != backend_.gemm_library()) return nullptr;
  const std::string& found = algorithms.recorded[version_at(algorithms.table, binding_)];
  return found.empty() ? nullptr : &found;
}

bool StepPreparer::prepare(const Step& step, const schedule::GemmStep& work, ReadyStep& ready) {
  GemmDesc desc = described(step, work);
  b_counts_ = b_counts_ || (packs_ && backend_.packed_gemm_bytes(desc) > 0);
  // Before a product of no rows is left out: packed memory is the same for all dims.
  const ValueLocation packed = packs_ && is_fixed(work) ? packed_operand(work, desc) : ValueLocation{};
  const ValueLocation c = locations_.location(work.c);
  if (c.bytes == 0) return false;
  desc.epilogue = work.epilogue;
  desc.scale = work.scale;
  desc.algorithm = work.algorithm.rank;
  desc.recorded = recorded(work);
  ValueLocation extra;
  if (work.extra) {
    const bool bias = work.epilogue == schedule::EpilogueKind::bias;
    stride(step, *work.extra, work.result, bias ? 1 : desc.batch, bias ? 1 : desc.m, desc.n, false);
    extra = locations_.location(*work.extra);
  }
  if (desc.k == 0 && desc.epilogue == schedule::EpilogueKind::none) {  // a sum of nothing
    ready.kind = ReadyStep::Kind::memset;
    add_arguments(ready, {c});
    return true;
  }
  ready.kind = ReadyStep::Kind::gemm;
  ready.calls = desc.calls;
  ValueLocation b = locations_.location(work.b);
  desc.packed_b = packed.bytes > 0 && backend_.prefers_packed_gemm(desc);
  if (desc.packed_b) b = packed;
  if (backend_.reads_backwards(desc)) {
    b_counts_ = true;
    desc.backwards = readers_[{b.slot, b.offset}]++ % 2 == 1;
  }
  ready.gemm = gemm(step, work, desc);
  const ValueLocation scratch{.bytes = ready.gemm->workspace_bytes()};
  add_arguments(ready, {locations_.location(work.a), b, c, scratch, extra});  // as gemm_argument has them
  return true;
}

bool StepPreparer::is_fixed(const schedule::GemmStep& work) const {
  using Kind = schedule::PlanValue::Kind;
  const schedule::PlanValue& b = plan_.values[work.b];
  const Kind kind = plan_.values[locations_.root(work.b)].kind;
  if ((kind != Kind::parameter && kind != Kind::packed) || !work.n.is_constant() || !work.k.is_constant())
    return false;
  if (b.inside && !b.inside->offset_bytes.is_constant()) return false;
  return !work.layout_b || work.layout_b->row.is_constant();
}

ValueLocation StepPreparer::packed_operand(const schedule::GemmStep& work, const GemmDesc& desc) {
  // What no run would read is not made: where m may be another one, some run may.
  if (work.m.is_constant() && !backend_.prefers_packed_gemm(desc)) return {};
  const std::int64_t bytes = backend_.packed_gemm_bytes(desc);
  if (bytes == 0) return {};
  const ValueLocation from = locations_.location(work.b);
  const auto [entry, added] = packed_.try_emplace(
      std::tuple(from.slot, from.offset, desc.k, desc.n, row_of_b(desc), desc.transpose_b, desc.operand),
      ValueLocation{});
  if (!added) return entry->second;
  entry->second = locations_.add_packed(bytes);
  ReadyStep ready;
  ready.kind = ReadyStep::Kind::pack;
  ready.packed = &out_.packed_operands.emplace_back(desc);
  ready.label = {.before = "setup ",
                 .number = out_.setup.size(),
                 .noun = noun(ready.kind),
                 .text = &out_.texts.emplace_back(fmt::format("of '{}'", plan_.values[work.b].name))};
  add_arguments(ready, {from, entry->second});  // as pack_argument has them
  out_.setup.push_back(std::move(ready));
  return entry->second;
}

void StepPreparer::scatter(const schedule::GemmStep& work, GemmDesc& desc) const {
  const auto* first = work.layout ? &*work.layout : work.layout_a ? &*work.layout_a : nullptr;
  if (!first && work.layout_b) first = &*work.layout_b;
  if (!first) return;
  desc.batch = binding_.value(first->inner);
  desc.calls = binding_.value(first->outer);
  const auto lay_out = [&](const std::optional<schedule::GemmLayout>& layout, std::int64_t& row,
                           std::int64_t& stride, std::int64_t& call) {
    call = stride * desc.batch;  // back to back
    if (!layout) return;
    row = binding_.value(layout->row);
    stride = binding_.value(layout->inner_stride);
    call = binding_.value(layout->outer_stride);
  };
  lay_out(work.layout_a, desc.row_a, desc.stride_a, desc.call_a);
  lay_out(work.layout_b, desc.row_b, desc.stride_b, desc.call_b);
  lay_out(work.layout, desc.row_c, desc.stride_c, desc.call_c);
}

std::unique_ptr<Gemm> StepPreparer::made(const Step& step, const schedule::GemmStep& work,
                                         const GemmDesc& desc) const {
  try {
    return backend_.prepare_gemm(desc);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument || work.algorithm.line == 0) throw;
    // The device knows the product alone.
    const StepOrigin& origin = build_.program->origins[step.origin];
    ErrorInfo info = error.info();
    info.message = fmt::format("{}: {}", schedule::line_of_decisions(work.algorithm.line), info.message);
    info.op = origin.op;
    info.shapes = {origin.type};
    info.location = origin.location;
    throw Error(std::move(info));
  }
}

const Gemm* StepPreparer::gemm(const Step& step, const schedule::GemmStep& work, const GemmDesc& desc) {
  const auto [entry, added] = gemms_.try_emplace(key_of(desc), nullptr);
  if (added) {
    out_.gemms.push_back(made(step, work, desc));
    entry->second = out_.gemms.back().get();
  }
  return entry->second;
}

bool StepPreparer::prepare(const Step& step, const schedule::CopyStep& work, ReadyStep& ready) {
  ready.kind = ReadyStep::Kind::copy;
  const ValueLocation from = locations_.location(work.from), to = locations_.location(work.to);
  if (from.bytes != to.bytes) fail(step, fmt::format("copies {} bytes to {}", from.bytes, to.bytes));
  if (to.bytes == 0) return false;
  add_arguments(ready, {from, to});
  return true;
}

bool StepPreparer::prepare(const Step&, const schedule::MemsetStep& work, ReadyStep& ready) {
  ready.kind = ReadyStep::Kind::memset;
  const ValueLocation to = locations_.location(work.to);
  if (to.bytes == 0) return false;
  ready.byte = work.byte;
  add_arguments(ready, {to});
  return true;
}

}  // namespace fuse::runtime
