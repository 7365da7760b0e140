// prepare: everything that is done once for given dims. Running it is in run.cpp.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "runtime/binding.hpp"
#include "runtime/executable_impl.hpp"
#include "runtime/host_tensor.hpp"
#include "runtime/memory_plan.hpp"

namespace fuse {
namespace runtime {
namespace {

using schedule::PlanValue;
using schedule::Step;
using schedule::ValueId;

[[noreturn]] void fail(const Step& step, const std::string& message) {
  throw Error({.kind = ErrorKind::internal,
               .code = ErrorCode::internal,
               .message = fmt::format("step '{}': {}", step.name, message)});
}

std::int64_t bytes_of(DType dtype, const std::vector<std::int64_t>& shape) {
  const auto count = checked_element_count(shape, dtype);
  if (!count) {
    throw Error({.code = ErrorCode::invalid_extent,
                 .message = fmt::format("the bytes of {} overflow 63 bits", type_text(dtype, shape))});
  }
  return *count * static_cast<std::int64_t>(size_of(dtype));
}

auto key(const GemmDesc& d) {
  return std::tuple(d.batch, d.m, d.n, d.k, d.stride_a, d.stride_b, d.stride_c, d.transpose_a, d.transpose_b,
                    d.operand, d.result, d.epilogue, d.scale);
}
using GemmKey = decltype(key(GemmDesc{}));

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
  }
  return "?";
}

/// Turns a plan's steps into ready ones.
class Preparer {
 public:
  Preparer(const Executable::Impl& executable, const Binding& binding, Prepared::Impl& out)
      : executable_(executable), plan_(executable.compiled.plan), binding_(binding), out_(out) {}

  void run() {
    bind_values();
    for (std::size_t i = 0; i < plan_.setup.size(); ++i) {
      ReadyStep ready;
      if (!make_ready(plan_.setup[i], ready)) continue;
      ready.label = "setup " + label(i, plan_.setup[i], ready.kind);
      out_.setup.push_back(std::move(ready));
    }
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const Step& step = plan_.steps[i];
      for (const ValueId id : step.reads) touch(id, static_cast<std::uint32_t>(i));
      for (const ValueId id : step.writes) touch(id, static_cast<std::uint32_t>(i));
      ReadyStep ready;
      if (!make_ready(step, ready)) continue;
      ready.label = label(i, step, ready.kind);
      if (ready.scratch.bytes > 0) {
        scratch_of_.push_back({out_.steps.size(), ranges_.size()});
        const auto at = static_cast<std::uint32_t>(i);
        ranges_.push_back({ready.scratch.bytes, at, at});
      }
      out_.launches += ready.kind == ReadyStep::Kind::kernel;
      out_.gemm_calls += ready.kind == ReadyStep::Kind::gemm;
      out_.steps.push_back(std::move(ready));
    }
    place_workspace();
    mark_needs();
  }

 private:
  /// False for a step without work.
  bool make_ready(const Step& step, ReadyStep& ready) {
    return std::visit([&](const auto& work) { return prepare(step, work, ready); }, step.work);
  }

  /// Run needs every buffer, but for parameters that the setup alone reads.
  void mark_needs() {
    const auto mark = [&](const std::vector<Step>& steps, std::vector<char>& needs) {
      for (const Step& step : steps) {
        for (const ValueId id : step.reads) {
          if (id < needs.size()) needs[id] = 1;
        }
      }
    };
    std::vector<char> read(out_.runs.size(), 0);
    mark(plan_.setup, out_.packs);
    mark(plan_.steps, read);
    for (std::size_t i = 0; i < read.size(); ++i) out_.runs[i] = read[i] || !out_.packs[i];
  }

  /// Sizes of all values. Temporaries have one live range each, which steps extend.
  void bind_values() {
    for (const PlanValue& value : plan_.values) {
      Place place;
      place.bytes = bytes_of(value.dtype, binding_.shape(value.dims));
      if (value.kind == PlanValue::Kind::temporary) {
        ranges_.push_back({place.bytes, std::numeric_limits<std::uint32_t>::max(), 0});
      } else if (value.kind == PlanValue::Kind::packed) {
        place.slot = Place::packed;
        place.offset = out_.packed_bytes;
        out_.packed_bytes = after(place);
      } else {
        place.slot = static_cast<std::int32_t>(places_.size());
      }
      places_.push_back(place);
    }
    first_temporary_ = places_.size() - ranges_.size();
  }

