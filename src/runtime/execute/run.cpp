// Prepared::run: the hot path. No allocation, no lock, nothing compiled.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/access.hpp"
#include "base/formatted_status.hpp"
#include "runtime/device/hot_path_check.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "runtime/execute/step_launch.hpp"
#include "runtime/execute/workspace_alignment.hpp"

namespace fuse {
inline namespace v0 {
namespace {

constexpr std::uintptr_t buffer_alignment = 16;

using runtime::of_step;

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

bool overlap(const void* a, std::int64_t a_bytes, const void* b, std::int64_t b_bytes) {
  if (a_bytes <= 0 || b_bytes <= 0) return false;
  const std::uintptr_t x = number(a), y = number(b);
  return x < y ? y - x < static_cast<std::uintptr_t>(a_bytes) : x - y < static_cast<std::uintptr_t>(b_bytes);
}

runtime::SlotType type_of(const Prepared::Impl& p, std::size_t slot) {
  return {p.executable->slots()[slot].dtype, *p.shapes[slot]};
}

/// `needed` says for each slot whether it is: a null view of one that is not is passed over.
Status check_buffers(const Prepared::Impl& p, std::span<const BufferView> buffers,
                     const std::vector<char>& needed) noexcept {
  if (buffers.size() != p.bytes.size()) {
    return status(ErrorCode::invalid_argument, "{} buffer{} given for {} slot{}", buffers.size(),
                  buffers.size() == 1 ? "" : "s", p.bytes.size(), p.bytes.size() == 1 ? "" : "s");
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const BufferView& view = buffers[i];
    if (p.bytes[i] == 0 || !needed[i]) continue;
    if (!view.address) {
      return status(ErrorCode::invalid_argument, "buffer of {} is null, needs {} bytes ({})",
                    p.executable->slot_names[i], p.bytes[i], type_of(p, i));
    }
    if (view.bytes < p.bytes[i]) {
      return status(ErrorCode::invalid_argument, "buffer of {} has {} bytes, needs {} ({})",
                    p.executable->slot_names[i], view.bytes, p.bytes[i], type_of(p, i));
    }
    if (number(view.address) >
        std::numeric_limits<std::uintptr_t>::max() - static_cast<std::uint64_t>(p.bytes[i])) {
      return status(ErrorCode::invalid_argument, "buffer of {} is at {}: its {} bytes pass the end of memory",
                    p.executable->slot_names[i], view.address, p.bytes[i]);
    }
    if (number(view.address) % buffer_alignment != 0) {
      return status(ErrorCode::invalid_argument, "buffer of {} is at {}, which is not {}-byte aligned",
                    p.executable->slot_names[i], view.address, buffer_alignment);
    }
  }
  return Status();
}

/// Outputs stand after the other slots.
Status check_overlap(const Prepared::Impl& p, std::span<const BufferView> buffers) noexcept {
  const std::vector<Slot>& slots = p.executable->slots();
  for (std::size_t i = slots.size(); i-- > 0 && slots[i].kind == Slot::Kind::output;) {
    const auto donor = slots[i].donor;
    if (donor && p.bytes[i] > 0 && buffers[i].address != buffers[*donor].address) {
      return status(ErrorCode::invalid_argument, "buffer of {} is not that of {}, whose memory it takes",
                    p.executable->slot_names[i], p.executable->slot_names[*donor]);
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (donor == j || !overlap(buffers[i].address, p.bytes[i], buffers[j].address, p.bytes[j])) continue;
      return status(ErrorCode::invalid_argument, "buffer of {} overlaps the buffer of {}",
                    p.executable->slot_names[i], p.executable->slot_names[j]);
    }
  }
  return Status();
}

/// Memory of the executable's own lies apart from the buffers.
Status check_apart(const char* what, BufferView own, std::int64_t needed, const Prepared::Impl& p,
                   std::span<const BufferView> buffers) noexcept {
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (overlap(own.address, needed, buffers[i].address, p.bytes[i])) {
      return status(ErrorCode::invalid_argument, "{} overlaps the buffer of {}", what,
                    p.executable->slot_names[i]);
    }
  }
  return Status();
}

Status check_packed(const Prepared::Impl& p, std::span<const BufferView> buffers,
                    BufferView packed) noexcept {
  Status bad = runtime::check_own("packed memory", packed, p.packed_bytes, ": fill it by Prepared::pack");
  return bad ? check_apart("packed memory", packed, p.packed_bytes, p, buffers) : bad;
}

Status check_device(const Prepared::Impl& p, const Stream& stream) noexcept {
  if (backend_of(stream) == backend_of(p.executable->device)) return Status();
  return status(ErrorCode::invalid_argument, "the stream is of another device than the executable's, {}",
                p.device_name);
}

Status check_run(const Prepared::Impl& p, std::span<const BufferView> buffers, BufferView workspace,
                 BufferView packed) noexcept {
  if (Status bad = check_buffers(p, buffers, p.runs); !bad) return bad;
  if (Status bad = check_overlap(p, buffers); !bad) return bad;
  if (Status bad = check_apart("workspace", workspace, p.workspace_bytes, p, buffers); !bad) return bad;
  if (Status bad = check_packed(p, buffers, packed); !bad) return bad;
  if (overlap(workspace.address, p.workspace_bytes, packed.address, p.packed_bytes)) {
    return status(ErrorCode::invalid_argument, "workspace overlaps the packed memory");
  }
  return Status();
}

/// Inlined on purpose, as its caller is: it is our cost of a step. `arguments` are the step's own, and so are
/// `values`, as in Backend::launch_checked, or null where nothing was checked.
[[gnu::always_inline]] inline Status enqueue(const runtime::ReadyStep& step,
                                             const runtime::Argument* arguments, void* const* values,
                                             runtime::Backend& backend, runtime::Queue& queue) noexcept {
  const auto count = static_cast<int>(step.arguments.count);
  switch (step.kind) {
    case runtime::ReadyStep::Kind::kernel:
      return values ? backend.launch_checked(queue, *step.function, step.grid, arguments, values, count)
                    : backend.launch(queue, *step.function, step.grid, arguments, count);
    case runtime::ReadyStep::Kind::gemm: {
      using namespace runtime::gemm_argument;
      return step.gemm->run(queue, arguments[a].address, arguments[b].address, arguments[c].address,
                            arguments[scratch].address, arguments[extra].address);
    }
    case runtime::ReadyStep::Kind::copy: {
      using namespace runtime::copy_argument;
      return backend.copy(queue, arguments[to].address, arguments[from].address, arguments[to].bytes);
    }
    case runtime::ReadyStep::Kind::memset: {
      const runtime::Argument& to = arguments[runtime::memset_argument::to];
      return backend.memset(queue, to.address, step.byte, to.bytes);
    }
    case runtime::ReadyStep::Kind::pack: {
      using namespace runtime::pack_argument;
      return backend.pack_gemm(queue, *step.packed, arguments[from].address, arguments[to].address);
    }
  }
  return {ErrorCode::internal, "unknown kind of step"};
}

/// The setup, in order on one queue. Its arguments stand on the stack: it is not what runs often.
Status enqueue_setup(const Prepared::Impl& p, std::span<const BufferView> buffers, BufferView packed,
                     runtime::Queue& queue) noexcept {
  std::array<runtime::Argument, runtime::max_arguments> arguments;
  for (const runtime::ReadyStep& step : p.setup) {
    for (std::uint32_t i = 0; i < step.arguments.count; ++i) {
      const runtime::ReadyArgument& from = p.arguments[step.arguments.first + i];
      arguments[i] = {.bytes = from.location.bytes, .value = from.value};
      if (from.is_extent || from.location.slot == runtime::ValueLocation::workspace) continue;
      const bool in_packed = from.location.slot == runtime::ValueLocation::packed;
      const BufferView& base = in_packed ? packed : buffers[static_cast<std::size_t>(from.location.slot)];
      arguments[i].address = static_cast<std::byte*>(base.address) + from.location.offset;
    }
    Status failed = enqueue(step, arguments.data(), nullptr, *backend_of(p.executable->device), queue);
    if (!failed) return of_step(step, failed);
  }
  return Status();
}

/// Enqueues a run: its steps in dispatch order, each on its stream, or all as the workspace's graph. Where
/// graph mode has ended the workspace has no streams of its own, and making them would allocate: the caller's
/// takes all steps, whose dispatch order keeps what each of them waits for.
class Launcher {
 public:
  Launcher(const Prepared::Impl& p, Workspace::Impl& w, runtime::Queue& queue) noexcept
      : p_(p), w_(w), backend_(*backend_of(p.executable->device)), queue_(queue) {}

  Status run() noexcept {
    const runtime::ProfilerRange range(p_.ranges.get(), 0);
    if (w_.replay && w_.mode == ExecutionMode::graph) {
      const Status done = replay();
      if (done.code() != ErrorCode::unsupported) return done;
      w_.mode = ExecutionMode::streams;
      w_.mode_ended = done;
    }
    if (Status failed = backend_.enter(); !failed) return failed;
    Status done = enqueue_all();
    const Status left = backend_.leave();
    return done ? left : done;
  }

 private:
  runtime::Queue& queue(schedule::StreamId stream) const noexcept {
    return stream == 0 || one_stream() ? queue_ : *w_.queues[stream - 1u];
  }
  bool one_stream() const noexcept { return w_.queues.empty(); }

  Status replay() noexcept {
    Status failed = w_.replay->run(p_, w_.arguments, queue_);
    if (failed && w_.last_run) failed = backend_.record(queue_, *w_.last_run);
    return failed;
  }

  Status enqueue_all() noexcept {
    const runtime::Commands& commands = p_.commands;
    Status failed = mark(queue_, 2 * commands.list.size());
    if (failed) failed = fork();
    if (failed) failed = p_.ranges ? run_steps<true>() : run_steps<false>();
    for (std::size_t i = 0; failed && !one_stream() && i < commands.final_waits.size(); ++i) {
      failed = backend_.wait(queue_, *w_.events[commands.final_waits[i]]);
    }
    if (failed) failed = mark(queue_, 2 * commands.list.size() + 1);
    if (!failed) join_all();
    if (!w_.last_run) return failed;
    // A run that failed is marked as well: what it enqueued is in flight.
    const Status ended = backend_.record(queue_, *w_.last_run);
    return failed ? ended : failed;
  }

  Status fork() noexcept {
    if (p_.commands.forks.empty() || one_stream()) return Status();
    runtime::Event& start = *w_.events.back();
    if (Status failed = backend_.record(queue_, start); !failed) return failed;
    for (const schedule::StreamId stream : p_.commands.forks) {
      if (Status failed = backend_.wait(queue(stream), start); !failed) return failed;
    }
    return Status();
  }

  Status mark(runtime::Queue& on, std::size_t mark) noexcept {
    return w_.marks.empty() ? Status() : backend_.record(on, *w_.marks[mark]);
  }

  template <bool ranges>
  Status run_steps() noexcept {
    const std::vector<runtime::Command>& list = p_.commands.list;
    Status failed;
    for (std::size_t i = 0; failed && i < list.size(); ++i) {
      const runtime::ProfilerRange range(ranges ? p_.ranges.get() : nullptr, 1 + list[i].step);
      failed = run(list[i], 2 * i);
    }
    return failed;
  }

  [[gnu::always_inline]] Status run(const runtime::Command& command, std::size_t first_mark) noexcept {
    const runtime::ReadyStep& step = p_.steps[command.step];
    runtime::Queue& on = queue(command.stream);
    for (std::uint32_t i = 0; !one_stream() && i < command.waits.count; ++i) {
      const std::uint32_t event = p_.commands.waits[command.waits.first + i];
      if (Status failed = backend_.wait(on, *w_.events[event]); !failed) return of_step(step, failed);
    }
    Status failed = mark(on, first_mark);
    if (failed) {
      const std::uint32_t first = step.arguments.first;
      failed = enqueue(step, w_.arguments.data() + first, w_.values.data() + first, backend_, on);
    }
    if (failed) failed = mark(on, first_mark + 1);
    if (failed && command.record != runtime::Command::no_event && !one_stream()) {
      failed = backend_.record(on, *w_.events[command.record]);
    }
    return failed ? failed : of_step(step, failed);
  }

  /// After a failure, so that who waits for the caller's stream has waited for everything. What fails here is
  /// the device's next report.
  void join_all() noexcept {
    for (const auto& other : w_.queues) {
      if (backend_.record(*other, *w_.events.back())) (void)!backend_.wait(queue_, *w_.events.back());
    }
  }

  const Prepared::Impl& p_;
  Workspace::Impl& w_;
  runtime::Backend& backend_;
  runtime::Queue& queue_;
};

bool same(const BufferView& a, const BufferView& b) { return a.address == b.address && a.bytes == b.bytes; }

/// Checks the buffers and points the launches' arguments at them, unless the last run of the workspace was
/// given the same.
Status bind(const Prepared::Impl& p, Workspace::Impl& w, std::span<const BufferView> buffers,
            BufferView packed) noexcept {
  const std::size_t slots = p.bytes.size();
  if (w.checked && buffers.size() == slots && same(w.bound[slots], packed) &&
      std::equal(buffers.begin(), buffers.end(), w.bound.begin(), same)) {
    return Status();
  }
  if (Status bad = check_run(p, buffers, w.memory, packed); !bad) return bad;
  for (std::size_t slot = 0; slot <= slots; ++slot) {
    const BufferView& view = slot < slots ? buffers[slot] : packed;
    if (same(w.bound[slot], view)) continue;
    const bool moved = std::exchange(w.bound[slot], view).address != view.address;
    if (!moved) continue;  // longer or shorter: no step sees it
    if (w.replay) w.replay->moved(slot);
    for (const std::uint32_t argument : p.arguments_of[slot]) {
      w.arguments[argument].address =
          static_cast<std::byte*>(view.address) + p.arguments[argument].location.offset;
    }
  }
  w.checked = true;
  return Status();
}

/// Checks, under FUSE_CONTRACT and where slots on the multiprocessors are at stake, that the last run, where
/// it was on another stream, has been waited for.
Status check_sharing(Workspace::Impl& w, const runtime::Queue& queue) noexcept {
  if (!w.last_run) return Status();
  const bool asked = runtime::contract::checked() || !w.prepared->cooperative.empty();
  if (asked && w.last_queue && w.last_queue != &queue &&
      !backend_of(w.prepared->executable->device)->passed(*w.last_run)) {
    return {ErrorCode::invalid_argument,
            "the workspace is in use by a run on another stream, which nobody waited for"};
  }
  w.last_queue = &queue;
  return Status();
}

/// Marks the workspace as one thread's at a time.
class Lease {
 public:
  explicit Lease(std::atomic_flag& flag) noexcept : flag_(flag) {
    held_ = !flag_.test_and_set(std::memory_order_acquire);
  }
  ~Lease() {
    if (held_) flag_.clear(std::memory_order_release);
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  bool held() const noexcept { return held_; }

 private:
  std::atomic_flag& flag_;
  bool held_ = false;
};

}  // namespace
}  // namespace v0

Status runtime::enqueue_step(const ReadyStep& step, const Argument* arguments, Backend& backend,
                             Queue& queue) noexcept {
  return enqueue(step, arguments, nullptr, backend, queue);
}

Status runtime::check_own(const char* what, BufferView own, std::int64_t needed, const char* hint) noexcept {
  if (needed == 0) return Status();
  if (!own.address || own.bytes < needed) {
    return status(ErrorCode::invalid_argument, "{} has {} bytes, needs {}{}", what,
                  own.address ? own.bytes : 0, needed, own.address ? "" : hint);
  }
  if (number(own.address) % workspace_alignment == 0) return Status();
  return status(ErrorCode::invalid_argument, "{} is at {}, which is not {}-byte aligned", what, own.address,
                workspace_alignment);
}

inline namespace v0 {

Status Prepared::pack(Stream& stream, std::span<const BufferView> buffers, BufferView packed) const noexcept {
  const Impl& p = *impl_;
  if (Status bad = check_device(p, stream); !bad) return bad;
  if (Status bad = check_buffers(p, buffers, p.packs); !bad) return bad;
  if (Status bad = check_packed(p, buffers, packed); !bad) return bad;
  return enqueue_setup(p, buffers, packed, queue_of(stream));
}

Status Prepared::run(Stream& stream, std::span<const BufferView> buffers, Workspace& workspace,
                     BufferView packed) const noexcept {
  if (Status bad = check_device(*impl_, stream); !bad) return bad;
  Workspace::Impl* const w = impl_of(workspace);
  if (!w || (w->prepared != impl_ && w->prepared != impl_->split)) {
    return status(ErrorCode::invalid_argument, "{}: make one by Prepared::workspace",
                  w ? "the workspace is of another Prepared" : "the workspace is empty");
  }
  const Impl& p = *w->prepared;
  const Lease lease(w->running);
  if (!lease.held()) return {ErrorCode::invalid_argument, "another thread is in a run with this workspace"};
  if (Status bad = check_sharing(*w, queue_of(stream)); !bad) return bad;
  if (Status bad = bind(p, *w, buffers, packed); !bad) return bad;
  const DeviceKind kind = p.executable->device.kind();
  if (kind == DeviceKind::reference) return p.executable->origin->evaluate(p, buffers);
  if (w->debug) return w->debug->run(p, buffers, w->arguments, queue_of(stream));
  // What the emulated device does inside a launch is not checked.
  const runtime::contract::HotPath hot(kind == DeviceKind::cuda);
  w->marked = false;
  Status done = Launcher(p, *w, queue_of(stream)).run();
  w->marked = static_cast<bool>(done);
  if (done && hot.broken()) return status(ErrorCode::internal, "contract: a run {}", hot.broken());
  return done;
}

}  // namespace v0
}  // namespace fuse
