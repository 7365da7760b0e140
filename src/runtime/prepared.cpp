// prepare: everything that is done once for given dims. Running it is in run.cpp.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <map>
#include <span>
#include <tuple>

#include "runtime/binding.hpp"
#include "runtime/contract.hpp"
#include "runtime/executable_impl.hpp"
#include "runtime/host_tensor.hpp"
#include "runtime/live_ranges.hpp"
#include "runtime/memory_plan.hpp"
#include "schedule/split_spinning.hpp"
#include "schedule/step_cost.hpp"

namespace fuse {
namespace runtime {
namespace {

using schedule::PlanValue;
using schedule::Step;
using schedule::Task;
using schedule::TaskId;
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
  return std::tuple(d.batch, d.m, d.n, d.k, d.stride_a, d.stride_b, d.stride_c, d.row_c, d.calls, d.call_a,
                    d.call_b, d.call_c, d.transpose_a, d.transpose_b, d.operand, d.result, d.epilogue,
                    d.scale);
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

schedule::Residency residency_of(const Executable::Impl& executable, const schedule::KernelStep& work,
                                 std::int64_t blocks) {
  const codegen::KernelInfo& kernel = executable.program->kernels[work.kernel];
  return {.blocks = blocks,
          .threads = kernel.block_threads,
          .registers = executable.functions[work.kernel]->registers,
          .shared_bytes = kernel.shared_bytes,
          .blocks_an_sm = kernel.blocks_an_sm,
          .counted = executable.functions[work.kernel]->blocks_per_sm};
}

/// Turns a plan's steps into ready ones.
class Preparer {
 public:
  Preparer(const Executable::Impl& executable, const schedule::Plan& plan, const Binding& binding,
           Prepared::Impl& out)
      : executable_(executable), plan_(plan), binding_(binding), out_(out) {}

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
      ReadyStep ready;
      if (!make_ready(step, ready)) continue;
      ready.label = label(i, step, ready.kind);
      ready.group = origin(step).group;
      if (!origin(step).lines.empty()) ready.lines = " of " + origin(step).lines;
      if (ready.kind == ReadyStep::Kind::gemm) own_scratch(ready);
      out_.launches += ready.kind == ReadyStep::Kind::kernel;
      if (ready.kind == ReadyStep::Kind::gemm) out_.gemm_calls += ready.calls;
      add_task(step, ready);
      out_.steps.push_back(std::move(ready));
    }
    const Target& target = executable_.device.backend()->target();
    schedule::StreamChoices choices = program().streams;
    if (plan_.steps.size() != program().plan.steps.size()) {
      // They are of the plan as it was made: where kernels gave way to their parts, the cost model assigns.
      choices.stream.clear();
      choices.order.clear();
    }
    out_.streams = schedule::plan_streams(tasks_, choices, target);
    if (program().streams.order_spinning) {
      schedule::verify(tasks_, out_.streams, target);
      note_spinning();
    }
    place_workspace();
    make_commands();
    index_arguments();
    mark_needs();
  }

 private:
  /// False for a step without work.
  bool make_ready(const Step& step, ReadyStep& ready) {
    return std::visit([&](const auto& work) { return prepare(step, work, ready); }, step.work);
  }

  const Program& program() const { return *executable_.program; }
  const StepOrigin& origin(const Step& step) const { return program().origins[step.origin]; }

  /// As a temporary of the step alone.
  void own_scratch(const ReadyStep& ready) {
    const std::size_t argument = ready.arguments.first + gemm_argument::scratch;
    const std::int64_t bytes = out_.arguments[argument].place.bytes;
    if (bytes == 0) return;
    scratch_.push_back({argument, owned_.size()});
    owned_.push_back({bytes, {static_cast<TaskId>(out_.steps.size())}});
  }

  void add_arguments(ReadyStep& ready, std::initializer_list<Place> places) {
    ready.arguments = {static_cast<std::uint32_t>(out_.arguments.size()),
                       static_cast<std::uint32_t>(places.size())};
    for (const Place& place : places) out_.arguments.push_back({.place = place});
  }