  /// The next offset of the packed memory.
  static std::int64_t after(const Place& place) {
    std::int64_t end = 0;
    if (__builtin_add_overflow(place.offset, place.bytes, &end) ||
        __builtin_add_overflow(end, workspace_alignment - 1, &end)) {
      throw Error(
          {.code = ErrorCode::invalid_extent, .message = "the packed values overflow 63 bits of bytes"});
    }
    return end & -workspace_alignment;
  }

  void touch(ValueId id, std::uint32_t step) {
    if (id < first_temporary_) return;
    LiveRange& range = ranges_[id - first_temporary_];
    range.first = std::min(range.first, step);
    range.last = std::max(range.last, step);
  }

  /// The offsets go where places were copied to before they were known.
  void place_workspace() {
    for (LiveRange& range : ranges_) {
      if (range.first > range.last) range = {};  // nobody uses it
    }
    const MemoryPlan memory = plan_memory(ranges_);
    out_.workspace_bytes = memory.total;
    const auto settle = [&](Place& place) {
      if (place.slot == Place::workspace && place.offset < 0) place.offset = memory.offsets[~place.offset];
    };
    for (ReadyArgument& argument : out_.arguments) settle(argument.place);
    for (ReadyStep& step : out_.steps) {
      settle(step.a);
      settle(step.b);
      settle(step.c);
      settle(step.extra);
    }
    for (const auto& [step, range] : scratch_of_) out_.steps[step].scratch.offset = memory.offsets[range];
  }

  /// A temporary's offset is ~its range until place_workspace.
  Place place(ValueId id) const {
    Place place = places_[id];
    if (place.slot == Place::workspace) place.offset = ~static_cast<std::int64_t>(id - first_temporary_);
    return place;
  }

  /// A shared kernel names itself, its ops and its lines by the first piece that runs it: what the device
  /// says is of that one, what stands before it of this step.
  std::string text_of_another(const Step& step) const {
    const auto* work = std::get_if<schedule::KernelStep>(&step.work);
    if (!work) return {};
    const std::string& kernel = executable_.compiled.source.kernels[work->kernel].name;
    return kernel == step.name ? "" : fmt::format(", which runs '{}'", kernel);
  }

  std::string label(std::size_t index, const Step& step, ReadyStep::Kind kind) const {
    std::string ops = describe_ops(executable_.compiled.graph, step.nodes, 8);
    // A status has 509 bytes in all; what the device says must fit too.
    constexpr std::size_t longest = 200;
    if (ops.size() > longest) ops.replace(longest, std::string::npos, "...");
    return fmt::format("step {}, {} '{}'{}{}{}{}", index, noun(kind), step.name, ops.empty() ? "" : " (", ops,
                       ops.empty() ? "" : ")", text_of_another(step));
  }

