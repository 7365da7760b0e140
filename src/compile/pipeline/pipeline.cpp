// SPDX-License-Identifier: Apache-2.0
#include "compile/pipeline/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <span>

#include "base/access.hpp"
#include "codegen_cpu/text/print_cpu.hpp"
#include "codegen_cuda/lower/lower.hpp"
#include "codegen_cuda/text/custom_text.hpp"
#include "codegen_cuda/text/identifiers.hpp"
#include "codegen_cuda/text/print_cuda.hpp"
#include "compile/pipeline/experiments.hpp"
#include "compile/pipeline/graph_passes.hpp"
#include "compile/pipeline/make_plan.hpp"
#include "compile/pipeline/memory_bounds.hpp"
#include "compile/pipeline/plan_options.hpp"
#include "compile/pipeline/stopwatch.hpp"
#include "ir/graph/verify.hpp"
#include "ir/kernel/passes/divide_by_invariants.hpp"
#include "ir/kernel/passes/elide_conditions.hpp"
#include "ir/kernel/passes/hoist_invariants.hpp"
#include "ir/kernel/passes/name_divisions.hpp"
#include "ir/kernel/passes/pack_pairs.hpp"
#include "ir/kernel/passes/prefetch_next_rows.hpp"
#include "ir/kernel/passes/share_scratch.hpp"
#include "ir/kernel/passes/split_at_row_ends.hpp"
#include "ir/kernel/passes/transpose_tiles.hpp"
#include "ir/kernel/passes/vectorise.hpp"
#include "ir/kernel/passes/vectorise_random.hpp"
#include "os/environment.hpp"
#include "os/parallel.hpp"
#include "passes/dead_code.hpp"
#include "schedule/choosers/chooser.hpp"
#include "schedule/choosers/segment_cost.hpp"
#include "schedule/decisions/decision_entries.hpp"
#include "schedule/decisions/gemm_decisions.hpp"
#include "schedule/fusion/cut.hpp"
#include "schedule/mapping/slice_starts.hpp"
#include "schedule/search/max_inputs.hpp"
#include "schedule/segments/argument_limit.hpp"
#include "schedule/segments/canonical.hpp"
#include "schedule/segments/staged.hpp"
#include "schedule/versions/axes.hpp"
#include "schedule/versions/versions.hpp"

