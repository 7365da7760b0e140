// prepare: everything that is done once for given dims. Running it is in run.cpp.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/access.hpp"
#include "plan/fallback_launches.hpp"
#include "runtime/device/hot_path_check.hpp"
#include "runtime/execute/binding.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "runtime/execute/prepared_shapes.hpp"
#include "runtime/prepare/fixed_layout.hpp"
#include "runtime/prepare/plan_facts.hpp"
#include "runtime/prepare/recorded_run.hpp"
#include "runtime/prepare/run_structure.hpp"
#include "runtime/prepare/step_preparer.hpp"
#include "runtime/prepare/task_costs.hpp"
#include "runtime/prepare/value_locations.hpp"

namespace fuse {
namespace runtime {
namespace {

using schedule::Step;
using schedule::TaskId;
using schedule::ValueId;

/// Run needs every buffer, but for parameters that the setup alone reads.
void mark_needs(Prepared::Impl& made) {
  for (const ReadyStep& step : made.setup) {
    for (std::uint32_t i = step.arguments.first; i < step.arguments.first + step.arguments.count; ++i) {
      const ReadyArgument& argument = made.arguments[i];
      if (!argument.is_extent && argument.location.slot >= 0)
        made.packs[static_cast<std::size_t>(argument.location.slot)] = 1;
    }
  }
  const std::vector<char>& by_others = made.executable->read_in_runs;
  for (std::size_t i = 0; i < made.runs.size(); ++i) {
    const bool is_read = !made.arguments_of[i].empty();
    made.runs[i] = is_read || !made.packs[i] || (!by_others.empty() && by_others[i]);
  }
}

void index_arguments(Prepared::Impl& made) {
  const std::size_t slots = made.executable->slots().size();
  made.arguments_of = Lists<std::uint32_t>::grouped(slots + 1, [&](auto&& add) {
    for (const ReadyStep& step : made.steps) {
      for (std::uint32_t i = step.arguments.first; i < step.arguments.first + step.arguments.count; ++i) {
        const std::int32_t slot = made.arguments[i].location.slot;
        if (slot == ValueLocation::workspace) continue;  // as that of an extent
        add(slot == ValueLocation::packed ? slots : static_cast<std::size_t>(slot), i);
      }
    }
  });
}

void prepare_setup(const schedule::Plan& plan, StepPreparer& preparer, Prepared::Impl& made) {
  for (std::size_t i = 0; i < plan.setup.size(); ++i) {
    ReadyStep ready;
    if (!preparer.prepare(plan.setup[i], ready)) continue;
    ready.label = preparer.setup_label(i, ready.kind);
    made.setup.push_back(std::move(ready));
  }
}

/// Which stream runs what, in which order. What the last dims had is known to be right, unless blocks wait
/// for each other: whether they fit depends on the dims.
schedule::StreamPlan streams_of(const Prepared::Impl& made, RunStructure& structure, const Target& target) {
  const std::vector<schedule::Task>& tasks = structure.tasks();
  const schedule::StreamChoices choices = stream_choices_of(made, tasks);
  schedule::StreamPlan streams = schedule::plan_streams(tasks, choices, target);
  const bool is_known =
      structure.ran_on(streams) &&
      std::none_of(tasks.begin(), tasks.end(), [](const auto& task) { return task.cooperative; });
  if (choices.order_cooperative && !is_known) schedule::verify(tasks, streams, target);
  return streams;
}

void note_cooperative(const std::vector<schedule::Task>& tasks, Prepared::Impl& made) {
  made.cooperative = cooperative_of(tasks, made.streams);
  for (TaskId task = 0; task < tasks.size(); ++task) {
    if (tasks[task].cooperative)
      made.cooperative_steps +=
          fmt::format("{}{}", made.cooperative_steps.empty() ? "" : "; ", made.steps[task].label);
  }
}

/// Which version of each segment runs for some dims.
class TakenVersions {
 public:
  TakenVersions(const schedule::Plan& plan, const PlanFacts* facts, const Binding& binding) {
    for (std::size_t i = 0; i < plan.tables.size(); ++i) {
      const std::size_t first = facts ? facts->tables[i] : i;
      taken_.push_back(first == i ? version_at(plan.tables[i], binding) : taken_[first]);
    }
  }
  bool operator()(const Step& step) const {
    return !step.version || taken_[step.version->table] == step.version->version;
  }

