// SPDX-License-Identifier: Apache-2.0
#include "runtime/explore/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "compile/pipeline/plan_options.hpp"
#include "runtime/explore/kernel_options.hpp"
#include "schedule/decisions/gemm_decisions.hpp"
#include "schedule/segments/canonical.hpp"

namespace fuse::runtime {
namespace {

using explore::Configuration;
using explore::Node;

/// The default, one question that is always answered the same, or GEMMs merged in chunks.
struct Cut {
  std::string name{};
  ir::Decide answer{};
};

std::vector<Cut> cuts() {
  std::vector<Cut> result = {{"as by cost", {}}};
  for (const ir::Question question : ir::all_questions) {
    for (const bool yes : {false, true}) {
      result.push_back({fmt::format("{}: {}", to_string(question), yes ? "all" : "none"),
                        [question, yes](const ir::Asked& asked) {
                          return asked.question == question ? yes : asked.by_cost;
                        }});
    }
  }
  for (const std::size_t most : {2, 4, 8, 16}) {
    result.push_back({fmt::format("merge: chunks of {}", most), [most](const ir::Asked& asked) {
                        return asked.question == ir::Question::merge ? asked.nodes.size() <= most
                                                                     : asked.by_cost;
                      }});
  }
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

/// `known`: the options of kernels that were seen; equal kernels have equal ones.
std::vector<ExploredKernel> kernels_of(const Compiled& stages, const Target& target,
                                       const ExploreOptions& explore,
                                       const std::vector<schedule::KernelDecision>& avoided,
                                       std::map<std::uint64_t, ExploredKernel>& known) {
  const schedule::EqualSegments equal =
      schedule::equal_segments(stages.graph, stages.partition.segments, stages.partition.storage);
  std::map<std::uint64_t, ExploredKernel> by_key;
  for (std::size_t form = 0; form < equal.first.size(); ++form) {
    const schedule::Segment& segment = stages.partition.segments[equal.first[form]];
    const std::uint64_t key = content_key(stages.graph, equal.forms[equal.first[form]]);
    if (by_key.contains(key)) continue;
    ExploredKernel& own = known[key];
    if (own.options.empty()) {
      const int more = explore.max_options + static_cast<int>(avoided.size());
      own = {key, kernel_options(stages.graph, segment, target, explore.bits, more)};
      const auto failed = [&](const schedule::KernelChoices& option) {
        return std::any_of(avoided.begin(), avoided.end(), [&](const schedule::KernelDecision& each) {
          return each.key == key && each.choices == option;
        });
      };
      own.options.erase(std::remove_if(own.options.begin() + 1, own.options.end(), failed),
                        own.options.end());
      keep_first(own.options, explore.max_options);
    }
    by_key.emplace(key, own);
  }
  std::vector<ExploredKernel> result;
  for (auto& [key, kernel] : by_key) result.push_back(std::move(kernel));
  return result;
}

std::vector<ExploredGemm> gemms_of(const schedule::Decisions& decisions, int algorithms) {
  std::set<std::uint64_t> keys;
  for (const schedule::GemmDecision& gemm : decisions.gemms) keys.insert(gemm.key);
  std::vector<ExploredGemm> result;
  for (const std::uint64_t key : keys) result.push_back({key, algorithms});
  return result;
}

/// The numbers of streams that are tried besides the default: one, and twice as many each time.
std::vector<int> stream_options(int usual, int most) {
  std::vector<int> result = {usual};
  for (int streams = 1; streams <= 8 && std::cmp_less(result.size(), most); streams *= 2) {
    if (streams != usual) result.push_back(streams);
  }
  return result;
}

/// What runs, without the answers that led to it.
std::string what_runs(const Compiled& stages) { return schedule::print(stages.plan) + stages.source.body; }

}  // namespace

std::string kernel_name(std::uint64_t key) { return fmt::format("kernel {:016x}", key); }
std::string gemm_name(std::uint64_t key) { return fmt::format("gemm {:016x}", key); }

Space space_of(const ir::Graph& graph, const Target& target, const CompileOptions& compile,
               const ExploreOptions& explore, int gemm_algorithms) {
  Space space;
  if (const auto given = pipeline_options(compile).decisions) space.avoided = given->avoided;
  std::set<std::string> seen;
  std::map<std::uint64_t, ExploredKernel> known;
  std::string usual_order;
  for (const Cut& cut : cuts()) {
    if (std::cmp_equal(space.cuts.size(), explore.max_cuts)) break;
    PipelineOptions how = pipeline_options(compile);
    how.record = true;
    how.answer = cut.answer;
    const Compiled stages = run_pipeline(graph, target, how);
    const bool usual = space.cuts.empty();
    const std::string order = order_of_additions(stages);
    if (usual) usual_order = order;
    if (!usual && explore.bits == Bits::keep && order != usual_order) continue;
    if (!seen.insert(what_runs(stages)).second) continue;
    CutContext context{.name = cut.name, .decisions = decisions_of(stages, target)};
    context.decisions.gemms = schedule::all_gemm_decisions_of(stages.graph, stages.partition);
    if (stages.run) context.decisions.run = stages.run;
    context.kernels = kernels_of(stages, target, explore, space.avoided, known);
    const int algorithms = explore.bits == Bits::keep ? 1 : std::min(gemm_algorithms, explore.max_options);
    context.gemms = gemms_of(context.decisions, algorithms);
    // Who says which step runs on which stream has decided.
    const bool decided = context.decisions.run && !context.decisions.run->streams.empty();
    const bool on_streams = !is_cpu(target) && !decided && stages.plan.steps.size() > 1;
    context.streams = stream_options(how.streams.max_streams, on_streams ? explore.max_options : 1);
    space.cuts.push_back(std::move(context));
  }
  return space;
}

void Space::keep(int max_cuts, int max_options) {
  keep_first(cuts, max_cuts);
  for (CutContext& context : cuts) {
    for (ExploredKernel& kernel : context.kernels) keep_first(kernel.options, max_options);
    for (ExploredGemm& gemm : context.gemms) gemm.algorithms = std::min(gemm.algorithms, max_options);
    keep_first(context.streams, max_options);
  }
}

Node Space::tree() const {
  std::vector<Node> ways;
  for (const CutContext& context : cuts) {
    std::vector<Node> steps;
    for (const ExploredKernel& kernel : context.kernels)
      steps.push_back(explore::variable(kernel_name(kernel.key), static_cast<int>(kernel.options.size())));
    for (const ExploredGemm& gemm : context.gemms)
      steps.push_back(explore::variable(gemm_name(gemm.key), gemm.algorithms));
    Node streams =
        explore::in_context(explore::variable(streams_name, static_cast<int>(context.streams.size())));
    ways.push_back(explore::prefix({explore::parallel(std::move(steps)), std::move(streams)}));
  }
  Node all = cuts.size() == 1 ? std::move(ways.front()) : explore::fork(cut_name, std::move(ways));
  return explore::fork(tuned_name, {explore::parallel({}), std::move(all)});
}

schedule::Decisions Space::decisions(const Configuration& configuration) const {
  const CutContext& context = cuts.at(static_cast<std::size_t>(option_of(configuration, cut_name)));
  schedule::Decisions result = context.decisions;
  result.avoided = avoided;
  for (const ExploredKernel& kernel : context.kernels) {
    const int option = option_of(configuration, kernel_name(kernel.key));
    if (option == 0) continue;
    std::erase_if(result.kernels, [&](const schedule::KernelDecision& each) {
      return each.key == kernel.key && each.occurrence;
    });
    for (schedule::KernelDecision& each : result.kernels) {
      if (each.key == kernel.key) each.choices = kernel.options[static_cast<std::size_t>(option)];
    }
  }
  for (schedule::GemmDecision& gemm : result.gemms) {
    const int option = option_of(configuration, gemm_name(gemm.key));
    if (option > 0) gemm.algorithm = static_cast<std::uint32_t>(option);
  }
  const int streams = option_of(configuration, streams_name);
  if (streams > 0) {
    PipelineOptions how;
    read_plan_options(result.options.value().text, "", how);
    how.streams.max_streams = context.streams[static_cast<std::size_t>(streams)];
    result.options->text = plan_options_text(how);
  }
  return result;
}

}  // namespace fuse::runtime