namespace fuse {
namespace {

/// Accesses and pairs are of a GPU's threads; a CPU has vectors of lanes.
enum class Place : std::uint8_t { anywhere, gpu, cpu };

struct KernelPass {
  const char* name;
  kernel::Kernel (*run)(kernel::Kernel);
  Place place = Place::anywhere;
};

constexpr KernelPass kernel_passes[] = {
    {"transpose_tiles", kernel::transpose_tiles, Place::cpu},
    {"elide_conditions", kernel::elide_conditions},
    {"hoist_invariants", kernel::hoist_invariants},
    {"vectorise", kernel::vectorise, Place::gpu},
    {"vectorise_random", kernel::vectorise_random, Place::gpu},
    {"divide_by_invariants", kernel::divide_by_invariants, Place::gpu},
    {"pack_pairs", kernel::pack_pairs, Place::gpu},
    {"split_at_row_ends", kernel::split_at_row_ends, Place::cpu},
    {"prefetch_next_rows", kernel::prefetch_next_rows, Place::cpu},
    {"divide_lanes_by_invariants", kernel::divide_lanes_by_invariants, Place::cpu},
    {"share_scratch", kernel::share_scratch},
    {"name_divisions", kernel::name_divisions},
};

/// "ln_layer_norm_0": the graph, the scope of what the kernel makes, and its number.
std::string kernel_name(const ir::Graph& graph, const schedule::Segment& segment, std::size_t number) {
  const ir::Node& root = graph[segment.root];
  const std::string scope = graph.scope_path(root.scope);
  const std::string what = scope.empty() ? std::string(to_string(root.op)) : scope;
  constexpr std::size_t longest = 120;
  std::string name = codegen::c_identifier(graph.name + '_' + what);
  if (name.size() > longest) name.resize(longest);
  return fmt::format("{}{}{}", name, name.back() == '_' ? "" : "_", number);
}

/// One op alone may have more than a launch takes: a user's kernel, a concat of many extents.
void check_arguments(const ir::Graph& graph, ir::NodeId root, std::size_t arguments, const Target& target) {
  const std::size_t bytes = schedule::bytes_an_argument * arguments;
  if (bytes <= target.argument_bytes) return;
  const ir::Node& node = graph[root];
  ErrorInfo error{.code = ErrorCode::unsupported,
                  .message = fmt::format("its kernel needs {} bytes of arguments, a launch takes {}", bytes,
                                         target.argument_bytes),
                  .op = std::string(to_string(node.op)),
                  .location = graph.location(node),
                  .hint = "fewer operands, or fewer symbols in their dims"};
  for (std::size_t i = 0; i < node.operands.size() && i < 3; ++i) {
    error.shapes.push_back(to_string(graph[node.operands[i]].type));
  }
  if (node.operands.size() > 3) error.shapes.emplace_back("...");
  throw Error(std::move(error));
}

/// What a unit is scheduled and lowered by: the graph as it is, or as it is where a version is taken.
struct VersionFacts {
  const ir::Graph* graph = nullptr;
  analysis::Facts facts{};
  ir::Graph own{};  ///< `graph`, where it is no other's
};

/// Segments of one family that are run with the same choices, under the same facts: one schedule, one set of
/// kernels.
struct UniqueKernel {
  std::vector<std::uint32_t> segments{};  ///< in order
  schedule::KernelChoices choices{};
  const VersionFacts* facts = nullptr;
  schedule::Schedule schedule{};
  std::uint32_t first_kernel = 0;
  std::vector<codegen::LoweredKernel> lowered{};
  std::uint32_t first() const { return segments.front(); }  ///< which gives the kernels their names
};

/// A way in which a segment runs: for all dims, or one of its versions.
struct Way {
  std::uint32_t segment = 0;
  std::uint32_t unit = 0;
  std::optional<schedule::StepVersion> version{};
};

/// The most arguments of a segment that may share a kernel whose slices begin at arguments: half of what a
/// launch takes.
constexpr std::size_t most_shared_arguments = 256;

/// Schedules and lowers the segments of a graph, equal ones once, different ones in parallel.
class SegmentCompiler {
 public:
  SegmentCompiler(Compiled& result, const analysis::Facts& facts, const schedule::Chooser& chooser,
                  const Target& target, const PipelineOptions& options, Stopwatch& watch)
      : result_(result),
        facts_of_all_{&result.graph, facts},
        chooser_(chooser),
        target_(target),
        options_(options),
        watch_(watch) {}

  /// The kernels of each segment.
  std::vector<std::vector<schedule::SegmentKernels>> run() {
    equal_ = schedule::equal_segments(result_.graph, result_.partition.segments, result_.partition.storage);
    if (options_.decisions) {
      const schedule::DecisionOptions how{.skip_unfit = options_.skip_unfit_decisions,
                                          .grid_barriers = options_.partition.grid_barriers};
      recorded_.emplace(*options_.decisions, how, result_.graph, result_.partition, equal_, target_);
      result_.recorded_segments = recorded_->segments();
      result_.unfit_decisions += recorded_->unfit();
    }
    watch_.lap("equal_segments");
    find_versions();
    make_units();
    parallel_for(options_.threads, units_.size(), [&](std::size_t i) { schedule(units_[i]); });
    collect_schedules();
    watch_.lap("schedule");
    lower();
    watch_.lap("lower");
    return kernels();
  }

 private:
  static constexpr std::uint32_t none = schedule::EqualSegments::none;

  const schedule::Segment& segment(std::uint32_t index) const { return result_.partition.segments[index]; }

  /// The versions of each form, and the graphs that they are made from: one for all versions under equal
  /// facts.
  void find_versions() {
    versions_of_form_.resize(equal_.first.size());
    // What others decide is one way to run for all dims, unless they say which versions there are.
    if (options_.versions.most < 2 || options_.choose || options_.decisions) return;
    const std::vector<Dim> sizes = schedule::value_sizes(result_.graph);
    parallel_for(options_.threads, equal_.first.size(), [&](std::size_t form) {
      versions_of_form_[form] = schedule::versions_of(result_.graph, segment(equal_.first[form]), sizes,
                                                      chooser_, target_, options_.versions);
    });
    for (std::size_t form = 0; form < versions_of_form_.size(); ++form) {
      if (versions_of_form_[form].each.size() < 2 || are_possible(versions_of_form_[form])) continue;
      versions_of_form_[form] = schedule::versions_of(result_.graph, segment(equal_.first[form]), sizes,
                                                      chooser_, target_, {.most = 1});
    }
    watch_.lap("versions");
  }