 private:
  std::vector<std::uint32_t> taken_;
};

/// Whether steps that are taken use the memory of a value; a memset alone is no use.
class UsedMemory {
 public:
  UsedMemory(const schedule::Plan& plan, const TakenVersions& taken, const ValueLocations& locations)
      : plan_(plan), taken_(taken), locations_(locations) {}

  bool operator()(ValueId id) {
    if (used_.empty()) find();
    return used_[locations_.root(id)];
  }

 private:
  void find() {
    used_.resize(plan_.values.size());
    for (const Step& step : plan_.steps) {
      if (!taken_(step) || std::holds_alternative<schedule::MemsetStep>(step.work)) continue;
      for (const std::vector<ValueId>* ids : {&step.reads, &step.writes})
        for (const ValueId id : *ids) used_[locations_.root(id)] = 1;
    }
  }

  const schedule::Plan& plan_;
  const TakenVersions& taken_;
  const ValueLocations& locations_;
  std::vector<char> used_;  // for each root; empty: nobody has asked
};

/// No fewer than the steps that are taken have.
std::size_t most_arguments(const schedule::Plan& plan, const TakenVersions& taken) {
  std::size_t count = 0;
  for (const Step& step : plan.steps) {
    if (!taken(step)) continue;
    const auto* const kernel = std::get_if<schedule::KernelStep>(&step.work);
    count += kernel ? kernel->buffers.size() + kernel->extents.size() : std::size_t{gemm_argument::count};
  }
  return count;
}

/// The setups of other builds, from `first` on up to the one that is taken or the last. Gives the end of the
/// packed memory, of which they fill a part behind `packed`, and the number of the one where it stopped.
std::pair<std::int64_t, std::size_t> prepare_other_setups(std::size_t first, std::int64_t packed,
                                                          const Binding& binding, Prepared::Impl& made) {
  const std::vector<Build>& builds = made.executable->builds;
  for (; first < builds.size(); ++first) {
    const Build& other = builds[first];
    if (!other.setup) continue;
    if (other.program->setup == made.build->program->setup) break;
    ValueLocations locations(*other.setup, binding, {}, packed);
    StepPreparer preparer(*backend_of(made.executable->device), other, *other.setup, binding, locations,
                          made);
    prepare_setup(*other.setup, preparer, made);
    packed = locations.packed_bytes();
  }
  return {packed, first};
}

/// One stream, which runs the tasks as the plan has them.
schedule::StreamPlan in_plan_order(const std::vector<schedule::Task>& tasks, const Target& target) {
  schedule::StreamChoices choices{.max_streams = 1};
  for (TaskId task = 0; task < tasks.size(); ++task) choices.order.push_back(task);
  return schedule::plan_streams(tasks, choices, target);
}

/// The task of each step that is prepared, for those that do the same with other values.
class AlikeSteps {
 public:
  AlikeSteps(const schedule::Plan& plan, const PlanFacts* facts) : facts_(facts), tasks_(plan.steps.size()) {}

  void add(std::size_t step, TaskId task) { tasks_[step] = task; }
  /// The first task that does the same as the step; none: it is the first itself.
  std::optional<TaskId> operator()(std::size_t step) const {
    return facts_ && facts_->steps[step] != step ? tasks_[facts_->steps[step]] : std::nullopt;
  }

