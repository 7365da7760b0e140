// SPDX-License-Identifier: Apache-2.0
#include "runtime/explore/space.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "compile/pipeline/plan_options.hpp"
#include "runtime/explore/kernel_options.hpp"
#include "runtime/explore/merge_options.hpp"
#include "schedule/decisions/gemm_decisions.hpp"
#include "schedule/search/max_inputs.hpp"
#include "schedule/segments/canonical.hpp"

namespace fuse::runtime {
namespace {

using explore::Configuration;
using explore::Node;

/// One question that is always answered the same, or kernels of fewer inputs.
struct Cut {
  std::string name{};
  ir::Insist insist{};
  int max_inputs = 0;  ///< 0: as by default
};

std::vector<Cut> other_cuts() {
  std::vector<Cut> result;
  for (const ir::Question question : ir::all_questions) {
    for (const bool yes : {false, true}) {
      result.push_back({fmt::format("{}: {}", to_string(question), yes ? "all" : "none"),
                        [question, yes](const ir::Asked& asked) {
                          return asked.question == question ? std::optional(yes) : std::nullopt;
                        }});
    }
  }
  for (const int fewer : schedule::fewer_inputs)
    result.push_back({fmt::format("inputs: at most {}", fewer), {}, fewer});
  return result;
}

int option_of(const Configuration& configuration, const std::string& name) {
  const auto found = configuration.find(name);
  return found == configuration.end() ? 0 : found->second;
}

template <class List>
void keep_first(List& list, int most) {
  if (std::cmp_greater(list.size(), most)) list.erase(list.begin() + most, list.end());
}

/// The most streams that the caller allows, then fewer: one, and twice as many each time.
std::vector<int> stream_options(int allowed, int most) {
  std::vector<int> result = {allowed};
  for (int streams = 1; streams < allowed && std::cmp_less(result.size(), most); streams *= 2)
    result.push_back(streams);
  return result;
}

/// What runs, without the answers that led to it.
std::string what_runs(const Compiled& stages) { return schedule::print(stages.plan) + stages.source.body; }

/// What an exploration of one graph can try, found by planning it in many ways.
class SpaceFinder {
 public:
  SpaceFinder(const ir::Graph& graph, const Target& target, const CompileOptions& compile,
              const ExploreOptions& explore, const DeviceOptions& device)
      : graph_(graph),
        target_(target),
        how_(pipeline_options(compile)),
        explore_(explore),
        gemm_algorithms_(explore.bits == Bits::keep ? 1
                                                    : std::min(device.gemm_algorithms, explore.max_options)) {
    how_.record = true;
    if (how_.decisions && how_.decisions->measured) how_.gemm_library = device.gemm_library;
    // Who says the mode has decided.
    const bool is_told =
        how_.decisions && how_.decisions->run && how_.decisions->run->mode != ExecutionMode::automatic;
    if (device.has_graphs && !is_told && explore.max_options > 1)
      modes_ = {ExecutionMode::streams, ExecutionMode::graph};
    if (how_.decisions) space_.avoided = how_.decisions->avoided;
  }

  Space run() {
    find_usual();
    for (const Cut& cut : other_cuts()) {
      if (std::cmp_greater_equal(space_.cuts.size(), explore_.max_cuts)) break;
      const Compiled stages = planned(how_.decisions, cut.insist, cut.max_inputs);
      if (is_allowed(stages) && seen_.insert(what_runs(stages)).second)
        space_.cuts.push_back(context(cut.name, stages));
    }
    if (explore_.bits == Bits::any && explore_.max_groups > 0) merge_each_group();
    return std::move(space_);
  }

 private:
  void find_usual() {
    PipelineOptions how = how_;
    how.insist = [this](const ir::Asked& asked) {
      survey_.see(asked);
      return std::optional<bool>();
    };
    const Compiled stages = run_pipeline(graph_, target_, how);
    usual_order_ = order_of_additions(stages);
    seen_.insert(what_runs(stages));
    own_ = seen_;
    CutContext usual = context("as by cost", stages);
    if (stages.run) usual.decisions.run = stages.run;
    // Who says which step runs on which stream has decided.
    if (stages.run && !stages.run->streams.empty()) keep_first(usual.streams, 1);
    if (stages.run && !(stages.run->streams.empty() && stages.run->order.empty())) {
      usual.placing = {};
      keep_first(usual.orders, 1);
    }
    space_.cuts.push_back(std::move(usual));
  }