  /// Run needs every buffer, but for parameters that the setup alone reads.
  void mark_needs() {
    const auto mark = [&](const std::vector<Step>& steps, std::vector<char>& needs) {
      for (const Step& step : steps) {
        for (const ValueId id : step.reads) {
          if (roots_[id] < needs.size()) needs[roots_[id]] = 1;
        }
      }
    };
    std::vector<char> read(out_.runs.size(), 0);
    mark(plan_.setup, out_.packs);
    mark(plan_.steps, read);
    for (std::size_t i = 0; i < read.size(); ++i) out_.runs[i] = read[i] || !out_.packs[i];
  }

  /// What the step waits for: who wrote what it reads, and who used what it overwrites. An output that takes
  /// an input's memory is that memory.
  void add_task(const Step& step, const ReadyStep& ready) {
    const auto task = static_cast<TaskId>(tasks_.size());
    Task made;
    std::int64_t bytes = 0;
    const auto memory = [&](ValueId id) -> Users& {
      return users_[plan_.values[roots_[id]].donor.value_or(roots_[id])];
    };
    for (const ValueId id : step.reads) {
      const Users& users = memory(id);
      if (users.writer) made.after.push_back(*users.writer);
      for (const Part& part : users.parts) {
        if (meet(part.id, id)) made.after.push_back(part.writer);
      }
    }
    for (const ValueId id : step.writes) {
      if (is_part(id)) continue;  // nothing was there before
      const Users& users = memory(id);
      if (users.writer) made.after.push_back(*users.writer);
      made.after.insert(made.after.end(), users.readers.begin(), users.readers.end());
    }
    for (const ValueId id : step.reads) memory(id).readers.push_back(task);
    for (const ValueId id : step.writes) {
      if (is_part(id)) {
        memory(id).parts.push_back({id, task});
      } else {
        memory(id) = {task, {}, {}};
      }
    }
    for (const std::vector<ValueId>* values : {&step.reads, &step.writes}) {
      for (const ValueId id : *values) {
        bytes += places_[id].bytes;
        if (roots_[id] < first_temporary_) continue;
        Owned& owned = owned_[roots_[id] - first_temporary_];
        owned.users.push_back(task);
        if (values == &step.writes && is_part(id)) owned.makers.push_back(task);
      }
    }
    std::sort(made.after.begin(), made.after.end());
    made.after.erase(std::unique(made.after.begin(), made.after.end()), made.after.end());
    std::erase(made.after, task);
    const schedule::StepCost cost = cost_of(step, ready, bytes, made.residency);
    made.seconds = cost.seconds;
    made.share = cost.share;
    made.spins = step.spins;
    if (made.spins) check_resident(step, made.residency);
    tasks_.push_back(std::move(made));
  }

  /// What the run asks of the device's places: all of its spinning launches at a time, unless it orders them.
  void note_spinning() {
    const schedule::HappensBefore before(out_.streams);
    std::vector<TaskId> spinning;
    for (TaskId task = 0; task < tasks_.size(); ++task) {
      if (!tasks_[task].spins) continue;
      spinning.push_back(task);
      out_.spinners += (out_.spinners.empty() ? "" : "; ") + out_.steps[task].label;
    }
    const auto ordered = [&](TaskId a) {
      return std::all_of(spinning.begin(), spinning.end(),
                         [&](TaskId b) { return a == b || before(a, b) || before(b, a); });
    };
    const bool in_order = std::all_of(spinning.begin(), spinning.end(), ordered);
    for (const TaskId task : spinning) {
      if (in_order || out_.spinning.empty()) out_.spinning.emplace_back();
      out_.spinning.back().push_back(tasks_[task].residency);
    }
  }

  /// A step writes a part of the memory.
  bool is_part(ValueId id) const { return roots_[id] != id; }