 private:
  const PlanFacts* facts_;
  std::vector<std::optional<TaskId>> tasks_;
};

/// What the tasks cost of a run's steps.
void put_costs(const schedule::Plan& plan, const AlikeSteps& alike, const Binding& binding,
               const ValueLocations& locations, const Prepared::Impl& made,
               std::vector<schedule::Task>& tasks) {
  const Target& target = backend_of(made.executable->device)->target();
  const TaskCosts costs(target, *made.build, binding, locations);
  for (TaskId task = 0; task < tasks.size(); ++task) {
    const std::uint32_t number = made.steps[task].number;
    if (const std::optional<TaskId> first = alike(number))
      TaskCosts::copy(tasks[*first], tasks[task]);
    else
      costs.put(plan.steps[number], made.steps[task], tasks[task]);
  }
}

/// Turns a plan's steps into ready ones. `texts`: step_text of each; null: they are made. `facts`: those of
/// the plan; null: they are not known. `shapes` keep what the next dims may use again; null: they keep
/// nothing of this plan.
void prepare_plan(const schedule::Plan& plan, const std::vector<std::string>* texts, const PlanFacts* facts,
                  const TakenVersions& taken, const Binding& binding, const FixedLayout* layout,
                  PreparedShapes* shapes, Prepared::Impl& made) {
  Backend& backend = *backend_of(made.executable->device);
  const Build& build = *made.build;
  const Program& program = *build.program;
  const auto [packed, own] = prepare_other_setups(0, 0, binding, made);
  ValueLocations locations(plan, binding, made.bytes, packed, facts);
  StepPreparer preparer(backend, build, plan, binding, locations, made, texts);
  prepare_setup(plan, preparer, made);
  const std::int64_t own_end = locations.packed_bytes();
  made.packed_bytes = prepare_other_setups(own + 1, own_end, binding, made).first;
  std::vector<Scratch> scratch;
  std::vector<std::size_t> scratch_arguments;
  std::unique_ptr<RunStructure> structure(
      static_cast<RunStructure*>(shapes ? shapes->take(plan).release() : nullptr));
  made.steps.reserve(structure ? structure->tasks().size() : plan.steps.size());
  made.arguments.reserve(made.arguments.size() +
                         (structure ? structure->arguments() : most_arguments(plan, taken)));
  UsedMemory used(plan, taken, locations);
  AlikeSteps alike(plan, facts);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (!taken(step)) continue;
    if (const auto* zero = std::get_if<schedule::MemsetStep>(&step.work); zero && !used(zero->to))
      continue;  // the counters of versions that are not taken
    const auto task = static_cast<TaskId>(made.steps.size());
    const std::optional<TaskId> first = alike(i);
    ReadyStep& ready = made.steps.emplace_back();
    if (!preparer.prepare_for_run(step, first ? &made.steps[*first] : nullptr, ready)) {
      made.steps.pop_back();
      continue;
    }
    const StepOrigin& origin = program.origins[step.origin];
    ready.label = preparer.label(i, ready.kind);
    ready.group = origin.group;
    ready.number = static_cast<std::uint32_t>(i);
    ready.lines = origin.lines;
    alike.add(i, task);
    if (ready.kind == ReadyStep::Kind::gemm) {
      const std::size_t argument = ready.arguments.first + gemm_argument::scratch;
      const std::int64_t bytes = made.arguments[argument].location.bytes;
      if (bytes > 0) {
        scratch.push_back({task, bytes});
        scratch_arguments.push_back(argument);
      }
      made.gemm_calls += ready.calls;
    }
    made.launches += ready.kind == ReadyStep::Kind::kernel;
  }
  if (made.packed_bytes == own_end) {
    made.packed_bytes = locations.packed_bytes();  // with the operands that the device packs
  } else if (locations.packed_bytes() != own_end) {
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::internal,
                 .message = "a device that packs operands has several builds"});
  }
  if (!structure || !structure->fits(made.steps, scratch, locations))
    structure = std::make_unique<RunStructure>(plan, made.steps, scratch, locations);
  std::vector<schedule::Task>& tasks = structure->tasks();
  put_costs(plan, alike, binding, locations, made, tasks);
  made.streams = streams_of(made, *structure, backend.target());
  MemoryPlan memory = structure->plan_workspace(made.streams, scratch, locations);
  if (layout && memory.total > layout->total) {
    memory.offsets = layout->offsets_for(plan, made.steps, scratch, locations);
    if (!structure->holds(memory.offsets)) {
      // A step without work orders nothing, so the plan's own order has to keep memories apart.
      made.streams = in_plan_order(tasks, backend.target());
      memory = structure->plan_workspace(made.streams, scratch, locations);
      memory.offsets = layout->offsets_for(plan, made.steps, scratch, locations);
      if (!structure->holds(memory.offsets)) {
        throw Error({.kind = ErrorKind::internal,
                     .code = ErrorCode::internal,
                     .message = "the workspace for all dims does not hold for these"});
      }
    }
    memory.total = structure->end(memory.offsets);
  }
  if (program.streams.order_cooperative) note_cooperative(tasks, made);
  made.commands = structure->commands();
  if (shapes) shapes->keep(plan, std::move(structure));
  made.workspace_bytes = memory.total;
  made.workspace_bound = memory.lower_bound;
  for (ReadyArgument& argument : made.arguments) locations.settle(argument.location, memory);
  for (std::size_t i = 0; i < scratch.size(); ++i)
    made.arguments[scratch_arguments[i]].location.offset =
        memory.offsets[locations.memory_bytes().size() + i];
  index_arguments(made);
  mark_needs(made);
}