  /// The graph by these decisions, where they fit, and by what is insisted on, wherever they say something
  /// else.
  Compiled planned(std::optional<schedule::Decisions> decisions, ir::Insist insist,
                   int max_inputs = 0) const {
    PipelineOptions how = how_;
    how.decisions = std::move(decisions);
    how.insist = std::move(insist);
    how.skip_unfit_decisions = true;
    if (how.decisions) how.decisions->run.reset();  // other kernels may be other steps
    if (max_inputs > 0) limit_inputs(how, max_inputs);
    return run_pipeline(graph_, target_, how);
  }

  static void limit_inputs(PipelineOptions& how, int max_inputs) {
    const bool told = how.decisions && how.decisions->options;
    if (told) read_plan_options(how.decisions->options->text, "", how);
    how.partition.groups.max_inputs = std::min(how.partition.groups.max_inputs, max_inputs);
    if (told) how.decisions->options->text = plan_options_text(how);
  }

  bool is_allowed(const Compiled& stages) const {
    return explore_.bits == Bits::any || order_of_additions(stages) == usual_order_;
  }

  CutContext context(const std::string& name, const Compiled& stages) {
    CutContext result{.name = name, .decisions = decisions_of(stages, target_)};
    result.decisions.gemms = schedule::all_gemm_decisions_of(stages.graph, stages.partition);
    if (how_.decisions && how_.decisions->run)
      result.decisions.run = schedule::RunDecision{.mode = how_.decisions->run->mode};
    add_kernels(stages, result);
    add_gemms(result.decisions.gemms, result);
    const bool on_streams = !is_cpu(target_) && stages.plan.steps.size() > 1;
    result.modes = modes_;
    if (stages.plan.steps.size() <= 1) keep_first(result.modes, 1);
    if (on_streams && explore_.max_epochs > 0 && how_.streams.max_streams > 1)
      result.placing = stream_options_of(stages, target_, how_.streams.max_streams, explore_.max_epochs,
                                         explore_.max_options);
    result.streams = stream_options(how_.streams.max_streams, on_streams ? explore_.max_options : 1);
    if (on_streams && how_.streams.max_streams > 1) result.orders = dispatch_orders(stages.plan);
    keep_first(result.orders, explore_.max_options);
    return result;
  }

  /// Equal kernels of several cuts have equal options.
  void add_kernels(const Compiled& stages, CutContext& context) {
    const schedule::EqualSegments equal =
        schedule::equal_segments(stages.graph, stages.partition.segments, stages.partition.storage);
    for (std::size_t form = 0; form < equal.first.size(); ++form) {
      const schedule::Segment& segment = stages.partition.segments[equal.first[form]];
      const std::uint64_t key = content_key(stages.graph, equal.forms[equal.first[form]]);
      ExploredKernel& known = known_[key];
      if (known.options.empty()) known = {key, options_of(stages.graph, segment, key)};
      insert(context.kernels, known);
    }
  }

  std::vector<schedule::KernelChoices> options_of(const ir::Graph& graph, const schedule::Segment& segment,
                                                  std::uint64_t key) const {
    const std::vector<schedule::KernelDecision>& avoided = space_.avoided;
    const int more = explore_.max_options + static_cast<int>(avoided.size());
    std::vector<schedule::KernelChoices> options =
        kernel_options(graph, segment, target_,
                       {.bits = explore_.bits, .grid_barriers = how_.partition.grid_barriers, .most = more});
    const auto failed = [&](const schedule::KernelChoices& option) {
      return std::any_of(avoided.begin(), avoided.end(), [&](const schedule::KernelDecision& each) {
        return each.key == key && each.choices == option;
      });
    };
    options.erase(std::remove_if(options.begin() + 1, options.end(), failed), options.end());
    keep_first(options, explore_.max_options);
    return options;
  }