  bool prepare(const Step& step, const schedule::KernelStep& work, ReadyStep& ready) {
    const codegen::KernelInfo& kernel = executable_.compiled.source.kernels[work.kernel];
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
    ready.function = executable_.functions[work.kernel];
    ready.grid.x = grid;
    ready.first_argument = static_cast<std::uint32_t>(out_.arguments.size());
    ready.arguments = static_cast<std::uint32_t>(kernel.params.size());
    for (const ValueId id : work.buffers) out_.arguments.push_back({false, place(id), 0});
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

  /// Elements between matrices of the batch: 0 where one matrix serves all.
  std::int64_t stride(const Step& step, ValueId id, DType dtype, std::int64_t batch, std::int64_t rows,
                      std::int64_t columns, bool shareable) const {
    const PlanValue& value = plan_.values[id];
    std::int64_t matrix = 0, all = 0;
    if (__builtin_mul_overflow(rows, columns, &matrix) || __builtin_mul_overflow(matrix, batch, &all)) {
      throw Error({.code = ErrorCode::invalid_extent,
                   .message = fmt::format("gemm '{}': {} x {} x {} elements overflow 63 bits", step.name,
                                          batch, rows, columns)});
    }
    const std::int64_t elements = places_[id].bytes / static_cast<std::int64_t>(size_of(value.dtype));
    if (value.dtype == dtype && elements == all) return matrix;
    if (value.dtype == dtype && elements == matrix && shareable) return 0;
    fail(step, fmt::format("'{}' is {} with {} elements, the gemm needs {} with {}", value.name,
                           fuse::to_string(value.dtype), elements, fuse::to_string(dtype), all));
  }

  bool prepare(const Step& step, const schedule::GemmStep& work, ReadyStep& ready) {
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
    desc.stride_a = stride(step, work.a, work.operand, desc.batch, desc.m, desc.k, true);
    desc.stride_b = stride(step, work.b, work.operand, desc.batch, desc.k, desc.n, true);
    desc.stride_c = stride(step, work.c, work.result, desc.batch, desc.m, desc.n, false);
    ready.c = place(work.c);
    if (ready.c.bytes == 0) return false;
    desc.epilogue = work.epilogue;
    desc.scale = work.scale;
    if (work.extra) {
      const bool bias = work.epilogue == schedule::EpilogueKind::bias;
      stride(step, *work.extra, work.result, bias ? 1 : desc.batch, bias ? 1 : desc.m, desc.n, false);
      ready.extra = place(*work.extra);
    }
    if (desc.k == 0 && desc.epilogue == schedule::EpilogueKind::none) {  // a sum of nothing
      ready.kind = ReadyStep::Kind::memset;
      return true;
    }
    ready.kind = ReadyStep::Kind::gemm;
    ready.a = place(work.a);
    ready.b = place(work.b);
    ready.gemm = gemm(desc);
    ready.scratch.bytes = ready.gemm->workspace_bytes();
    return true;
  }

  const Gemm* gemm(const GemmDesc& desc) {
    const auto [entry, added] = gemms_.try_emplace(key(desc), nullptr);
    if (added) {
      out_.gemms.push_back(executable_.device.backend()->prepare_gemm(desc));
      entry->second = out_.gemms.back().get();
    }
    return entry->second;
  }

  bool prepare(const Step& step, const schedule::CopyStep& work, ReadyStep& ready) {
    ready.kind = ReadyStep::Kind::copy;
    ready.a = place(work.from);
    ready.c = place(work.to);
    if (ready.a.bytes != ready.c.bytes) {
      fail(step, fmt::format("copies {} bytes to {}", ready.a.bytes, ready.c.bytes));
    }
    return ready.c.bytes > 0;
  }

  bool prepare(const Step&, const schedule::MemsetStep& work, ReadyStep& ready) {
    ready.kind = ReadyStep::Kind::memset;
    ready.c = place(work.to);
    ready.byte = work.byte;
    return ready.c.bytes > 0;
  }

  const Executable::Impl& executable_;
  const schedule::Plan& plan_;
  const Binding& binding_;
  Prepared::Impl& out_;
  std::vector<Place> places_;        // of each value; temporaries without offset
  std::vector<LiveRange> ranges_;    // of the temporaries, then of the gemms' scratch
  std::size_t first_temporary_ = 0;  // value of the first range
  std::vector<std::pair<std::size_t, std::size_t>> scratch_of_;  // ready step, range
  std::map<GemmKey, const Gemm*> gemms_;
};

}  // namespace
}  // namespace runtime

Prepared Executable::prepare(const DimValues& dims) const {
  const runtime::Binding binding(impl_->graph, dims);
  runtime::check_guards(impl_->compiled.guards, binding);
  runtime::check_extents(impl_->graph, binding);
  auto out = std::make_shared<Prepared::Impl>();
  out->executable = impl_;
  out->dims = dims;
  out->device_name = impl_->device.name();
  for (const Slot& slot : impl_->slots) {
    out->shapes.push_back(binding.shape(slot.dims));
    out->bytes.push_back(runtime::bytes_of(slot.dtype, out->shapes.back()));
    out->slot_names.push_back(
        fmt::format("{} {}", runtime::to_string(slot.kind), runtime::quoted(slot.name)));
    out->slot_types.push_back(runtime::type_text(slot.dtype, out->shapes.back()));
  }
  out->packs.assign(impl_->slots.size(), 0);
  out->runs.assign(impl_->slots.size(), 1);
  if (impl_->device.kind() != DeviceKind::reference) runtime::Preparer(*impl_, binding, *out).run();
  return Prepared(std::move(out));
}

namespace {

template <class T>
const T& at(const std::vector<T>& values, std::size_t slot) {
  if (slot < values.size()) return values[slot];
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("there is no slot {}: there are {}", slot, values.size())});
}

}  // namespace

const std::vector<std::int64_t>& Prepared::shape(std::size_t slot) const { return at(impl_->shapes, slot); }
std::int64_t Prepared::bytes(std::size_t slot) const { return at(impl_->bytes, slot); }
std::int64_t Prepared::workspace_bytes() const { return impl_->workspace_bytes; }
std::int64_t Prepared::packed_bytes() const { return impl_->packed_bytes; }
bool Prepared::reads_in_run(std::size_t slot) const { return at(impl_->runs, slot) != 0; }
std::int64_t Prepared::launches() const { return impl_->launches; }
std::int64_t Prepared::gemms() const { return impl_->gemm_calls; }

}  // namespace fuse
