// SPDX-License-Identifier: Apache-2.0
#include "fuzz/told.hpp"

#include <fmt/format.h>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "fuzz/grow/random_choices.hpp"
#include "fuzz/judge/execute.hpp"
#include "schedule/decisions/decisions.hpp"

namespace fuse::fuzz {
namespace {

/// What decisions do not depend on, changed.
Target with_other_speeds(Target target) {
  target.bandwidth *= 0.001;
  target.flops_f32 *= 5;
  target.launch_seconds *= 0.01;
  target.barrier_seconds *= 3;
  target.cluster_seconds *= 9;
  return target;
}

/// What is wrong where the graph is compiled by decisions that were made for another GPU.
std::string taken_elsewhere(const ir::Graph& graph, std::string_view profile, const PipelineOptions& told) {
  const Target elsewhere = target_profile(profile == "tiny3" ? "h200" : "tiny3");
  try {
    run_pipeline(graph, elsewhere, told);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_argument) return "";
    return fmt::format("on {}: {}", elsewhere.name, error.what());
  }
  return fmt::format("the decisions were taken on {}", elsewhere.name);
}

std::string stages_of(const Compiled& compiled) { return print(compiled.plan) + compiled.source.text(); }

}  // namespace

Told told_again(const Case& c) {
  PipelineOptions options = pipeline_of(c.options.rules);
  if (c.options.choices_seed != 0) options.partition = random_partition(Random(~c.options.choices_seed));
  options.record = true;
  const Target target = target_profile(c.options.profile), other = with_other_speeds(target);
  const Compiled first = run_pipeline(c.program.graph, target, options);
  const schedule::Decisions decisions = decisions_of(first, target);
  Told result{.decisions = decisions.answers.size() + decisions.kernels.size()};
  result.model_differs = stages_of(run_pipeline(c.program.graph, other, options)) != stages_of(first);

  PipelineOptions told;  // the decisions say how the graph was cut
  told.record = true;
  told.versions = options.versions;
  told.decisions = schedule::parse_decisions(print(decisions));
  const Compiled second = run_pipeline(c.program.graph, other, told);
  if (stages_of(second) != stages_of(first)) {
    result.differs = fmt::format("the stages:\n{}\nand by the decisions\n{}\n{}", stages_of(first),
                                 print(decisions), stages_of(second));
  } else if (print(decisions_of(second, other)) != print(decisions)) {
    result.differs =
        fmt::format("the decisions:\n{}\nand then\n{}", print(decisions), print(decisions_of(second, other)));
  } else {
    result.differs = taken_elsewhere(c.program.graph, c.options.profile, told);
  }
  return result;
}

}  // namespace fuse::fuzz
