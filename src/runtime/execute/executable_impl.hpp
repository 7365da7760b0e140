// What Executable and Prepared hold. Both are immutable once made, so threads share them without locks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <fuse/executable.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/lists.hpp"
#include "plan/program.hpp"
#include "plan/stream_plan.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/build.hpp"
#include "runtime/device/profiler_ranges.hpp"
#include "runtime/device/residency_ledger.hpp"
#include "runtime/execute/debug_run.hpp"
#include "runtime/execute/graph_replay.hpp"
#include "runtime/execute/labels.hpp"

namespace fuse {

namespace runtime {

/// What an executable was made from, for whoever asks; runs ask the reference device's alone.
class Origin {
 public:
  virtual ~Origin() = default;
  virtual std::string explain(const Executable::Impl&) const = 0;
  virtual const std::string& source() const = 0;  ///< CUDA text
  /// Throws unsupported where they are not kept.
  virtual const Compiled& stages() const = 0;
  virtual std::string graph() const = 0;    ///< as the user built it, `.fuse` text
  virtual std::string options() const = 0;  ///< those of compile, as JSON
  /// A run of the reference device. The buffers have been checked.
  virtual Status evaluate(const Prepared::Impl&, std::span<const BufferView>) const noexcept = 0;
};

}  // namespace runtime

namespace runtime {

/// A slot whose dims are numbers.
struct FixedSlot {
  std::vector<std::int64_t> shape{};
  std::int64_t bytes = 0;
};

}  // namespace runtime

struct Executable::Impl {
  Device device;  ///< first: what follows lives on it
  std::shared_ptr<const runtime::Origin> origin;
  std::vector<runtime::Build> builds{};  ///< of one graph; the first serves all dims
  std::vector<char> read_in_runs{};  ///< for each slot, whether a run of some build reads it; of one: empty
  std::vector<std::string> slot_names{};                         ///< for each slot: "output 'y'"
  std::vector<std::optional<runtime::FixedSlot>> fixed_slots{};  ///< for each slot; none: it has symbols