  /// Two values in the same memory.
  bool meet(ValueId a, ValueId b) const {
    const Place &x = places_[a], &y = places_[b];
    return x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
  }

  /// Blocks that wait for each other all need a place at one time.
  void check_resident(const Step& step, const schedule::Residency& residency) const {
    const Target& target = executable_.device.backend()->target();
    if (schedule::fit_together(std::span(&residency, 1), target)) return;
    const StepOrigin& made_of = origin(step);
    throw Error(
        {.code = ErrorCode::out_of_residency,
         .message = fmt::format("kernel '{}' has {} blocks that wait for each other, and {} holds {} of "
                                "them at a time",
                                step.name, residency.blocks, target.name,
                                std::int64_t{target.sms} * schedule::blocks_per_sm(residency, target)),
         .op = made_of.op,
         .shapes = {made_of.type},
         .location = made_of.location,
         .hint = "let fewer blocks do the work, each more of it, or give the kernel parts"});
  }

  schedule::StepCost cost_of(const Step& step, const ReadyStep& ready, std::int64_t bytes,
                             schedule::Residency& residency) const {
    const Target& target = executable_.device.backend()->target();
    if (ready.kind == ReadyStep::Kind::kernel) {
      const auto& work = std::get<schedule::KernelStep>(step.work);
      residency = residency_of(executable_, work, ready.grid.x);
      return schedule::kernel_cost(bytes, residency, target);
    }
    if (ready.kind == ReadyStep::Kind::gemm) {
      const auto& work = std::get<schedule::GemmStep>(step.work);
      schedule::StepCost cost = schedule::gemm_cost(bytes, binding_.value(work.batch), binding_.value(work.m),
                                                    binding_.value(work.n), binding_.value(work.k), target);
      cost.seconds += static_cast<double>(ready.calls - 1) * target.launch_seconds;
      return cost;
    }
    return schedule::transfer_cost(bytes, target);
  }

  /// Who waits for whom becomes events: one for each step that another stream waits for.
  void make_commands() {
    Commands& commands = out_.commands;
    std::vector<std::uint32_t> event(tasks_.size(), Command::no_event);
    const auto event_of = [&](TaskId task) {
      if (event[task] == Command::no_event) event[task] = commands.events++;
      return event[task];
    };
    std::vector<bool> started(static_cast<std::size_t>(out_.streams.streams));
    std::size_t next = 0;
    for (const TaskId task : out_.streams.order) {
      const schedule::StreamId stream = out_.streams.stream[task];
      Command command{.step = task, .stream = stream};
      command.waits.first = static_cast<std::uint32_t>(commands.waits.size());
      for (; next < out_.streams.waits.size() && out_.streams.waits[next].task == task; ++next) {
        commands.waits.push_back(event_of(out_.streams.waits[next].on));
        ++command.waits.count;
      }
      if (!started[stream] && stream != 0 && command.waits.count == 0) commands.forks.push_back(stream);
      started[stream] = true;
      commands.list.push_back(command);
    }
    for (const TaskId task : out_.streams.joins) commands.joins.push_back(event_of(task));
    for (Command& command : commands.list) command.record = event[command.step];
  }

  void index_arguments() {
    for (const ReadyStep& step : out_.steps) {
      for (std::uint32_t i = step.arguments.first; i < step.arguments.first + step.arguments.count; ++i) {
        const ReadyArgument& argument = out_.arguments[i];
        if (argument.is_extent || argument.place.slot == Place::workspace) continue;
        const bool packed = argument.place.slot == Place::packed;
        const std::size_t slot =
            packed ? executable_.slots().size() : static_cast<std::size_t>(argument.place.slot);
        out_.arguments_of[slot].push_back(i);
      }
    }
  }