  /// False where no dims can take a version, as all of the graph says: its segment alone may not. Facts
  /// contradict each other, or another value would have too many elements.
  bool are_possible(const schedule::Versions& versions) {
    try {
      for (const schedule::Version& version : versions.each) facts_of(version);
      return true;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::user) throw;
      return false;
    }
  }

  const VersionFacts* facts_of(const schedule::Version& version) {
    std::unique_ptr<VersionFacts>& known = facts_of_versions_[schedule::facts_text(version)];
    if (!known) {
      auto made = std::make_unique<VersionFacts>();
      made->own = schedule::graph_of(result_.graph, version);
      made->graph = &made->own;
      made->facts = analysis::facts_of(made->own);
      known = std::move(made);
    }
    return known.get();
  }

  /// A family is one unit, or one for each of the different choices that were made for its segments. `choose`
  /// may draw from a state of its own, so it is asked in segment order.
  void make_units() {
    std::vector<std::vector<std::uint32_t>> of_family(equal_.first.size());
    for (std::uint32_t i = 0; i < result_.partition.segments.size(); ++i) {
      const std::uint32_t form = equal_.form_of[i];
      if (form == none) continue;
      // Each start may be an argument, of which a launch takes so many.
      const std::size_t arguments = equal_.forms[i].starts.size() + segment(i).inputs.size() +
                                    segment(i).results.size() + result_.graph.symbols.size();
      const bool shares = arguments <= most_shared_arguments;
      std::vector<std::uint32_t>& known = of_family[shares ? equal_.family_of[form] : form];
      const schedule::Versions& versions = versions_for(i);
      const schedule::KernelChoices choices = choose(i);
      if (versions.each.size() < 2) {
        ways_.push_back({i, unit_for(i, choices, &facts_of_all_, known)});
        continue;
      }
      const auto table = static_cast<std::uint32_t>(result_.versions.size());
      for (std::uint32_t v = 0; v < versions.each.size(); ++v) {
        const schedule::Version& version = versions.each[v];
        ways_.push_back({i, unit_for(i, version.chosen.choices, facts_of(version), known),
                         schedule::StepVersion{table, v}});
      }
      result_.versions.push_back(versions);
    }
  }

  const schedule::Versions& versions_for(std::uint32_t index) const {
    const bool takes_recorded = recorded_ && options_.versions.most > 1;
    const schedule::Versions* const recorded = takes_recorded ? recorded_->versions_of(index) : nullptr;
    return recorded ? *recorded : versions_of_form_[equal_.form_of[index]];
  }

  std::uint32_t unit_for(std::uint32_t index, const schedule::KernelChoices& choices,
                         const VersionFacts* facts, std::vector<std::uint32_t>& known) {
    const auto found = std::find_if(known.begin(), known.end(), [&](std::uint32_t unit) {
      return units_[unit].choices == choices && units_[unit].facts == facts;
    });
    const std::uint32_t unit = found == known.end() ? static_cast<std::uint32_t>(units_.size()) : *found;
    if (found == known.end()) {
      known.push_back(unit);
      units_.push_back({.choices = choices, .facts = facts});
    }
    units_[unit].segments.push_back(index);
    return unit;
  }

