// The compiler's pipeline: Graph -> Partition -> Schedules -> Kernels -> Source, and the Plan that ties them
// together. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <fuse/executable.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/guards.hpp"
#include "compile/pipeline/fault.hpp"
#include "ir/graph/ir_graph.hpp"
#include "ir/kernel/kernel.hpp"
#include "plan/plan.hpp"
#include "plan/source.hpp"
#include "plan/stream_plan.hpp"
#include "schedule/decisions/decisions.hpp"
#include "schedule/fusion/partition.hpp"
#include "schedule/mapping/schedule.hpp"
#include "schedule/versions/versions.hpp"
#include "target/target.hpp"

namespace fuse {

/// Every stage of one compilation, kept for explain, fusec and tests.
struct Compiled {
  std::vector<ir::Guard> guards{};  ///< what prepare checks about the dims
  ir::Graph graph;                  ///< after the passes
  schedule::Partition partition;
  /// The schedules of the kernel segments, in segment order; of a segment with versions, those of each.
  std::vector<schedule::Schedule> schedules;
  std::vector<std::uint32_t> segment_of;       ///< for each schedule, its segment
  std::vector<schedule::Versions> versions{};  ///< by table of the plan
  /// For each schedule, its launches run this kernel and those after it. Equal segments share theirs.
  std::vector<std::uint32_t> first_kernel;
  std::vector<kernel::Kernel> kernels;  ///< as Source::kernels
  codegen::Source source;
  schedule::Plan plan;
  schedule::StreamChoices streams{};  ///< for prepare, which knows the sizes
  /// As PipelineOptions::decisions have it; it takes precedence over `streams`.
  std::optional<schedule::RunDecision> run{};
  /// What was asked and answered, and the options (compile/pipeline/plan_options.hpp), where
  /// PipelineOptions::record wants it or decisions were given.
  std::vector<schedule::Answer> answers{};
  std::string plan_options{};
  std::size_t recorded_segments = 0;  ///< kernel segments that run as PipelineOptions::decisions say
  std::size_t unfit_decisions = 0;    ///< entries of PipelineOptions::decisions that fit nothing

  // Made once, in the .cpp: in every file that includes this they take longer than the rest of it.
  Compiled();
  Compiled(const Compiled&);
  Compiled(Compiled&&) noexcept;
  Compiled& operator=(const Compiled&);
  Compiled& operator=(Compiled&&) noexcept;
  ~Compiled();
};

struct PipelineOptions {
  bool relaxed_rounding = false;  ///< CompileOptions::relaxed_rounding
  bool verify = true;             ///< check every stage's spec at its boundary
  std::optional<Fault> fault{};   ///< what it gets wrong, for tests
  /// The first so many of graph_pass_names and of kernel_pass_names are run; -1: all. To find out which is to
  /// blame: with fewer, a graph may have ops that nothing can schedule.
  int graph_passes = -1, kernel_passes = -1;
  bool merge_gemms = true;  ///< whether the pass of this name runs
  schedule::VersionOptions versions{};
  /// Of the whole graph, each with a cut of its own (compile/builds); run_pipeline makes one.
  schedule::VersionOptions builds{.price = 0.3};
  schedule::PartitionOptions partition{};
  schedule::Chooser chooser{};      ///< for all kernels; empty: the one that `partition` asks for
  schedule::DesignStore designs{};  ///< what was searched before, where `partition` asks for a search
  /// Overrides the choices of each kernel segment once the partition is made, in segment order. It need not
  /// be pure.
  schedule::Chooser choose{};
  /// Answers questions in place of the costs. It need not be pure.
  ir::Decide answer{};
  /// What is taken, where it has an entry, instead of what the chooser and the costs say.
  std::optional<schedule::Decisions> decisions{};
  /// Answers questions whatever the decisions say; none for those that it leaves to them. It need not be
  /// pure.
  ir::Insist insist{};
  /// Says how the steps of the plan are run, whatever the decisions say. It need not be pure.
  std::function<schedule::RunDecision(const schedule::Plan&)> place{};
  bool skip_unfit_decisions = false;  ///< entries that fit nothing are counted, and no error
  std::string gemm_library{};         ///< whose algorithms the decisions name; empty: it is not known
  bool record = false;  ///< keep all answers, for decisions_of: they say one way to run for all dims
  schedule::StreamChoices streams{};
  int threads = 0;  ///< threads that schedule and lower segments; 0: one per core. The result is the same
  /// Called after each stage with its name and the seconds it took: "dead_code", "partition", "schedule", ...
  std::function<void(std::string_view stage, double seconds)> timed{};
};

/// What an application's options ask of the pipeline. Throws invalid_argument.
PipelineOptions pipeline_options(const CompileOptions&);

/// The passes, in their order; one may stand there twice.
std::vector<std::string_view> graph_pass_names();
std::vector<std::string_view> kernel_pass_names();

/// All that was decided, to be compiled with again. The compilation kept its answers
/// (PipelineOptions::record).
schedule::Decisions decisions_of(const Compiled&, const Target&);

/// "decisions: 3 of 4 segments run as recorded\n"; and how many entries fit nothing. Empty without decisions.
std::string decisions_line(const Compiled&);

/// "  version 0: N <= 4096; 45% of the cells": when each version of a table is taken.
std::string versions_text(const Compiled&, std::size_t table);

/// The number of the first schedule of a segment that is a kernel.
std::size_t first_schedule(const Compiled&, std::size_t segment);

/// How many steps of the plan run each kernel.
std::vector<std::size_t> kernel_uses(const Compiled&);

/// What the first half of the pipeline makes: the graph after the passes, and which ops share a kernel.
struct Outline {
  ir::Graph graph;
  schedule::Partition partition;
};

/// The first half of run_pipeline, of options without decisions.
Outline outline_of(const ir::Graph&, const Target&, const PipelineOptions&);

/// Runs the pipeline. User errors pass through; a failed check is an internal Error.
Compiled run_pipeline(const ir::Graph&, const Target&, const PipelineOptions& = {});

}  // namespace fuse