  /// Sizes of all values. Of temporaries it is noted who uses them.
  void bind_values() {
    roots_ = schedule::roots(plan_);
    for (const PlanValue& value : plan_.values) {
      Place place;
      place.bytes = bytes_of(value.dtype, binding_.shape(value.dims));
      const auto id = static_cast<std::size_t>(&value - plan_.values.data());
      if (id < out_.bytes.size() && place.bytes != out_.bytes[id]) {
        throw Error({.kind = ErrorKind::internal,
                     .code = ErrorCode::internal,
                     .message = fmt::format("'{}' has {} bytes in the plan, {} for the caller", value.name,
                                            place.bytes, out_.bytes[id])});
      }
      if (value.inside) {
        place_inside(value, place);
        owned_.emplace_back();  // nothing of its own
      } else if (value.kind == PlanValue::Kind::temporary) {
        owned_.push_back({place.bytes, {}});
      } else if (value.kind == PlanValue::Kind::packed) {
        place.slot = Place::packed;
        place.offset = out_.packed_bytes;
        out_.packed_bytes = after(place);
      } else {
        place.slot = static_cast<std::int32_t>(places_.size());
      }
      places_.push_back(place);
    }
    first_temporary_ = places_.size() - owned_.size();
    users_.resize(places_.size());
  }

  /// Where a value lies in the memory of another, which prepare is the first to know in numbers.
  void place_inside(const PlanValue& value, Place& place) const {
    const Place& whole = places_[value.inside->whole];
    const std::int64_t offset = binding_.value(value.inside->offset_bytes);
    if (offset < 0 || offset > whole.bytes - place.bytes) {
      throw Error({.kind = ErrorKind::internal,
                   .code = ErrorCode::internal,
                   .message = fmt::format("'{}' has {} bytes at {} of {}", value.name, place.bytes, offset,
                                          whole.bytes)});
    }
    place.slot = whole.slot;
    if (place.bytes == 0) return;
    place.offset = whole.offset + offset;
    if (offset % schedule::view_alignment == 0) return;
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::internal,
                 .message = fmt::format("'{}' lies at {}, which is no multiple of {}", value.name, offset,
                                        schedule::view_alignment)});
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

  /// The offsets go where places were copied to before they were known.
  void place_workspace() {
    const LiveRanges live(out_.streams);
    std::vector<LiveRange> ranges;
    for (const Owned& owned : owned_) {
      ranges.push_back(owned.makers.empty() ? live.of(owned.bytes, owned.users)
                                            : live.of(owned.bytes, owned.users, owned.makers));
    }
    const MemoryPlan memory = plan_memory(ranges);
    out_.workspace_bytes = memory.total;
    out_.workspace_bound = memory.lower_bound;
    const auto settle = [&](Place& place) {
      if (place.slot != Place::workspace || place.offset >= 0) return;
      const auto id = static_cast<std::size_t>(~place.offset);
      place.offset = memory.offsets[roots_[id] - first_temporary_] + places_[id].offset;
    };
    for (ReadyArgument& argument : out_.arguments) settle(argument.place);
    for (const auto& [argument, range] : scratch_) {
      out_.arguments[argument].place.offset = memory.offsets[range];
    }
  }

  /// A temporary's offset is ~its value until place_workspace.
  Place place(ValueId id) const {
    Place place = places_[id];
    if (place.slot == Place::workspace) place.offset = ~static_cast<std::int64_t>(id);
    return place;
  }

  /// A shared kernel names itself, its ops and its lines by the first piece that runs it: what the device
  /// says is of that one, what stands before it of this step.
  std::string text_of_another(const Step& step) const {
    const auto* work = std::get_if<schedule::KernelStep>(&step.work);
    if (!work) return {};
    const std::string& kernel = executable_.program->kernels[work->kernel].name;
    return kernel == step.name ? "" : fmt::format(", which runs '{}'", kernel);
  }