  schedule::KernelChoices choose(std::uint32_t index) {
    schedule::Segment& segment = result_.partition.segments[index];
    const std::uint32_t first = equal_.first[equal_.form_of[index]];
    const schedule::KernelChoices* const recorded = recorded_ ? recorded_->of(index) : nullptr;
    if (const schedule::Versions& versions = versions_for(index); recorded_ && versions.each.size() > 1) {
      const schedule::KernelChoices& first = versions.each[0].chosen.choices;
      const ir::Graph& own = *facts_of(versions.each[0])->graph;
      segment.chosen = {first, schedule::segment_seconds(own, segment, first, target_)};
    } else if (recorded) {
      segment.chosen = {*recorded, schedule::segment_seconds(result_.graph, segment, *recorded, target_)};
    } else if (options_.choose) {
      segment.chosen = schedule::chosen_by(options_.choose, result_.graph, segment, target_);
    } else if (!segment.chosen && first != index) {
      segment.chosen = this->segment(first).chosen;
    } else if (!segment.chosen) {
      segment.chosen = schedule::chosen_by(chooser_, result_.graph, segment, target_);
    }
    if (segment.chosen) return segment.chosen->choices;
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::internal,
                 .message = fmt::format("the chooser has no choices for the segment of {}",
                                        result_.graph.value_name(segment.root))});
  }

  void schedule(UniqueKernel& unit) const {
    const ir::Graph& graph = *unit.facts->graph;
    unit.schedule =
        schedule::make_schedule(graph, segment(unit.first()), unit.choices, target_, unit.facts->facts);
    std::vector<const schedule::CanonicalSegment*> forms;
    for (const std::uint32_t index : unit.segments) forms.push_back(&equal_.forms[index]);
    unit.schedule.starts = schedule::starts_that_differ(graph, forms);
    if (options_.verify) schedule::verify(graph, unit.schedule, target_);
  }

  void collect_schedules() {
    std::uint32_t kernels = 0;
    for (UniqueKernel& unit : units_) {
      unit.first_kernel = kernels;
      kernels += static_cast<std::uint32_t>(unit.schedule.kernels.size());
    }
    for (const Way& way : ways_) {
      result_.schedules.push_back(schedule_of(way));
      result_.first_kernel.push_back(units_[way.unit].first_kernel);
      result_.segment_of.push_back(way.segment);
    }
  }

  /// The schedule of the unit, with the values of the way's own segment.
  schedule::Schedule schedule_of(const Way& way) const {
    const UniqueKernel& unit = units_[way.unit];
    const ir::Graph& graph = *unit.facts->graph;
    schedule::Schedule schedule = unit.schedule;
    schedule.segment = segment(way.segment);
    for (std::size_t k = 0; k < schedule.phases.size(); ++k) {
      schedule::PhaseSchedule& phase = schedule.phases[k];
      phase.computes = schedule::staged(graph, segment(way.segment).phases[k], phase.choices);
      schedule.segment.phases[k] = phase.computes;
      phase.sections = schedule::sections_of(graph, phase.computes, phase.choices);
      for (schedule::CachedValue& cached : phase.cached) cached.node = counterpart(way, cached.node);
      for (ir::NodeId& id : phase.ahead) id = counterpart(way, id);
      for (schedule::RowInvariant& each : phase.invariants)
        each = {counterpart(way, each.input), counterpart(way, each.broadcast)};
    }
    for (schedule::SliceStart& start : schedule.starts) start.node = counterpart(way, start.node);
    return schedule;
  }

  /// What a node of the unit's first segment is in the segment of the way.
  ir::NodeId counterpart(const Way& way, ir::NodeId node) const {
    return schedule::counterpart(equal_.forms[units_[way.unit].first()], equal_.forms[way.segment], node);
  }

  /// Names of all launches, numbered through; a kernel has the name of the first that runs it.
  std::vector<std::string> launch_names() const {
    std::vector<std::string> names;
    for (const schedule::Schedule& schedule : result_.schedules) {
      for (std::size_t i = 0; i < schedule.kernels.size(); ++i) {
        names.push_back(kernel_name(result_.graph, schedule.segment, names.size()));
      }
    }
    return names;
  }

  void lower() {
    names_ = launch_names();
    std::vector<std::optional<std::size_t>> first_launch(units_.size());
    std::size_t launch = 0;
    for (std::size_t i = 0; i < ways_.size(); ++i) {
      std::optional<std::size_t>& first = first_launch[ways_[i].unit];
      if (!first) first = launch;
      launch += result_.schedules[i].kernels.size();
    }
    parallel_for(options_.threads, units_.size(), [&](std::size_t i) {
      for (std::size_t k = 0; k < units_[i].schedule.kernels.size(); ++k) {
        units_[i].lowered.push_back(lower(units_[i], k, names_[first_launch[i].value() + k]));
      }
    });
    for (UniqueKernel& unit : units_) {
      for (codegen::LoweredKernel& lowered : unit.lowered)
        result_.kernels.push_back(std::move(lowered.kernel));
    }
  }

  codegen::LoweredKernel lower(const UniqueKernel& unit, std::size_t index, const std::string& name) const {
    codegen::LoweredKernel lowered = codegen::lower(*unit.facts->graph, unit.schedule, index, name);
    check_arguments(result_.graph, segment(unit.first()).root,
                    lowered.bindings.size() + lowered.extents.size(), target_);
    if (unit.segments.size() > 1)
      lowered.kernel.summary += fmt::format("; shared by {} segments", unit.segments.size());
    if (options_.verify) kernel::verify(lowered.kernel, target_.shared_per_block);
    for (const KernelPass& pass : first_of(kernel_passes, options_.kernel_passes)) {
      if (pass.place != Place::anywhere && is_cpu(target_) != (pass.place == Place::cpu)) continue;
      lowered.kernel = pass.run(std::move(lowered.kernel));
      if (options_.verify) kernel::verify(lowered.kernel, target_.shared_per_block);
    }
    return lowered;
  }

  /// Each segment gives the kernels of its units its own buffers.
  std::vector<std::vector<schedule::SegmentKernels>> kernels() const {
    std::vector<std::vector<schedule::SegmentKernels>> result(result_.partition.segments.size());
    std::size_t launch = 0;
    for (std::size_t i = 0; i < ways_.size(); ++i) {
      schedule::SegmentKernels& made = result[ways_[i].segment].emplace_back();
      made.version = ways_[i].version;
      made.schedule = &result_.schedules[i];
      for (std::size_t k = 0; k < units_[ways_[i].unit].lowered.size(); ++k)
        made.launches.push_back(planned(ways_[i], k, names_[launch++]));
    }
    return result;
  }

  schedule::PlannedLaunch planned(const Way& way, std::size_t k, const std::string& name) const {
    using Kind = schedule::BufferSource::Kind;
    const UniqueKernel& unit = units_[way.unit];
    schedule::PlannedLaunch launch{name, unit.first_kernel + static_cast<std::uint32_t>(k), {}, {}};
    for (const Dim& extent : unit.lowered[k].extents) {
      const auto& starts = unit.schedule.starts;
      const auto start = std::find_if(starts.begin(), starts.end(),
                                      [&](const auto& each) { return each.argument == extent; });
      launch.extents.push_back(
          start == starts.end()
              ? extent
              : schedule::argument_value(result_.graph, *start, counterpart(way, start->node)));
    }
    for (const codegen::Binding& binding : unit.lowered[k].bindings) {
      if (const auto* scratch = std::get_if<codegen::Scratch>(&binding)) {
        launch.buffers.push_back({Kind::scratch, 0, scratch->component});
      } else if (std::holds_alternative<codegen::Counter>(binding)) {
        launch.buffers.push_back({Kind::counter, 0, 0});
      } else {
        launch.buffers.push_back({Kind::node, counterpart(way, std::get<ir::NodeId>(binding)), 0});
      }
    }
    return launch;
  }

  Compiled& result_;
  const VersionFacts facts_of_all_;
  const schedule::Chooser& chooser_;
  std::optional<schedule::RecordedChoices> recorded_{};
  const Target& target_;
  const PipelineOptions& options_;
  Stopwatch& watch_;
  schedule::EqualSegments equal_;
  std::vector<schedule::Versions> versions_of_form_;
  std::map<std::string, std::unique_ptr<VersionFacts>> facts_of_versions_;  // by facts_text
  std::vector<UniqueKernel> units_;
  std::vector<Way> ways_;           // of the segments that are kernels, in order
  std::vector<std::string> names_;  // the names of all launches
};

