// compile, Executable, Prepared: from a graph to running it with buffers by slot, as servers do. Session
// (session.hpp) runs with buffers by name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/device.hpp>
#include <fuse/dim.hpp>
#include <fuse/dim_values.hpp>
#include <fuse/dtype.hpp>
#include <fuse/export.hpp>
#include <fuse/function_ref.hpp>
#include <fuse/graph.hpp>
#include <fuse/weights.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fuse {

struct Compiled;
struct Experiments;

inline namespace v0 {

/// What the tests of fuse and its comparisons with other compilers change in a compilation. An application
/// cannot make one.
class FUSE_COMPILER_API ExperimentsHandle {
 public:
  /// Changes nothing.
  ExperimentsHandle() = default;
  /// True where the same is changed.
  bool operator==(const ExperimentsHandle&) const;

 private:
  friend struct detail::Access;
  explicit ExperimentsHandle(std::shared_ptr<Experiments> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Experiments> impl_;
};

/// How a graph is compiled.
struct CompileOptions {
  /// Lets the passes change roundings and their order where that saves work: x / 3 may become x * (1 / 3), a
  /// convert to bf16 and back may be removed. docs/passes.md lists the rules.
  bool relaxed_rounding = false;
  ExperimentsHandle experiments{};  ///< of the tests of fuse; an application leaves it as it is
  /// GEMMs that share an operand, or a shape, become one where that saves more than it copies (docs/gemm.md).
  bool merge_gemms = true;
  /// The loops of kernels are searched for, within milliseconds for each kernel, instead of chosen by rules
  /// of the shape (Dali, 2; docs/search.md). Both go by the same cost model.
  bool search = false;
  /// Kernels may be cooperative, with blocks that wait for each other, where that saves a launch; `prepare`
  /// reserves slots on the multiprocessors for them, and what finds none runs as several launches. Off: where
  /// other processes use the device.
  bool grid_barriers = true;
  int max_inputs = 48;  ///< values that a kernel reads at most (Dali's F_max)
  /// The most ways to run that a kernel has for graphs with symbols, 1 to 16: `prepare` takes one by the dims
  /// (BladeDISC, 5.2; docs/versions.md). compile builds all. 1: one way, made for the hints; with
  /// `builds = 1` and without one_or sums then add in one order for all dims, except in GEMMs. With decisions
  /// a kernel has the versions that they say, if this is not 1.
  int versions = 8;
  /// The most times that the graph is compiled for graphs with symbols, 1 to 8, each for a part of the range
  /// of its dims, where another cut into kernels is better there; `prepare` takes one by the dims. 1: the cut
  /// for the hints serves all dims, as with decisions. Extents that may be 1 (one_or) have at least one build
  /// for each case, whatever this is.
  int builds = 4;
  /// How the graph is cut and how kernels and runs proceed, as a text that `fusec plan --decisions` or `fusec
  /// run --decisions` wrote and that may have been edited (docs/decisions.md). What it does not say is
  /// decided by cost. compile throws parse for a text that is none, and invalid_argument for one of another
  /// target or with an entry that fits no kernel; both name the line.
  std::string decisions{};
  bool skip_unfit_decisions = false;  ///< such entries are left out instead; explain says how many
  int threads = 0;  ///< threads for planning and compiling; 0: one per core. The result is the same
  int streams = 4;  ///< the most streams that the steps of a run are spread over, 1 to 16
  /// What was compiled before, by any process of this user, is taken from the user's cache directory, and
  /// what is compiled now is kept there (docs/deploy.md).
  bool cache = true;
  /// True when all options are equal.
  bool operator==(const CompileOptions&) const = default;
};

/// An input, parameter or output of an executable. Its index in slots() is its slot.
struct Slot {
  /// What a slot is for.
  enum class Kind : std::uint8_t { input, parameter, output };
  Kind kind = Kind::input;             ///< what it is for
  std::string name;                    ///< the name in the graph
  DType dtype = f32;                   ///< the element type
  std::vector<Dim> dims;               ///< the extents, which may have symbols
  std::optional<std::size_t> donor{};  ///< output: the slot of the input whose buffer it shares
};

class Prepared;
class Workspace;
class Bound;
}  // namespace v0
namespace runtime {
class PreparedShapes;
}
inline namespace v0 {

/// A compiled graph on a device. Immutable; copies share it, and threads may. A move copies.
class FUSE_COMPILER_API Executable {
 public:
  /// Another handle to the same compiled graph.
  ///@{
  Executable(const Executable&) = default;
  Executable& operator=(const Executable&) = default;
  ///@}
  const std::vector<Slot>& slots() const;         ///< inputs and parameters in graph order, then outputs
  std::size_t slot(std::string_view name) const;  ///< an input's or parameter's; throws unknown_name
  std::size_t output_slot(std::string_view name) const;  ///< an output's; throws unknown_name
  /// Does everything that is done once for these dims: sizes, memory plan, GEMM algorithms, launches. What
  /// was made for the last 32 dims is kept by this executable and its copies, and given again. Throws unbound
  /// (a symbol without a value), unknown_name, invalid_extent (outside the declared range), violated_guard
  /// (an assumption, or what an op needs, does not hold); invalid_argument
  /// for decisions that cannot be on this device, or for these dims.
  Prepared prepare(const DimValues& dims = {}) const;
  /// What `Prepared::workspace_bytes` is at most, whatever the dims are: memory of this size serves all, one
  /// run at a time. None where a temporary has no bound below 2^63 bytes, or where the program has more than
  /// 2,048 steps. Declare the ranges of symbols closely, and say with Graph::assume what holds for their
  /// products: the bound follows from these.
  std::optional<std::int64_t> most_workspace_bytes() const;
  /// Steps with their ops and launches, as text.
  std::string explain() const;
  /// The source code of the kernels: CUDA for cuda and emulated, C++ for cpu. Empty on the reference device.
  const std::string& source() const;
  /// The device that it was compiled or loaded for.
  const Device& device() const;
  /// The executable with the values of its parameters (session.hpp).
  Bound bind(const Weights& weights) const;
  /// Writes a saved plan: all that `load` needs to run this on such a device, where there is no compiler and
  /// no NVRTC (docs/deploy.md). The file is there whole or not at all. Throws io; unsupported on the
  /// reference device, which has no kernels to save.
  void save(const std::string& path) const;
  /// The saved plan's part for this device. Nothing in the file is run before all of it is checked; but its
  /// kernels are programs: load what you would run. Throws io; file_format for a file that is no saved plan
  /// or is damaged; incompatible_version, with each field that differs, where no part was made for such a
  /// device.
  static Executable load(const std::string& path, const Device& device);

  struct Impl;  ///< What it consists of, which the library alone knows.

 private:
  friend struct detail::Access;
  explicit Executable(std::shared_ptr<const Impl> impl);
  const Compiled& stages() const;

  std::shared_ptr<const Impl> impl_;
  std::shared_ptr<runtime::PreparedShapes> prepared_;
};

/// As Executable::save, but for executables of one graph for several devices, in one file. Throws
/// invalid_argument where their inputs, parameters and outputs differ, or two were made for equal devices.
FUSE_COMPILER_API void save(const std::string& path, std::span<const Executable> executables);

/// Compiles for a device. Equal parts of the graph are compiled once, and so is a graph that the device
/// compiled before: it keeps the last ones. Throws user Errors of the graph, invalid_argument for options out
/// of range, missing_compiler, missing_library, io for a FUSE_CACHE_DIR that others may write to.
FUSE_COMPILER_API Executable compile(const Graph& graph, const Device& device,
                                     const CompileOptions& options = {});

/// When one step of a run was at work. Seconds from the start of the run.
struct StepTime {
  std::string step;  ///< "step 2, kernel 'ln_0' (reduce_sum in layer_norm.mean)"
  int stream = 0;    ///< 0 is the caller's
  ///@{
  /// Seconds from the start of the run.
  double start = 0, end = 0;
  ///@}
};

/// When the steps of one group of the partition (docs/partition.md) were at work: from the first's start to
/// the last's end, with whatever ran beside them.
struct GroupTime {
  int group = 0;     ///< the group's number in the plan, as `fusec plan` prints it
  std::string name;  ///< "max, sub, exp in softmax; and 2 more"
  int steps = 0;     ///< the number of its steps that ran
  ///@{
  /// Seconds from the start of the run.
  double start = 0, end = 0;
  ///@}
};

/// When the steps of a run were at work, in the order in which they were dispatched.
struct Profile {
  std::string clock;            ///< the clock that measured: "cost model (h200)", "CUDA events", "host clock"
  std::vector<StepTime> steps;  ///< the steps, in the order of dispatch
  /// Sorted by number; a step that belongs to no group, as a copy, is in none.
  std::vector<GroupTime> groups;
  double seconds = 0;  ///< the whole run's time
};

/// How the runs of a workspace reach the device (docs/runtime.md, "Graph replay").
enum class ExecutionMode : std::uint8_t {
  streams,    ///< step by step, on the caller's stream and others; the caller may capture it
  graph,      ///< as one CUDA graph, launched whole; step by step on a device that has no graphs
  automatic,  ///< what decisions say; else graph where the cost model expects it to pay (`auto` is a keyword)
};
/// The name of the enumerator: "graph". "?" for a value that is none.
FUSE_COMPILER_API std::string_view to_string(ExecutionMode);

/// Options of a workspace.
struct WorkspaceOptions {
  ExecutionMode mode = ExecutionMode::streams;  ///< how its runs reach the device
};

/// What one run in flight has for itself: memory for temporaries, the streams and events that its steps are
/// spread over or the CUDA graph of them, and the arguments of its launches. One thread at a time. Its runs
/// may follow one another on one stream without waiting; before a run on another stream they must have been
/// waited for. It may be destroyed while its last run is in flight, unless its memory is the caller's and is
/// freed with it.
class FUSE_COMPILER_API Workspace {
 public:
  /// An empty workspace, which no run takes.
  Workspace() noexcept;
  /// Moves the workspace; the other one is empty afterwards.
  ///@{
  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;
  ///@}
  ~Workspace();
  /// Its memory for temporaries; null for an empty workspace.
  BufferView memory() const;
  /// How its runs reach the device, streams or graph; `automatic` has become one of them. Graph becomes
  /// streams in a run where the driver refuses for the second time to give the graph other buffers, and at
  /// `measure`.
  ExecutionMode mode() const;
  /// What the driver refused and what graph mode did about it; empty where nothing was refused.
  std::string mode_note() const;
  /// Whether its runs use the fallback launches of cooperative kernels, since other workspaces held the slots
  /// for their blocks when it was made (docs/streams.md). The results are the same.
  bool split() const;

  struct Impl;  ///< What it consists of, which the library alone knows.
  /// From now on each run marks the start and the end of its steps on their streams: a workspace in graph
  /// mode goes over to streams. Allocates the marks. Throws driver, out_of_memory; invalid_argument for an
  /// empty workspace.
  void measure();
  /// The profile of the last run since `measure`, in seconds by `Profile::clock`. Waits for nothing: empty
  /// until all of that run is over, and on the reference device, which has no steps. Throws driver.
  std::optional<Profile> measured() const;

 private:
  friend class Prepared;
  friend struct detail::Access;
  explicit Workspace(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// An executable ready to run with fixed dims. Immutable; copies share it, and so may threads, each with its
/// own workspace and stream. A move copies.
class FUSE_COMPILER_API Prepared {
 public:
  /// Another handle to the same launches and sizes.
  ///@{
  Prepared(const Prepared&) = default;
  Prepared& operator=(const Prepared&) = default;
  ///@}
  /// The extents of a slot. Throws invalid_argument where there is no such slot.
  const std::vector<std::int64_t>& shape(std::size_t slot) const;
  /// The bytes that the buffer of a slot needs. Throws invalid_argument where there is no such slot.
  std::int64_t bytes(std::size_t slot) const;
  /// The bytes of memory that a workspace needs.
  std::int64_t workspace_bytes() const;
  /// The most bytes that are live at one step: no workspace could be smaller.
  std::int64_t workspace_bound() const;
  /// Streams that a run uses: the caller's, and others that start after it and that it waits for at the end.
  int streams() const;
  /// The bytes of packed memory, 256-byte aligned, for what parameters alone determine and GEMMs read
  /// (weights side by side); it is filled once. 0: there is nothing to pack. The same for all dims of an
  /// executable.
  std::int64_t packed_bytes() const;
  std::int64_t launches() const;  ///< kernel launches per run; pack's are not counted
  std::int64_t gemms() const;     ///< GEMM calls per run

  /// The steps in the order in which they are dispatched, each with its stream, the steps of other streams
  /// that it waits for, when the cost model has it at work, and the algorithm of a GEMM.
  std::string explain() const;
  /// The cost model's prediction of a run: the same for the same dims, whatever has run. No steps on the
  /// reference device.
  Profile predicted() const;

  /// A workspace in memory of the device's. Until it is destroyed it reserves room on the multiprocessors,
  /// in this process, for the blocks of cooperative kernels; where too little is left, their fallback
  /// launches run instead. Throws out_of_memory, driver, and out_of_residency for a kernel that has no
  /// fallback launches.
  Workspace workspace(const WorkspaceOptions& options = {}) const;
  /// A workspace in the caller's memory, at least workspace_bytes() long, 256-byte aligned. The memory
  /// outlives the workspace, and may be that of other workspaces whose runs are never in flight with this
  /// one's: they share the room for their blocks too. Throws invalid_argument, and what the other throws.
  Workspace workspace(BufferView memory, const WorkspaceOptions& options = {}) const;

  /// Enqueues what fills `packed` from the parameters: once after they are bound, and again after any of them
  /// changes, before the runs that read it. Looks at the buffers of parameters only. Like run otherwise.
  Status pack(Stream& stream, std::span<const BufferView> buffers, BufferView packed) const noexcept;
  /// Whether a run reads the buffer of the slot. False for a parameter that pack alone reads: run takes a
  /// null view for it, and its memory may be given back once pack has passed.
  bool reads_in_run(std::size_t slot) const;

  /// Enqueues the work. `buffers[i]` belongs to slot i, at least bytes(i) long, 16-byte aligned; outputs
  /// overlap no other buffer, except one with a donor, whose buffer it shares; the workspace was made by
  /// this Prepared (or a copy) and its memory overlaps none; `packed` is what pack filled, and any number of
  /// runs may read it at once. All live until the stream has passed the work. Does not allocate, compile or
  /// synchronise. On failure no output counts as written. The reference device works before it returns.
  /// While `stream` is being captured, only a workspace in streams mode may run on it.
  Status run(Stream& stream, std::span<const BufferView> buffers, Workspace& workspace,
             BufferView packed = {}) const noexcept;

  struct Impl;  ///< What it consists of, which the library alone knows.

 private:
  friend class Executable;
  friend struct detail::Access;
  explicit Prepared(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

/// What was measured of one GEMM for some dims.
struct GemmTiming {
  std::string gemm;             ///< "S x 768 by k = 64, batch 12 * B, f32 to f32"
  DimValues dims{};             ///< the values of the symbols
  int algorithms = 0;           ///< how many were measured, 2 or more
  double proposed_seconds = 0;  ///< of one call with the algorithm that the library proposes first
  double seconds = 0;           ///< of one call with the algorithm that is taken from now on
  std::string algorithm{};      ///< that algorithm: "cuBLASLt algorithm 66, tile 20, .."
  bool is_proposal = true;      ///< it is the one that the library proposes first
};

/// What time_gemms measures.
struct GemmTimingOptions {
  /// The values of the symbols to measure for. Empty: powers of two in the range of each symbol, at most 64
  /// combinations, of those that the graph allows.
  std::vector<DimValues> dims{};
  int runs = 10;  ///< of each algorithm, 1 to 1000; the median counts
  /// An algorithm takes the place of the library's proposal where its time is shorter by this share or more.
  double least_gain = 0.03;
  std::int64_t most_bytes = std::int64_t{1} << 30;  ///< a GEMM whose operands take more is not measured
  detail::SharedFunction<void(const GemmTiming&)> progress{};  ///< called after each; it must not throw
};

/// What time_gemms gives.
struct TimedGemms {
  Executable executable;              ///< the same program, with the algorithms that were chosen
  std::vector<GemmTiming> timings{};  ///< what was measured, in the order of measuring
};

/// Measures the algorithms that the GEMM library proposes, for buckets of extents: 1, 2, 3 and 4, 5 to 8, and
/// so on (BladeDISC, 5.2.2). In the new executable, each GEMM for which another algorithm won has a table,
/// from which `prepare` picks the algorithm. Extents of a bucket that was not measured take the algorithm of
/// the next larger one that was, else of the largest. Where the library proposes one algorithm alone, as on
/// the cpu device, nothing is measured, and it is the same program.
///
/// Times differ from call to call, so two calls may choose other algorithms, whose results differ in the last
/// bits. One executable has the same algorithm for the same dims at any time, and so has what `save` writes
/// of it, while the library has the same version; another version's own proposal is taken. A GEMM whose
/// algorithm decisions name keeps it. What an earlier call found is dropped: give all dims in one call. Let
/// nothing else use the device meanwhile, or times are wrong. Throws invalid_argument for options out of
/// range, what `prepare` throws for `dims` of the options, out_of_memory and driver.
FUSE_COMPILER_API TimedGemms time_gemms(const Executable& executable, const GemmTimingOptions& options = {});

}  // namespace v0
}  // namespace fuse
