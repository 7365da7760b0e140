// SPDX-License-Identifier: Apache-2.0
#include "runtime/explore/stream_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "plan/step_dependencies.hpp"
#include "schedule/segments/canonical.hpp"
#include "target/step_cost.hpp"

namespace fuse::runtime {
namespace {

/// What the steps of a plan do, those of one kernel together.
struct WorkList {
  std::vector<NodeList> nodes{};
  std::vector<explore::Work> all{};
};

double seconds_of(const schedule::GemmStep& gemm, const Target& target) {
  const std::int64_t batch = gemm.batch.hint(), m = gemm.m.hint(), n = gemm.n.hint(), k = gemm.k.hint();
  const std::int64_t read = batch * (m + n) * k * static_cast<std::int64_t>(size_of(gemm.operand));
  const std::int64_t written = batch * m * n * static_cast<std::int64_t>(size_of(gemm.result));
  return schedule::gemm_cost(read + written, batch, m, n, k, target).seconds;
}

WorkList work_of(const Compiled& stages, const Target& target) {
  std::map<NodeList, const schedule::Segment*> segments;
  for (const schedule::Segment& segment : stages.partition.segments) segments[segment.nodes] = &segment;
  const auto form_of = schedule::canonical_forms(stages.graph, stages.partition.storage);
  const std::vector<std::vector<std::uint32_t>> after = schedule::certain_dependencies(stages.plan);

  WorkList result;
  std::map<NodeList, std::uint32_t> known;
  std::vector<std::uint32_t> work_of_step;
  for (std::size_t step = 0; step < stages.plan.steps.size(); ++step) {
    const schedule::Step& own = stages.plan.steps[step];
    const auto number = static_cast<std::uint32_t>(result.all.size());
    const auto segment = segments.find(own.nodes);
    const bool is_segment = segment != segments.end();
    const std::uint32_t work = is_segment ? known.emplace(own.nodes, number).first->second : number;
    if (work == number) {
      result.nodes.push_back(own.nodes);
      result.all.emplace_back();
      const auto* const gemm = std::get_if<schedule::GemmStep>(&own.work);
      if (is_segment && segment->second->kind != schedule::Segment::Kind::custom) {
        result.all.back().kind = schedule::content_key(stages.graph, form_of(*segment->second));
        result.all.back().seconds =
            gemm ? seconds_of(*gemm, target) : segment->second->chosen.value_or(schedule::Chosen()).seconds;
      }
    }
    work_of_step.push_back(work);
    for (const std::uint32_t before : after[step]) {
      std::vector<std::uint32_t>& all = result.all[work].after;
      const std::uint32_t other = work_of_step[before];
      if (other != work && std::ranges::find(all, other) == all.end()) all.push_back(other);
    }
  }
  return result;
}

}  // namespace

std::string epoch_name(std::uint64_t key) { return fmt::format("epoch {:016x}", key); }

StreamOptions stream_options_of(const Compiled& stages, const Target& target, int streams, int most_epochs,
                                int most_options) {
  StreamOptions result;
  const WorkList work = work_of(stages, target);
  const std::vector<int> levels = explore::levels_of(work.all);
  for (std::size_t i = 0; i < work.all.size(); ++i) result.levels.emplace(work.nodes[i], levels[i]);
  std::map<std::uint64_t, explore::Epoch> first_of;  // by key
  for (explore::Epoch& epoch : explore::epochs_of(work.all)) {
    auto known = std::ranges::find(result.epochs, epoch.key, &ExploredEpoch::key);
    if (known == result.epochs.end())
      known = result.epochs.insert(known, {.key = epoch.key, .options = {{}}});
    known->levels.push_back(epoch.level);
    known->seconds += epoch.seconds();
    std::vector<NodeList>& members = known->members.emplace_back();
    for (const std::uint32_t member : epoch.members()) members.push_back(work.nodes[member]);
    first_of.emplace(epoch.key, std::move(epoch));
  }
  keep_longest(result, most_epochs);
  const auto most = static_cast<std::size_t>(std::max(0, most_options - 1));
  for (ExploredEpoch& epoch : result.epochs) {
    for (explore::Placement& each : explore::placements(first_of.at(epoch.key), streams, most))
      epoch.options.push_back(std::move(each));
  }
  return result;
}

void keep_longest(StreamOptions& options, int most) {
  std::vector<ExploredEpoch>& epochs = options.epochs;
  while (std::cmp_greater(epochs.size(), most))
    epochs.erase(std::ranges::min_element(epochs, {}, &ExploredEpoch::seconds));
}

std::function<schedule::RunDecision(const schedule::Plan&)> placing(const StreamOf& streams,
                                                                    DispatchOrder order, ExecutionMode mode) {
  if (streams.empty() && order == DispatchOrder::by_cost) return {};
  return [streams, order, mode](const schedule::Plan& plan) {
    schedule::RunDecision run{.mode = mode, .order = order_of(plan, order)};
    if (streams.empty()) return run;
    for (const schedule::Step& step : plan.steps) {
      const auto found = streams.find(step.nodes);
      run.streams.push_back(found == streams.end() ? schedule::open_step : found->second);
    }
    return run;
  };
}

EpochTimes::EpochTimes(const StreamOptions& options) : levels_(options.levels) {
  for (const ExploredEpoch& epoch : options.epochs) regions_.emplace(epoch_name(epoch.key), epoch.levels);
  for (const auto& [nodes, level] : levels_) count_ = std::max(count_, static_cast<std::size_t>(level) + 1);
}

std::vector<int> EpochTimes::levels_of(const schedule::Plan& plan) const {
  std::vector<int> result;
  for (const schedule::Step& step : plan.steps) {
    const auto found = levels_.find(step.nodes);
    result.push_back(found == levels_.end() ? -1 : found->second);
  }
  return result;
}

void EpochTimes::add(const std::vector<double>& ends, std::map<std::string, double>& seconds) const {
  std::vector<double> through = ends;
  for (std::size_t level = 1; level < through.size(); ++level)
    through[level] = std::max(through[level], through[level - 1]);
  for (const auto& [name, levels] : regions_) {
    for (const int level : levels) seconds[name] += through[static_cast<std::size_t>(level)];
  }
}

}  // namespace fuse::runtime