/// Dali's F_max (2.2), where designs are searched: the most inputs of a kernel with which all kernels take
/// least by the cost model.
int searched_max_inputs(const ir::Graph& graph, const PipelineOptions& options, const Target& target,
                        const analysis::Facts& facts, const schedule::Chooser& chooser) {
  const ir::Decide answer = [&](const ir::Asked& asked) {
    const bool by_cost = options.answer ? options.answer(asked) : asked.by_cost;
    return options.insist ? options.insist(asked).value_or(by_cost) : by_cost;
  };
  const auto predicted = [&](int max_inputs) {
    schedule::PartitionOptions fewer = options.partition;
    fewer.groups.max_inputs = max_inputs;
    const schedule::Partition partition = schedule::partition(graph, fewer, target, facts, chooser, answer);
    double seconds = 0;
    for (const schedule::Segment& segment : partition.segments)
      if (segment.chosen) seconds += segment.chosen->seconds;
    return seconds;
  };
  return schedule::best_max_inputs(options.partition.groups.max_inputs, predicted).max_inputs;
}

}  // namespace

PipelineOptions pipeline_options(const CompileOptions& options) {
  const auto check = [](const char* name, int value, int least, int most) {
    if (value >= least && value <= most) return;
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("compile: {} is {}", name, value),
                 .hint = fmt::format("{} to {}", least, most)});
  };
  const Experiments& experiments = experiments_of(options);
  check("layers", experiments.layers, 1, 3);
  check("max_inputs", options.max_inputs, 1, 400);
  check("versions", options.versions, 1, 16);
  check("builds", options.builds, 1, 8);
  check("streams", options.streams, 1, schedule::most_streams);
  PipelineOptions result{.relaxed_rounding = options.relaxed_rounding,
                         .merge_gemms = options.merge_gemms,
                         .versions = {.most = options.versions},
                         .builds = {.most = options.builds, .price = 0.3},
                         .skip_unfit_decisions = options.skip_unfit_decisions,
                         .streams = {.max_streams = options.streams},
                         .threads = options.threads};
  if (const std::string text = fault_text(options); !text.empty()) {
    result.fault = parse_fault(text);
    const auto* const wrong = result.fault ? std::get_if<ir::WrongRewrite>(&*result.fault) : nullptr;
    const std::vector<std::string_view> passes = graph_pass_names();
    const bool unknown = wrong && std::find(passes.begin(), passes.end(), wrong->pass) == passes.end();
    if (!result.fault || unknown) {
      throw Error({.code = ErrorCode::invalid_argument,
                   .message = fmt::format("there is no fault '{}'", text),
                   .hint = "FUSE_FAULT takes barrier.N, extent.N+1, extent.N-1, overlap.N, "
                           "fence.N, or rewrite.PASS.N"});
    }
  }
  if (!options.decisions.empty()) result.decisions = schedule::parse_decisions(options.decisions);
  schedule::PartitionOptions& partition = result.partition;
  partition.groups.layers = static_cast<std::uint8_t>((1 << experiments.layers) - 1);
  partition.groups.max_inputs = options.max_inputs;
  partition.stitch = experiments.stitch == Stitch::full;
  partition.grid_barriers = options.grid_barriers;
  partition.search = options.search;
  const bool paper = experiments.schemes == Schemes::astitch;
  if (paper) partition.schemes = schedule::SchemeRules::astitch;
  using Cooperative = schedule::PartitionOptions::Cooperative;
  if (experiments.stitch == Stitch::mapping) {
    partition.cooperative = Cooperative::never;
  } else if (experiments.stitch == Stitch::no_merge || paper) {
    partition.cooperative = Cooperative::always;
  }
  switch (experiments.cut) {
    case Cut::fuse:
      break;
    case Cut::apollo:
      partition.groups.rules = schedule::RuleSet::apollo;
      break;
    case Cut::xla:
      partition.baseline = schedule::Baseline::xla;
      break;
    case Cut::tvm:
      partition.baseline = schedule::Baseline::tvm;
      break;
    case Cut::one_op:
      partition.baseline = schedule::Baseline::one_op;
      break;
  }
  return result;
}