  void add_gemms(const std::vector<schedule::GemmDecision>& gemms, CutContext& context) const {
    for (const schedule::GemmDecision& gemm : gemms)
      insert(context.gemms, ExploredGemm{gemm.key, gemm_algorithms_});
  }

  /// In the order of the keys, each once.
  template <class Explored>
  static void insert(std::vector<Explored>& list, const Explored& one) {
    const auto at = std::lower_bound(list.begin(), list.end(), one.key,
                                     [](const Explored& each, std::uint64_t key) { return each.key < key; });
    if (at == list.end() || at->key != one.key) list.insert(at, one);
  }

  /// A way to cut the graph for all combinations of the ways to merge its groups: the kernels and GEMMs of
  /// each way are in it, and run in some of them.
  void merge_each_group() {
    const CutContext& usual = space_.cuts.front();
    CutContext all{
        .name = "merge: each group", .by_group = true, .streams = usual.streams, .modes = usual.modes};
    all.decisions = how_.decisions.value_or(schedule::Decisions{.target = usual.decisions.target});
    all.decisions.options = usual.decisions.options;
    if (all.decisions.run) all.decisions.run = schedule::RunDecision{.mode = all.decisions.run->mode};
    for (const GemmGroup& group : survey_.heaviest(explore_.max_groups, usual.decisions.answers)) {
      ExploredMerge merge{group.key, {{}}, {"as by default"}};
      for (const std::size_t size : chunk_sizes(group)) {
        const Compiled stages = planned(all.decisions, merged_in_chunks(group.key, size));
        if (!own_.insert(what_runs(stages)).second) continue;
        merge.options.push_back(differing_merges(stages.answers, usual.decisions.answers, group.key));
        merge.texts.push_back(size == 1               ? "apart"
                              : size == group.members ? "merged"
                                                      : fmt::format("merged in chunks of {}", size));
        add_kernels(stages, all);
        add_gemms(schedule::all_gemm_decisions_of(stages.graph, stages.partition), all);
      }
      if (merge.options.size() > 1) all.merges.push_back(std::move(merge));
    }
    if (!all.merges.empty()) space_.cuts.push_back(std::move(all));
  }