/// The run's range, then each step's.
std::unique_ptr<const ProfilerRanges> ranges_of(const Prepared::Impl& p) {
  if (!profiler_attached()) return nullptr;
  std::vector<std::string> names{"run " + p.executable->signature().name};
  for (const ReadyStep& step : p.steps) names.push_back(fmt::to_string(step.label));
  return profiler_ranges(names);
}

/// What is the same for all dims of a plan.
struct OfAllDims final : Reusable {
  PlanFacts facts;
  std::optional<FixedLayout> layout;  ///< none: a memory has no bound, or nobody asks for it

  OfAllDims(PlanFacts of_plan, std::optional<FixedLayout> its_layout)
      : facts(std::move(of_plan)), layout(std::move(its_layout)) {}
};

/// Of a build's plan; null where the dims are numbers.
const OfAllDims* all_dims_of(const Build& build, const Backend& backend, PreparedShapes& shapes) {
  const schedule::Plan& plan = build.program->plan;
  if (plan.most_bytes.empty()) return nullptr;
  return static_cast<const OfAllDims*>(&shapes.of_all_dims(plan, [&] {
    return std::make_unique<OfAllDims>(PlanFacts(plan), fixed_layout(plan, backend.most_gemm_scratch()));
  }));
}

/// The facts of the plan that a build's runs take which find no slots; null as above.
const PlanFacts* split_facts_of(const Build& build, PreparedShapes& shapes) {
  const schedule::Plan& split = *build.split;
  if (split.most_bytes.empty()) return nullptr;
  const Reusable& kept =
      shapes.of_all_dims(split, [&] { return std::make_unique<OfAllDims>(PlanFacts(split), std::nullopt); });
  return &static_cast<const OfAllDims&>(kept).facts;
}

/// The part that does not depend on the steps.
std::shared_ptr<Prepared::Impl> made_for(std::shared_ptr<const Executable::Impl> executable,
                                         const Build& build, const DimValues& dims, const Binding& binding) {
  auto made = std::make_shared<Prepared::Impl>();
  made->build = &build;
  made->dims = dims;
  made->device_name = executable->device.name();
  const std::vector<Slot>& slots = executable->slots();
  made->shapes.reserve(slots.size());
  made->bytes.reserve(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (const std::optional<FixedSlot>& fixed = executable->fixed_slots[i]) {
      made->shapes.push_back(&fixed->shape);
      made->bytes.push_back(fixed->bytes);
      continue;
    }
    made->shapes.push_back(&made->own_shapes.emplace_back(binding.shape(slots[i].dims)));
    made->bytes.push_back(bytes_of(slots[i].dtype, *made->shapes.back()));
  }
  made->arguments_of = Lists<std::uint32_t>::grouped(slots.size() + 1, [](auto&&) {});  // of no steps
  made->packs.assign(executable->slots().size(), 0);
  made->runs.assign(executable->slots().size(), 1);
  made->executable = std::move(executable);
  return made;
}