std::vector<std::string_view> kernel_pass_names() {
  std::vector<std::string_view> names;
  for (const KernelPass& pass : kernel_passes) names.emplace_back(pass.name);
  return names;
}

schedule::Decisions decisions_of(const Compiled& compiled, const Target& target) {
  if (compiled.plan_options.empty())
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::internal,
                 .message = "decisions of a compilation that kept no answers"});
  schedule::VersionsOfSegments versions;  // tables are numbered by their segments
  for (std::size_t i = 1, table = 0; i < compiled.segment_of.size(); ++i) {
    const std::uint32_t segment = compiled.segment_of[i];
    if (segment == compiled.segment_of[i - 1] && !versions.contains(segment))
      versions.emplace(segment, &compiled.versions[table++]);
  }
  schedule::Decisions result = schedule::decisions_of(
      compiled.graph, compiled.partition,
      schedule::equal_segments(compiled.graph, compiled.partition.segments, compiled.partition.storage),
      versions, target);
  result.options = schedule::PlanOptionsText{compiled.plan_options};
  result.answers = compiled.answers;
  result.run = compiled.run;
  return result;
}

std::string decisions_line(const Compiled& compiled) {
  if (compiled.recorded_segments == 0 && compiled.unfit_decisions == 0) return "";
  const std::set<std::uint32_t> segments(compiled.segment_of.begin(), compiled.segment_of.end());
  std::string text = fmt::format("decisions: {} of {} segments run as recorded", compiled.recorded_segments,
                                 segments.size());
  if (compiled.unfit_decisions > 0)
    text += fmt::format("; entries left out, since they do not fit: {}", compiled.unfit_decisions);
  return text + '\n';
}