  const runtime::Signature& signature() const { return builds.front().program->signature; }
  const std::vector<Slot>& slots() const { return signature().slots; }
};

namespace runtime {

/// The location of a value: in the buffer of a slot, in the workspace, or in the packed memory.
struct ValueLocation {
  static constexpr std::int32_t workspace = -1, packed = -2;
  std::int32_t slot = workspace;
  std::int64_t offset = 0;  ///< in the buffer, the workspace or the packed memory
  std::int64_t bytes = 0;
};

/// A part of a list.
struct Range {
  std::uint32_t first = 0, count = 0;
};

/// What a step works on before the buffers are known: a value's location, or a launch's extent.
struct ReadyArgument {
  bool is_extent = false;
  ValueLocation location;
  std::int64_t value = 0;
};

/// The arguments of the steps that are no kernels.
namespace gemm_argument {
enum : std::uint8_t { a, b, c, scratch, extra, count };
}
namespace copy_argument {
enum : std::uint8_t { from, to, count };
}
namespace pack_argument {
enum : std::uint8_t { from, to, count };
}
namespace memset_argument {
enum : std::uint8_t { to, count };
}

/// A step with nothing left to decide. Steps without work are not kept.
struct ReadyStep {
  /// `pack` stands in the setup alone: a GEMM's operand in the form that the device reads fastest.
  enum class Kind : std::uint8_t { kernel, gemm, copy, memset, pack };
  Kind kind = Kind::kernel;
  std::uint8_t byte = 0;     ///< a memset's
  std::uint32_t number = 0;  ///< its number in the plan
  Range arguments;
  const Function* function = nullptr;
  Dim3 grid;
  const Gemm* gemm = nullptr;
  const GemmDesc* packed = nullptr;  ///< a product of what a pack makes
  std::int64_t calls = 1;            ///< the library calls of a gemm
  schedule::GroupId group = schedule::no_group;
  StepLabel label;
  std::string_view lines;  ///< the user's lines: "main.cpp:4, main.cpp:7"; empty: not known
};

/// One of a run's steps, in the order in which they are dispatched.
struct Command {
  static constexpr std::uint32_t no_event = ~std::uint32_t{0};
  std::uint32_t step = 0;
  schedule::StreamId stream = 0;
  Range waits{};                    ///< events of other streams that it starts after
  std::uint32_t record = no_event;  ///< the event that marks its end
};

/// What a run enqueues where.
struct Commands {
  std::vector<Command> list;
  std::vector<std::uint32_t> waits;        ///< events, by Command::waits
  std::vector<schedule::StreamId> forks;   ///< streams that start after the caller's and wait for no step
  std::vector<std::uint32_t> final_waits;  ///< events that the caller's stream waits for at the end
  std::uint32_t events = 0;                ///< the events of steps; one more marks the start of the run
};

/// The last step of compiling and of loading, of builds without their functions, which have the same slots.
/// Throws internal unless the parts of each program fit each other.
Executable make_executable(const Device& device, std::shared_ptr<const Origin> origin,
                           std::vector<Build> builds);

/// The timed algorithms of all builds, as text; empty: none were timed.
std::string algorithms_of(const Executable::Impl&);

/// `arguments` are the step's own.
Status enqueue_step(const ReadyStep& step, const Argument* arguments, Backend& backend,
                    Queue& queue) noexcept;

/// Whether memory of the executable's own (`what`: the workspace, the packed memory) is there, large enough
/// and aligned. `hint` is said where there is none.
Status check_own(const char* what, BufferView own, std::int64_t needed, const char* hint = "") noexcept;

/// What a workspace that was asked for a mode runs by.
ExecutionMode choose_mode(ExecutionMode asked, const Prepared::Impl&);

}  // namespace runtime

struct Prepared::Impl {
  std::shared_ptr<const Executable::Impl> executable{};  ///< first: gemms live on its device
  const runtime::Build* build = nullptr;                 ///< of the executable, the one for these dims
  DimValues dims;
  std::vector<const std::vector<std::int64_t>*> shapes;  ///< for each slot, its shape
  std::deque<std::vector<std::int64_t>> own_shapes;      ///< the shapes that are not the executable's
  std::vector<std::int64_t> bytes;
  std::string device_name;
  std::vector<char> packs, runs;  ///< for each slot, whether pack, and run, need its buffer
  std::vector<runtime::ReadyStep> setup, steps;
  std::deque<std::string> texts;  ///< of steps that are not the build's
  std::vector<runtime::ReadyArgument> arguments;
  std::vector<std::unique_ptr<runtime::Gemm>> gemms;
  std::deque<runtime::GemmDesc> packed_operands;  ///< of the packs of the setup, which point to them
  bool as_planned = true;  ///< the steps are the program's: no kernel was replaced by its fallback launches
  schedule::StreamPlan streams;  ///< the streams of the steps
  runtime::Commands commands;
  /// For each slot, then for the packed memory, the arguments that are addresses in it.
  Lists<std::uint32_t> arguments_of;
  std::int64_t workspace_bytes = 0, workspace_bound = 0, packed_bytes = 0;
  std::int64_t launches = 0, gemm_calls = 0;
  schedule::Alternatives cooperative;  ///< launches that a workspace reserves slots for
  std::string cooperative_steps;       ///< the steps that these are, for errors
  /// The same with the fallback launches of cooperative kernels, for workspaces that find no slots for those;
  /// null where there are none. Its workspaces are no larger than workspace_bytes.
  std::shared_ptr<const Impl> split;
  /// The range of a run, then of each step; null: no profiler is attached.
  std::unique_ptr<const runtime::ProfilerRanges> ranges;
};

struct Workspace::Impl {
  std::shared_ptr<const Prepared::Impl> prepared;  ///< or its split
  bool uses_fallback = false;
  std::unique_ptr<runtime::ResidencyLedger::Reservation>
      slots{};  ///< on multiprocessors; destroyed last but one
  Buffer owned;
  BufferView memory;
  std::vector<std::unique_ptr<runtime::Queue>> queues;  ///< the streams but the caller's
  std::vector<std::unique_ptr<runtime::Event>> events;  ///< the steps' events, then that of the start
  /// The marks of measured runs: start and end of each command, then of the run.
  std::vector<std::unique_ptr<runtime::Event>> marks{};
  bool marked = false;                       ///< the last run was marked to its end
  std::vector<runtime::Argument> arguments;  ///< the arguments of all steps, as the last run left them
  std::vector<void*> values;                 ///< for each argument, where its address or its extent is in it
  std::vector<BufferView> bound;  ///< for each slot, then for packed, what the arguments point into
  bool checked = false;           ///< `bound` was found good
  /// The end of the last run: under FUSE_CONTRACT, and where slots or memory of a resource are given back
  /// when it is over.
  std::unique_ptr<runtime::Event> last_run{};
  const void* last_queue = nullptr;  ///< and the caller's queue that it was on
  std::atomic_flag running;
  std::unique_ptr<const runtime::DebugRun> debug{};  ///< runs step by step; null: as they are made to
  /// In graph mode; last, so that it is destroyed before what it uses.
  std::unique_ptr<runtime::Replay> replay{};
  ExecutionMode mode = ExecutionMode::streams;
  Status mode_ended{};  ///< why graph mode ended in a run; ok where it did not

  Impl() = default;
  ~Impl();
  /// The streams besides the caller's, and the events between them.
  void make_streams();
};

}  // namespace fuse
