// Explorer: runs a graph, and measures other configurations meanwhile (docs/exploration.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <fuse/device.hpp>
#include <fuse/error.hpp>
#include <fuse/executable.hpp>
#include <fuse/export.hpp>
#include <fuse/graph.hpp>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fuse {
inline namespace v0 {

/// What an exploration may change of the results.
enum class Bits : std::uint8_t {
  keep,  ///< nothing: only what leaves the order of every addition as it is
  any,   ///< the last bits: also loops that add in another order, other GEMMs and their algorithms
};

/// What an exploration tries, and how long it may take. Explorer throws invalid_argument for a value that is
/// out of range.
struct ExploreOptions {
  Bits bits = Bits::keep;  ///< what may change of the results
  int max_options = 8;     ///< tried of each decision, the default included; at least 1
  int max_cuts = 4;        ///< ways to cut the graph that are tried, the default included; at least 1
  /// Groups of GEMMs that are merged each in a way of its own, with Bits::any: those with the most work. 0:
  /// none.
  int max_groups = 4;
  /// Epochs (docs/exploration.md) of each cut whose kernels and GEMMs are spread over streams in several
  /// ways: those that take longest by the cost model; epochs that are alike count once. Not on a CPU. 0:
  /// none.
  int max_epochs = 4;
  /// Rounds that count for each variable, from 5 to 10,000; 0: as many as the noise of the first runs asks
  /// for, at most 200. Where times repeat exactly, as on a virtual clock without noise, there is one. Where
  /// runs or time are short there may be fewer, of 5 at least.
  int samples = 0;
  /// The gain that the rounds are enough to show, as a share of the time that is compared: it sets their
  /// number. At least 1e-4. A smaller gain can still win, if it is clear.
  double least_gain = 0.02;
  /// At least 1. Where more runs would be needed, fewer options are tried, then no epochs, no groups, fewer
  /// cuts, fewer rounds.
  std::int64_t max_runs = 100'000;
  /// Seconds from the construction in which it should end. Less is tried, as for `max_runs`, where an
  /// estimate from the first runs says that it would take longer. When they are over all the same, what was
  /// found so far is compared with the default, which takes some more runs, and that is the end. 0: no limit.
  double max_seconds = 0;
  /// On a GPU, a configuration runs on a checked emulated device first, where the graph has at most so many
  /// operations: elements that ops compute, multiplications and additions of GEMMs. 0: never.
  double max_emulated_operations = 1e7;
  int max_executables = 16;  ///< kept besides the default, each with a workspace; at least 2
};

/// What an exploration has found, as a text: a file of decisions (docs/decisions.md), which says with what it
/// was measured, with the times of kernels in the comments. Any machine compiles it to the same plan, for the
/// device that it is for. Loops of kernels in whose runs the device failed are in it, too: an exploration
/// that begins with it (CompileOptions::decisions) does not try them again.
class FUSE_COMPILER_API Tuning {
 public:
  /// A tuning without a text, which decides nothing.
  Tuning() = default;
  /// Throws parse for a text that is no tuning; the message names the line.
  explicit Tuning(std::string text);
  /// Reads a tuning from a file. Throws io, parse.
  static Tuning load(const std::string& path);
  /// Writes the text to a file, which is there whole or not at all. Throws io.
  void save(const std::string& path) const;
  /// Makes one tuning from the tunings that several machines or ranks found for one graph and equal devices,
  /// so that all decide alike: it takes what most of them have (docs/exploration.md). Their order changes
  /// nothing, and the graph is not checked. Throws invalid_argument for none, and for devices that differ.
  static Tuning merge(std::span<const Tuning> found);
  /// What CompileOptions::decisions takes.
  const std::string& text() const { return text_; }
  /// True when the texts are equal.
  bool operator==(const Tuning&) const = default;

 private:
  std::string text_;
};

/// How far an exploration has come.
struct ExploreProgress {
  std::int64_t runs = 0;       ///< so far, of all kinds
  std::int64_t explored = 0;   ///< of those, the measured ones, without the first, which show the noise
  std::int64_t announced = 0;  ///< how many of these there will be in all; 0: not known yet
  std::int64_t built = 0;      ///< other configurations that were compiled and passed the check
  double last_seconds = 0;  ///< of the last run that was measured, by the device's clock; 0: there was none
  bool last_is_default = true;  ///< whether that was a run of the default
  double default_seconds = 0;   ///< 0 until it has come to its end; then the median of a run of the default
  double tuned_seconds = 0;     ///< the same of the winner, which runs from now on
  std::int64_t emulated = 0;    ///< on a GPU: configurations that ran on the emulated device first
  std::string not_emulated{};   ///< on a GPU: why others did not; empty: all did, or it is switched off
  bool cut_short = false;       ///< max_seconds were over: not all was tried that was announced
  bool done = false;            ///< as Explorer::done
  std::string stopped{};        ///< why it ended before its end; empty: it did not
  /// Options that were dropped, each with its reason: they failed to compile or to run, or gave another
  /// result. Those that are slow are not here.
  /// "kernel 01cc6a045b695722: {nest = r:grid c:lane32}: output 'y' has other bits than by default".
  std::vector<std::string> dropped{};
};

/// Runs a graph, and measures other configurations in some of the runs (Astra, 4): the loops of kernels, how
/// the graph is cut, the number of streams and what runs on which, a CUDA graph; with Bits::any also the
/// algorithms of GEMMs, and how they are merged. Every run returns right results: a configuration is compiled
/// on a thread of its own while runs go on with the default; it runs there on a copy of one run's inputs; and
/// only where its results have the bits of the default's, or with Bits::any are as exact, does it run on the
/// caller's buffers. The last of the announced runs compare the best configuration with the default end to
/// end, and the default wins ties.
///
/// Threads may share it, each with a stream. One run is measured at a time, and the others run the default.
class FUSE_COMPILER_API Explorer {
 public:
  /// Compiles the default. `dims` are those of all runs. Throws what compile and prepare throw, and
  /// invalid_argument for options out of range and for the reference device, which has no kernels.
  Explorer(const Graph& graph, const Device& device, const DimValues& dims = {},
           const ExploreOptions& explore = {}, const CompileOptions& compile = {});
  /// Moves the exploration. The other one may then only be destroyed or assigned to.
  ///@{
  Explorer(Explorer&&) noexcept;
  Explorer& operator=(Explorer&&) noexcept;
  ///@}
  ~Explorer();

  const std::vector<Slot>& slots() const;  ///< the same for every configuration; see Executable::slots
  /// The executable of the default.
  const Executable& default_executable() const;
  /// The default, for these dims: shapes and bytes of slots.
  const Prepared& prepared() const;

  /// Like Prepared::run, but for the workspace and packed memory, which are the explorer's own. The second
  /// run, whose inputs are copied, waits for its stream, and so does a run that packs parameters; others wait
  /// for nothing. Every slot needs its buffer.
  Status run(Stream& stream, std::span<const BufferView> buffers) noexcept;
  /// Call it after a parameter's buffer was written: what is packed of parameters is packed again by the next
  /// run. Without it runs may read old weights. Call it only when no run is in flight.
  void parameters_changed();

  /// How far the exploration has come. It waits where another thread is in a run that is measured.
  ExploreProgress progress() const;
  /// Whether the exploration is over, also where it was stopped: then progress().stopped says why.
  bool done() const;
  /// What was found, when it is done; before, and where it was stopped, the default's decisions. Where the
  /// device failed: the decisions that were given, and what the next exploration should avoid.
  Tuning tuning() const;
  /// Waits until the configuration that the next run needs is compiled. For tools and tests, which would
  /// rather wait than run the default.
  void wait_for_compiler();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Explorers of one graph for several sets of dims (Astra, 5.5): what is fastest for sentences of 13 words
/// need not be for 83. Data of other dims is put into a larger bucket, and padded by the caller. Threads may
/// share it.
class FUSE_COMPILER_API ExplorerBuckets {
 public:
  /// Each bucket has a value for every dim of the graph. Nothing is compiled before a bucket is used. Throws
  /// invalid_argument for no buckets, two equal ones, and a dim without a value; unknown_name for a dim that
  /// the graph does not have, and invalid_extent for a value outside the declared range.
  ExplorerBuckets(const Graph& graph, const Device& device, std::vector<DimValues> buckets,
                  const ExploreOptions& explore = {}, const CompileOptions& compile = {});
  /// Moves the buckets. The other one may then only be destroyed or assigned to.
  ///@{
  ExplorerBuckets(ExplorerBuckets&&) noexcept;
  ExplorerBuckets& operator=(ExplorerBuckets&&) noexcept;
  ///@}
  ~ExplorerBuckets();

  /// The number of buckets.
  std::size_t size() const;
  /// The dims of a bucket. Throws invalid_argument where there is no such bucket.
  const DimValues& dims(std::size_t bucket) const;
  /// The bucket with the fewest operations that has room for these dims: each of its dims is at
  /// least as large. Throws invalid_argument where there is none, and what the constructor
  /// throws for these dims.
  std::size_t bucket_for(const DimValues& dims) const;
  /// The explorer of a bucket, made when it is asked for the first time: that compiles. Throws what Explorer
  /// throws, and invalid_argument where there is no such bucket.
  Explorer& explorer(std::size_t bucket);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v0
}  // namespace fuse