std::string versions_text(const Compiled& compiled, std::size_t table) {
  std::string text;
  const std::vector<schedule::Version>& versions = compiled.versions[table].each;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    std::vector<std::string> conditions;
    for (const DimRelation& each : versions[i].conditions) conditions.push_back(each.to_string());
    text += fmt::format("  version {}: {}", i,
                        conditions.empty() ? "all others" : fmt::format("{}", fmt::join(conditions, ", ")));
    // Of recorded versions nobody knows it.
    if (versions[i].share > 0) text += fmt::format("; {:.0f}% of the cells", 100 * versions[i].share);
    text += '\n';
  }
  return text;
}

std::size_t first_schedule(const Compiled& compiled, std::size_t segment) {
  const auto found = std::lower_bound(compiled.segment_of.begin(), compiled.segment_of.end(), segment);
  return static_cast<std::size_t>(found - compiled.segment_of.begin());
}

std::vector<std::size_t> kernel_uses(const Compiled& compiled) {
  std::vector<std::size_t> uses(compiled.source.kernels.size());
  for (const std::vector<schedule::Step>* steps : {&compiled.plan.setup, &compiled.plan.steps}) {
    for (const schedule::Step& step : *steps) {
      if (const auto* work = std::get_if<schedule::KernelStep>(&step.work)) ++uses[work->kernel];
    }
  }
  return uses;
}

/// The texts of users' kernels are CUDA.
void refuse_custom_kernels(const Compiled& compiled, const Target& target) {
  if (!is_cpu(target)) return;
  for (const schedule::Segment& segment : compiled.partition.segments) {
    if (segment.kind != schedule::Segment::Kind::custom) continue;
    const ir::Node& node = compiled.graph[segment.root];
    throw Error(
        {.code = ErrorCode::unsupported,
         .message = fmt::format("the cpu device cannot run {}, whose text is CUDA",
                                ir::attr<ir::CustomAttr>(node).name),
         .op = "custom_call",
         .location = compiled.graph.locations[node.location],
         .hint = "build what it computes of the ops of the graph, or compile for the emulated device"});
  }
}

Outline outline_of(const ir::Graph& graph, const Target& target, const PipelineOptions& options) {
  Stopwatch watch(options);
  Outline outline{.graph = run_graph_passes(graph, options, {}, watch), .partition = {}};
  const schedule::Chooser chooser =
      options.chooser ? options.chooser : schedule::chooser_of(options.partition, options.designs);
  outline.partition = schedule::partition(outline.graph, options.partition, target,
                                          analysis::facts_of(outline.graph), chooser);
  watch.lap("outline");
  return outline;
}

