// What one run in flight has for itself. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/access.hpp"
#include "runtime/device/hot_path_check.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "runtime/execute/step_launch.hpp"

namespace fuse {
inline namespace v0 {
namespace {

/// The extents, and the addresses in the workspace; the others follow when a run brings its buffers.
std::vector<runtime::Argument> arguments_of(const Prepared::Impl& p, const BufferView& memory) {
  std::vector<runtime::Argument> arguments;
  for (const runtime::ReadyArgument& from : p.arguments) {
    runtime::Argument& argument = arguments.emplace_back();
    argument.bytes = from.location.bytes;
    argument.value = from.value;
    if (from.is_extent || from.location.slot != runtime::ValueLocation::workspace || from.location.bytes == 0)
      continue;
    argument.address = static_cast<std::byte*>(memory.address) + from.location.offset;
  }
  return arguments;
}

std::vector<void*> values_of(const Prepared::Impl& p, std::vector<runtime::Argument>& arguments) {
  std::vector<void*> values;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    runtime::Argument& argument = arguments[i];
    values.push_back(p.arguments[i].is_extent ? static_cast<void*>(&argument.value) : &argument.address);
  }
  return values;
}

/// Checks launches once for all runs.
void check_launches(const Prepared::Impl& p, const std::vector<runtime::Argument>& arguments) {
  const runtime::Backend& backend = *backend_of(p.executable->device);
  for (const runtime::ReadyStep& step : p.steps) {
    if (step.kind != runtime::ReadyStep::Kind::kernel) continue;
    const runtime::Range own = step.arguments;
    const Status status = backend.check_launch(*step.function, step.grid, arguments.data() + own.first,
                                               static_cast<int>(own.count));
    if (!status) runtime::of_step(step, status).throw_if_failed();
  }
}

/// Reserves slots for cooperative launches, or else takes their fallback launches, which need none.
void reserve_slots(const std::shared_ptr<const Prepared::Impl>& whole, Workspace::Impl& workspace,
                   const void* memory) {
  runtime::Backend& backend = *backend_of(whole->executable->device);
  for (const auto& p : {whole, whole->split}) {
    if (!p) break;
    workspace.slots = backend.residency().reserve(p->cooperative, memory, backend.target());
    if (!workspace.slots) continue;
    workspace.prepared = p;
    workspace.uses_fallback = p != whole;
    return;
  }
  const std::string& cooperative_steps =
      whole->split ? whole->split->cooperative_steps : whole->cooperative_steps;
  throw Error(
      {.code = ErrorCode::out_of_residency,
       .message = fmt::format("beside those of other workspaces {} has no slots for all blocks of {}, "
                              "which wait for each other",
                              whole->device_name, cooperative_steps),
       .hint = "give back other workspaces, make workspaces whose runs take turns in the same memory, "
               "or give the kernel parts"});
}

}  // namespace

Workspace Prepared::workspace(const WorkspaceOptions& options) const {
  Buffer owned = impl_->executable->device.allocate(impl_->workspace_bytes);
  Workspace made = workspace(owned.view(), options);
  impl_of(made)->owned = std::move(owned);
  return made;
}

Workspace Prepared::workspace(BufferView memory, const WorkspaceOptions& options) const {
  runtime::contract::forbid("makes a workspace");
  const Status bad = runtime::check_own("workspace", memory, impl_->workspace_bytes);
  if (!bad) throw Error({.code = bad.code(), .message = std::string(bad.message())});
  auto made = std::make_unique<Workspace::Impl>();
  reserve_slots(impl_, *made, memory.address);
  const Prepared::Impl& p = *made->prepared;
  made->memory = memory;
  made->arguments = arguments_of(p, memory);
  made->values = values_of(p, made->arguments);
  check_launches(p, made->arguments);
  made->bound.resize(p.bytes.size() + 1);
  made->debug = runtime::DebugRun::make();
  made->mode = made->debug ? ExecutionMode::streams : runtime::choose_mode(options.mode, p);
  if (made->mode == ExecutionMode::graph) {
    made->replay = runtime::Replay::make(p, made->arguments);
  }
  if (!made->replay) made->make_streams();
  if (runtime::contract::checked() || !p.cooperative.empty() || p.executable->device.memory())
    made->last_run = backend_of(p.executable->device)->create_event(false);
  return Workspace(std::move(made));
}

bool Workspace::split() const { return impl_ && impl_->uses_fallback; }

Workspace::Workspace() noexcept = default;
Workspace::Workspace(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;
Workspace::~Workspace() = default;
BufferView Workspace::memory() const { return impl_ ? impl_->memory : BufferView{}; }
ExecutionMode Workspace::mode() const { return impl_ ? impl_->mode : ExecutionMode::streams; }

std::string Workspace::mode_note() const {
  if (!impl_ || !impl_->replay || impl_->replay->refusal()) return {};
  const Status& ended = impl_->mode_ended;
  return fmt::format(
      "the driver did not give the CUDA graph other buffers: {}; {}{}", impl_->replay->refusal().message(),
      ended ? "the graph was made anew" : "runs go step by step on the caller's stream since: ",
      ended.message());
}

}  // namespace v0

// What a run in flight still uses is not for others: slots, and memory of the caller's resource. For the
// device's own memory the device waits by itself.
Workspace::Impl::~Impl() {
  if (!last_run || !last_queue) return;  // never ran, or was not made to its end
  const Device& device = prepared->executable->device;
  if (!prepared->cooperative.empty() || (owned.address() && device.memory()))
    backend_of(device)->finish(*last_run);
}

void Workspace::Impl::make_streams() {
  runtime::Backend& backend = *backend_of(prepared->executable->device);
  const auto streams = static_cast<std::size_t>(prepared->streams.streams);
  std::vector<std::unique_ptr<runtime::Queue>> made_queues(streams - 1);
  std::vector<std::unique_ptr<runtime::Event>> made_events(streams > 1 ? prepared->commands.events + 1 : 0);
  for (auto& queue : made_queues) queue = backend.create_queue();
  for (auto& event : made_events) event = backend.create_event(false);
  queues = std::move(made_queues);
  events = std::move(made_events);
}

}  // namespace fuse