  const ir::Graph& graph_;
  const Target& target_;
  PipelineOptions how_;
  const ExploreOptions& explore_;
  const int gemm_algorithms_;
  std::vector<ExecutionMode> modes_ = {ExecutionMode::streams};
  GroupSurvey survey_;
  Space space_;
  std::set<std::string> seen_, own_;  // what runs: in a cut, and with a group merged in a way of its own
  std::map<std::uint64_t, ExploredKernel> known_;
  std::string usual_order_;
};

/// For all kernels of the key, in place of what is said of single ones.
void set_choices(schedule::Decisions& decisions, std::uint64_t key, const schedule::KernelChoices& choices) {
  std::vector<schedule::KernelDecision>& kernels = decisions.kernels;
  std::erase_if(kernels,
                [&](const schedule::KernelDecision& each) { return each.key == key && each.occurrence; });
  const auto found = std::find_if(kernels.begin(), kernels.end(),
                                  [&](const schedule::KernelDecision& each) { return each.key == key; });
  if (found == kernels.end()) {
    kernels.push_back({.key = key, .choices = choices});
  } else {
    found->choices = choices;
  }
}

void set_algorithm(schedule::Decisions& decisions, std::uint64_t key, int algorithm) {
  bool is_there = false;
  for (schedule::GemmDecision& gemm : decisions.gemms) {
    if (gemm.key != key) continue;
    gemm.algorithm = static_cast<std::uint32_t>(algorithm);
    is_there = true;
  }
  if (!is_there) decisions.gemms.push_back({.key = key, .algorithm = static_cast<std::uint32_t>(algorithm)});
}

/// In place of whatever is there of the same keys. What two groups lead to can be the same question.
void set_answers(schedule::Decisions& decisions, const std::vector<schedule::Answer>& answers) {
  for (const schedule::Answer& answer : answers) {
    std::erase_if(decisions.answers, [&](const schedule::Answer& each) {
      return each.question == answer.question && each.key == answer.key;
    });
  }
  decisions.answers.insert(decisions.answers.end(), answers.begin(), answers.end());
}

}  // namespace

std::string kernel_name(std::uint64_t key) { return fmt::format("kernel {:016x}", key); }
std::string gemm_name(std::uint64_t key) { return fmt::format("gemm {:016x}", key); }

bool is_of_steps(const std::string& region) { return !region.empty() && !region.starts_with("epoch "); }

std::string merge_name(std::uint64_t key) { return fmt::format("merge {:016x}", key); }

std::optional<double> judging_seconds(const std::map<std::string, double>& run, const std::string& name) {
  if (name.starts_with("merge ")) {
    double sum = 0;
    for (const auto& [region, seconds] : run) sum += is_of_steps(region) ? seconds : 0;
    return sum;
  }
  const bool whole = name == tuned_name || name == cut_name || name == streams_name || name == order_name ||
                     name == mode_name;
  const auto found = run.find(whole ? "" : name);
  return found == run.end() ? std::nullopt : std::optional(found->second);
}

Space space_of(const ir::Graph& graph, const Target& target, const CompileOptions& compile,
               const ExploreOptions& explore, const DeviceOptions& device) {
  return SpaceFinder(graph, target, compile, explore, device).run();
}

void Space::keep(const SpaceLimits& most) {
  for (CutContext& context : cuts) {
    keep_first(context.merges, most.groups);
    for (ExploredMerge& merge : context.merges) keep_first(merge.options, most.options);
    std::erase_if(context.merges, [](const ExploredMerge& merge) { return merge.options.size() == 1; });
    for (ExploredKernel& kernel : context.kernels) keep_first(kernel.options, most.options);
    for (ExploredGemm& gemm : context.gemms) gemm.algorithms = std::min(gemm.algorithms, most.options);
    keep_first(context.streams, most.options);
    keep_first(context.orders, most.options);
    keep_first(context.modes, most.options);
    keep_longest(context.placing, most.epochs);
    for (ExploredEpoch& epoch : context.placing.epochs) keep_first(epoch.options, most.options);
  }
  std::optional<CutContext> by_group;
  if (cuts.back().by_group) {
    by_group = std::move(cuts.back());
    cuts.pop_back();
  }
  keep_first(cuts, most.cuts);
  if (by_group && !by_group->merges.empty()) cuts.push_back(std::move(*by_group));
}

Node Space::tree() const {
  std::vector<Node> ways;
  for (const CutContext& context : cuts) {
    std::vector<Node> order;
    for (const ExploredMerge& merge : context.merges)
      order.push_back(explore::variable(merge_name(merge.key), static_cast<int>(merge.options.size())));
    std::vector<Node> steps;
    for (const ExploredKernel& kernel : context.kernels)
      steps.push_back(explore::variable(kernel_name(kernel.key), static_cast<int>(kernel.options.size())));
    for (const ExploredGemm& gemm : context.gemms)
      steps.push_back(explore::variable(gemm_name(gemm.key), gemm.algorithms));
    order.push_back(explore::parallel(std::move(steps)));
    order.push_back(
        explore::in_context(explore::variable(streams_name, static_cast<int>(context.streams.size()))));
    order.push_back(
        explore::in_context(explore::variable(order_name, static_cast<int>(context.orders.size()))));
    std::vector<Node> epochs;
    for (const ExploredEpoch& epoch : context.placing.epochs)
      epochs.push_back(explore::variable(epoch_name(epoch.key), static_cast<int>(epoch.options.size())));
    order.push_back(explore::in_context(explore::prefix(std::move(epochs))));
    order.push_back(
        explore::in_context(explore::variable(mode_name, static_cast<int>(context.modes.size()))));
    ways.push_back(explore::prefix(std::move(order)));
  }
  Node all = cuts.size() == 1 ? std::move(ways.front()) : explore::fork(cut_name, std::move(ways));
  return explore::fork(tuned_name, {explore::parallel({}), std::move(all)});
}

std::size_t Space::cut_of(const Configuration& configuration) const {
  return static_cast<std::size_t>(option_of(configuration, cut_name));
}

const CutContext& Space::context_of(const Configuration& configuration) const {
  return cuts.at(cut_of(configuration));
}

DispatchOrder Space::order_of(const Configuration& configuration) const {
  return context_of(configuration).orders[static_cast<std::size_t>(option_of(configuration, order_name))];
}

ExecutionMode Space::mode_of(const Configuration& configuration) const {
  const int option = option_of(configuration, mode_name);
  return option == 0 ? ExecutionMode::streams
                     : context_of(configuration).modes[static_cast<std::size_t>(option)];
}

StreamOf Space::streams_of(const Configuration& configuration) const {
  StreamOf result;
  for (const ExploredEpoch& epoch : context_of(configuration).placing.epochs) {
    const explore::Placement& option =
        epoch.options[static_cast<std::size_t>(option_of(configuration, epoch_name(epoch.key)))];
    for (const std::vector<NodeList>& members : epoch.members) {
      for (std::size_t i = 0; i < option.size(); ++i) result[members[i]] = option[i];
    }
  }
  return result;
}

std::string Space::text_of(const Configuration& configuration, const std::string& name) const {
  const CutContext& context = context_of(configuration);
  const auto option = static_cast<std::size_t>(option_of(configuration, name));
  if (name == cut_name) return fmt::format("cut '{}'", context.name);
  if (name == mode_name) return fmt::format("mode {}", to_string(mode_of(configuration)));
  if (name == streams_name) return fmt::format("{} streams", context.streams[option]);
  if (name == order_name) return fmt::format("order {}", to_string(context.orders[option]));
  std::string what;
  for (const ExploredMerge& merge : context.merges) {
    if (merge_name(merge.key) == name) what = merge.texts[option];
  }
  for (const ExploredKernel& kernel : context.kernels) {
    if (kernel_name(kernel.key) == name) what = '{' + kernel.options[option].to_string() + '}';
  }
  for (const ExploredGemm& gemm : context.gemms) {
    if (gemm_name(gemm.key) == name) what = fmt::format("algorithm {}", option);
  }
  for (const ExploredEpoch& epoch : context.placing.epochs) {
    if (epoch_name(epoch.key) == name)
      what = fmt::format("streams {}", fmt::join(epoch.options[option], " "));
  }
  return fmt::format("{}: {}", name, what);
}

bool Space::is_partial(const Configuration& configuration) const {
  return context_of(configuration).by_group;
}

schedule::Decisions Space::decisions(const Configuration& configuration) const {
  const CutContext& context = context_of(configuration);
  schedule::Decisions result = context.decisions;
  result.avoided = avoided;
  for (const ExploredMerge& merge : context.merges)
    set_answers(result,
                merge.options[static_cast<std::size_t>(option_of(configuration, merge_name(merge.key)))]);
  for (const ExploredKernel& kernel : context.kernels) {
    const int option = option_of(configuration, kernel_name(kernel.key));
    if (option > 0) set_choices(result, kernel.key, kernel.options[static_cast<std::size_t>(option)]);
  }
  for (const ExploredGemm& gemm : context.gemms) {
    const int option = option_of(configuration, gemm_name(gemm.key));
    if (option > 0) set_algorithm(result, gemm.key, option);
  }
  const int streams = option_of(configuration, streams_name);
  if (streams > 0) {
    PipelineOptions how;
    read_plan_options(result.options.value().text, "", how);
    how.streams.max_streams = context.streams[static_cast<std::size_t>(streams)];
    result.options->text = plan_options_text(how);
  }
  if (mode_of(configuration) != ExecutionMode::streams) {
    if (!result.run) result.run.emplace();
    result.run->mode = mode_of(configuration);
  }
  return result;
}

}  // namespace fuse::runtime