Compiled run_pipeline(const ir::Graph& graph, const Target& target, const PipelineOptions& given) {
  // The dims of a build may not fit values that nobody reads, which the first pass removes.
  ir::verify(ir::dead_code(graph), ErrorKind::user);
  Compiled result;
  PipelineOptions options = given;
  if (is_cpu(target)) {  // blocks of a CPU wait for nobody, and have one warp
    options.partition.grid_barriers = false;
    options.partition.cooperative = schedule::PartitionOptions::Cooperative::never;
    options.partition.regional = false;
    options.versions.most = 1;  // the cost model tells too little apart there
  }
  if (options.decisions) {
    check_target(*options.decisions, target);
    if (const auto& told = options.decisions->options)
      read_plan_options(told->text, schedule::line_of_decisions(told->line), options);
  }
  const bool keeps = options.record || options.decisions;
  schedule::AnswerBook book(options.decisions ? options.decisions->answers : std::vector<schedule::Answer>());
  ir::Decide decide;
  if (keeps || options.answer || options.insist)
    decide = [&](ir::Asked asked) {
      if (options.answer) asked.by_cost = options.answer(asked);
      const std::optional<bool> insisted = options.insist ? options.insist(asked) : std::nullopt;
      return insisted ? book.give(asked, *insisted) : book(asked);
    };
  Stopwatch watch(options);
  result.guards = analysis::guards_of(graph);
  watch.lap("guards");
  result.graph = run_graph_passes(graph, options, decide, watch);
  const analysis::Facts facts = analysis::facts_of(result.graph);
  watch.lap("facts");
  schedule::Chooser chooser =
      options.chooser ? options.chooser : schedule::chooser_of(options.partition, options.designs);
  const std::vector<ir::NodeId> storage = schedule::storage_of(result.graph);
  if (options.decisions)
    chooser =
        schedule::recorded_first(result.graph, storage, *options.decisions,
                                 {.grid_barriers = options.partition.grid_barriers}, std::move(chooser));
  if (options.partition.search && !options.decisions)
    options.partition.groups.max_inputs = searched_max_inputs(result.graph, options, target, facts, chooser);
  result.partition = schedule::partition(result.graph, options.partition, target, facts, chooser, decide);
  if (keeps) {
    result.plan_options = plan_options_text(options);
    result.answers = book.answers();
    result.unfit_decisions = book.unused(options.skip_unfit_decisions);
  }
  if (options.decisions) {
    const std::vector<schedule::GemmDecision> gemms = schedule::of_library(
        *options.decisions, options.gemm_library, options.skip_unfit_decisions, result.unfit_decisions);
    result.unfit_decisions +=
        take_algorithms(gemms, options.skip_unfit_decisions, result.graph, result.partition);
  }
  if (options.verify) {
    if (options.partition.baseline == schedule::Baseline::off) {
      schedule::verify(result.graph, result.partition.grouping, options.partition.groups, target);
    }
    schedule::verify(result.graph, result.partition);
  }
  watch.lap("partition");
  const std::vector<std::vector<schedule::SegmentKernels>> kernels =
      SegmentCompiler(result, facts, chooser, target, options, watch).run();

  const auto* const fault = options.fault ? std::get_if<kernel::PlantedFault>(&*options.fault) : nullptr;
  if (fault && !kernel::plant_fault(result.kernels, *fault)) {
    throw Error(
        {.code = ErrorCode::invalid_argument,
         .message = fmt::format("the kernels have no site for the fault {}", to_string(*options.fault)),
         .hint = "sites are numbered from 0 through the kernels of a source"});
  }

  for (const schedule::Segment& segment : result.partition.segments) {
    if (segment.kind != schedule::Segment::Kind::custom) continue;
    const ir::Node& node = result.graph[segment.root];
    const auto& custom = ir::attr<ir::CustomAttr>(node);
    const std::size_t others = custom.extents.size() + 1 + custom.grid_barrier;
    check_arguments(result.graph, segment.root, node.operands.size() + others, target);
  }
  refuse_custom_kernels(result, target);
  const std::vector<codegen::CustomText> customs =
      codegen::custom_texts(result.graph, result.partition.segments, result.kernels);
  std::map<std::string, std::uint32_t> kernel_of_custom;
  for (const codegen::CustomText& custom : customs) {
    kernel_of_custom.emplace(custom.name,
                             static_cast<std::uint32_t>(result.kernels.size() + kernel_of_custom.size()));
  }
  const std::string name = codegen::c_identifier(graph.name);
  result.source = is_cpu(target)
                      ? codegen::print_cpu(name, result.kernels, options.threads)
                      : codegen::print_cuda(name, result.kernels, customs, {.threads = options.threads});
  watch.lap("print");
  std::vector<schedule::VersionTable> tables;
  for (const schedule::Versions& versions : result.versions) tables.push_back(versions.table);
  result.plan =
      schedule::make_plan(result.graph, result.partition, kernels, std::move(tables), kernel_of_custom);
  result.plan.most_bytes = most_bytes_of(result.plan, result.graph);
  if (options.verify) schedule::verify(result.plan);
  result.streams = options.streams;
  if (options.place) {
    result.run = options.place(result.plan);
  } else if (options.decisions && options.decisions->run) {
    const schedule::RunDecision& run = *options.decisions->run;
    const std::optional<schedule::RunMisfit> wrong = schedule::misfit(run, result.plan);
    if (wrong && !options.skip_unfit_decisions)
      schedule::refuse_entry(run.line, "run: " + wrong->what, wrong->hint);
    if (wrong) {
      ++result.unfit_decisions;
    } else {
      result.run = run;
    }
  }
  watch.lap("plan");
  return result;
}

Compiled::Compiled() = default;
Compiled::Compiled(const Compiled&) = default;
Compiled::Compiled(Compiled&&) noexcept = default;
Compiled& Compiled::operator=(const Compiled&) = default;
Compiled& Compiled::operator=(Compiled&&) noexcept = default;
Compiled::~Compiled() = default;

}  // namespace fuse