  std::string label(std::size_t index, const Step& step, ReadyStep::Kind kind) const {
    std::string ops = origin(step).ops;
    // A status has 509 bytes in all; what the device says must fit too.
    constexpr std::size_t longest = 200;
    if (ops.size() > longest) ops.replace(longest, std::string::npos, "...");
    return fmt::format("step {}, {} '{}'{}{}{}{}", index, noun(kind), step.name, ops.empty() ? "" : " (", ops,
                       ops.empty() ? "" : ")", text_of_another(step));
  }

  bool prepare(const Step& step, const schedule::KernelStep& work, ReadyStep& ready) {
    const codegen::KernelInfo& kernel = executable_.program->kernels[work.kernel];
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
    ready.arguments = {static_cast<std::uint32_t>(out_.arguments.size()),
                       static_cast<std::uint32_t>(kernel.params.size())};
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
    const Place c = place(work.c);
    if (c.bytes == 0) return false;
    if (work.places) scatter(*work.places, desc);
    desc.epilogue = work.epilogue;
    desc.scale = work.scale;
    Place extra;
    if (work.extra) {
      const bool bias = work.epilogue == schedule::EpilogueKind::bias;
      stride(step, *work.extra, work.result, bias ? 1 : desc.batch, bias ? 1 : desc.m, desc.n, false);
      extra = place(*work.extra);
    }
    if (desc.k == 0 && desc.epilogue == schedule::EpilogueKind::none) {  // a sum of nothing
      ready.kind = ReadyStep::Kind::memset;
      add_arguments(ready, {c});
      return true;
    }
    ready.kind = ReadyStep::Kind::gemm;
    ready.calls = desc.calls;
    ready.gemm = gemm(desc);
    const Place scratch{.bytes = ready.gemm->workspace_bytes()};
    add_arguments(ready, {place(work.a), place(work.b), c, scratch, extra});  // as gemm_argument has them
    return true;
  }

  void scatter(const schedule::GemmPlaces& places, GemmDesc& desc) const {
    desc.row_c = binding_.value(places.row);
    desc.batch = binding_.value(places.inner);
    desc.calls = binding_.value(places.outer);
    desc.call_a = desc.stride_a * desc.batch;
    desc.call_b = desc.stride_b * desc.batch;
    desc.stride_c = binding_.value(places.inner_stride);
    desc.call_c = binding_.value(places.outer_stride);
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
    const Place from = place(work.from), to = place(work.to);
    if (from.bytes != to.bytes) fail(step, fmt::format("copies {} bytes to {}", from.bytes, to.bytes));
    if (to.bytes == 0) return false;
    add_arguments(ready, {from, to});
    return true;
  }

  bool prepare(const Step&, const schedule::MemsetStep& work, ReadyStep& ready) {
    ready.kind = ReadyStep::Kind::memset;
    const Place to = place(work.to);
    if (to.bytes == 0) return false;
    ready.byte = work.byte;
    add_arguments(ready, {to});
    return true;
  }

  const Executable::Impl& executable_;
  const schedule::Plan& plan_;
  const Binding& binding_;
  Prepared::Impl& out_;
  std::vector<ValueId> roots_;  // of each value: whose memory it lies in
  std::vector<Place> places_;   // of each value; in the workspace, without the root's offset
  /// Memory of the workspace.
  struct Owned {
    std::int64_t bytes = 0;
    std::vector<TaskId> users{}, makers{};  // makers: of its parts; none where the first user makes it
  };
  std::vector<Owned> owned_;         // of the temporaries, then of the gemms' scratch
  std::size_t first_temporary_ = 0;  // value of the first
  /// A value inside another that a step wrote.
  struct Part {
    ValueId id = 0;
    TaskId writer = 0;
  };
  /// Since the last write of a value's memory.
  struct Users {
    std::optional<TaskId> writer{};
    std::vector<TaskId> readers{};
    std::vector<Part> parts{};
  };
  std::vector<Users> users_;                                  // of each value that is a root
  std::vector<Task> tasks_;                                   // of out_.steps
  std::vector<std::pair<std::size_t, std::size_t>> scratch_;  // argument, range
  std::map<GemmKey, const Gemm*> gemms_;
};