/// The plan as it is, but for cooperative kernels that are too large for the device alone; with it, where it
/// has cooperative kernels that have fallback launches, the plan of those.
std::shared_ptr<Prepared::Impl> prepare_steps(const std::shared_ptr<const Executable::Impl>& executable,
                                              const Build& build, const DimValues& dims,
                                              const Binding& binding, PreparedShapes& shapes) {
  const schedule::Plan& plan = build.program->plan;
  const OfAllDims* const all_dims = all_dims_of(build, *backend_of(executable->device), shapes);
  const PlanFacts* const facts = all_dims ? &all_dims->facts : nullptr;
  const FixedLayout* const layout = all_dims && all_dims->layout ? &*all_dims->layout : nullptr;
  const TakenVersions taken(plan, facts, binding);
  const auto is_cooperative = [&](const Step& step) { return taken(step) && schedule::has_fallback(step); };
  const auto prepared = [&](const schedule::Plan& steps, const std::vector<std::string>* texts,
                            const PlanFacts* of_steps, PreparedShapes* kept) {
    auto made = made_for(executable, build, dims, binding);
    made->as_planned = &steps == &plan;
    prepare_plan(steps, texts, of_steps, taken, binding, layout, kept, *made);
    made->ranges = ranges_of(*made);
    return made;
  };
  const Target& target = backend_of(executable->device)->target();
  const auto gives_way = [&](const Step& step) {
    if (!is_cooperative(step)) return false;
    const auto& work = std::get<schedule::KernelStep>(step.work);
    const schedule::Residency residency = residency_of(build, work, binding.value(work.grid));
    return !schedule::fit_together(std::span(&residency, 1), target);
  };
  const auto any_of = [](const schedule::Plan& of, const auto& has) {
    return std::any_of(of.steps.begin(), of.steps.end(), has);
  };
  std::optional<schedule::Plan> changed;
  if (any_of(plan, gives_way)) {
    changed = schedule::with_fallbacks(plan, gives_way);
    schedule::verify(*changed);
  }
  auto made =
      changed ? prepared(*changed, nullptr, nullptr, nullptr) : prepared(plan, &build.texts, facts, &shapes);
  if (!any_of(changed ? *changed : plan, is_cooperative)) return made;
  made->split = prepared(*build.split, &build.split_texts, split_facts_of(build, shapes), &shapes);
  made->workspace_bytes = std::max(made->workspace_bytes, made->split->workspace_bytes);
  return made;
}

}  // namespace
}  // namespace runtime

std::optional<std::int64_t> Executable::most_workspace_bytes() const {
  if (impl_->device.kind() == DeviceKind::reference) return 0;
  if (impl_->signature().symbols.empty()) return prepare().workspace_bytes();
  std::int64_t most = 0;
  for (const runtime::Build& build : impl_->builds) {
    const auto* const all_dims = runtime::all_dims_of(build, *backend_of(impl_->device), *prepared_);
    if (!all_dims || !all_dims->layout) return std::nullopt;
    most = std::max(most, all_dims->layout->total);
  }
  return most;
}

Prepared Executable::prepare(const DimValues& dims) const {
  runtime::contract::forbid("prepares");
  if (auto known = prepared_->find(dims)) return Prepared(std::move(known));
  const runtime::Signature& signature = impl_->signature();
  const runtime::Binding binding(signature, dims);
  runtime::check_guards(signature.guards, binding);
  runtime::check_extents(signature, binding);
  const runtime::Build& build =
      impl_->builds[runtime::version_at(impl_->builds.front().program->builds, binding)];
  std::shared_ptr<const Prepared::Impl> made =
      impl_->device.kind() == DeviceKind::reference
          ? runtime::made_for(impl_, build, dims, binding)
          : runtime::prepare_steps(impl_, build, dims, binding, *prepared_);
  prepared_->keep(dims, made);
  return Prepared(std::move(made));
}

namespace {

template <class T>
const T& at(const std::vector<T>& values, std::size_t slot) {
  if (slot < values.size()) return values[slot];
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("there is no slot {}: there are {}", slot, values.size())});
}

}  // namespace

const std::vector<std::int64_t>& Prepared::shape(std::size_t slot) const { return *at(impl_->shapes, slot); }
std::int64_t Prepared::bytes(std::size_t slot) const { return at(impl_->bytes, slot); }
std::int64_t Prepared::workspace_bytes() const { return impl_->workspace_bytes; }
std::int64_t Prepared::workspace_bound() const { return impl_->workspace_bound; }
int Prepared::streams() const { return impl_->streams.streams; }
std::int64_t Prepared::packed_bytes() const { return impl_->packed_bytes; }
bool Prepared::reads_in_run(std::size_t slot) const { return at(impl_->runs, slot) != 0; }
std::int64_t Prepared::launches() const { return impl_->launches; }
std::int64_t Prepared::gemms() const { return impl_->gemm_calls; }

}  // namespace fuse