/// The run's, then each step's.
std::unique_ptr<const ProfilerRanges> ranges_of(const Prepared::Impl& p) {
  if (!profiler_attached()) return nullptr;
  std::vector<std::string> names{"run " + p.executable->program->signature.name};
  for (const ReadyStep& step : p.steps) names.push_back(step.label);
  return profiler_ranges(names);
}

/// What does not depend on the steps.
std::shared_ptr<Prepared::Impl> made_for(std::shared_ptr<const Executable::Impl> executable,
                                         const DimValues& dims, const Binding& binding) {
  auto made = std::make_shared<Prepared::Impl>();
  made->dims = dims;
  made->device_name = executable->device.name();
  for (const Slot& slot : executable->slots()) {
    made->shapes.push_back(binding.shape(slot.dims));
    made->bytes.push_back(bytes_of(slot.dtype, made->shapes.back()));
    made->slot_names.push_back(fmt::format("{} {}", to_string(slot.kind), in_quotes(slot.name)));
    made->slot_types.push_back(type_text(slot.dtype, made->shapes.back()));
  }
  made->packs.assign(executable->slots().size(), 0);
  made->runs.assign(executable->slots().size(), 1);
  made->arguments_of.resize(executable->slots().size() + 1);
  made->executable = std::move(executable);
  return made;
}

/// The plan as it is, but for kernels that spin and are too large for the device alone; with it, where it has
/// kernels that spin and have parts, the plan of those.
std::shared_ptr<Prepared::Impl> prepare_steps(const std::shared_ptr<const Executable::Impl>& executable,
                                              const DimValues& dims, const Binding& binding) {
  const schedule::Plan& plan = executable->program->plan;
  const auto prepared = [&](const schedule::Plan& steps) {
    auto made = made_for(executable, dims, binding);
    Preparer(*executable, steps, binding, *made).run();
    made->ranges = ranges_of(*made);
    return made;
  };
  if (std::none_of(plan.steps.begin(), plan.steps.end(), schedule::has_parts)) return prepared(plan);
  const Target& target = executable->device.backend()->target();
  const auto too_large = [&](const Step& step) {
    const auto& work = std::get<schedule::KernelStep>(step.work);
    const schedule::Residency residency = residency_of(*executable, work, binding.value(work.grid));
    return !schedule::fit_together(std::span(&residency, 1), target);
  };
  const schedule::Plan whole = schedule::split_spinning(plan, too_large);
  schedule::verify(whole);
  auto made = prepared(whole);
  if (std::none_of(whole.steps.begin(), whole.steps.end(), schedule::has_parts)) return made;
  const schedule::Plan parts = schedule::split_spinning(plan, schedule::has_parts);
  schedule::verify(parts);
  made->split = prepared(parts);
  made->workspace_bytes = std::max(made->workspace_bytes, made->split->workspace_bytes);
  return made;
}

}  // namespace
}  // namespace runtime

Prepared Executable::prepare(const DimValues& dims) const {
  runtime::contract::forbid("prepares");
  const runtime::Signature& signature = impl_->program->signature;
  const runtime::Binding binding(signature, dims);
  runtime::check_guards(signature.guards, binding);
  runtime::check_extents(signature, binding);
  if (impl_->device.kind() == DeviceKind::reference) return Prepared(runtime::made_for(impl_, dims, binding));
  return Prepared(runtime::prepare_steps(impl_, dims, binding));
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
std::int64_t Prepared::workspace_bound() const { return impl_->workspace_bound; }
int Prepared::streams() const { return impl_->streams.streams; }
std::int64_t Prepared::packed_bytes() const { return impl_->packed_bytes; }
bool Prepared::reads_in_run(std::size_t slot) const { return at(impl_->runs, slot) != 0; }
std::int64_t Prepared::launches() const { return impl_->launches; }
std::int64_t Prepared::gemms() const { return impl_->gemm_calls; }

}  // namespace fuse
