// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/graph_replay.hpp"

#include <algorithm>
#include <utility>

#include "base/access.hpp"
#include "base/formatted_status.hpp"
#include "runtime/device/hot_path_check.hpp"
#include "runtime/execute/step_launch.hpp"

namespace fuse::runtime {
namespace {

/// The slots that the step has addresses in; the number of slots for the packed memory.
std::vector<std::size_t> slots_of(const Prepared::Impl& p, const ReadyStep& step) {
  std::vector<std::size_t> slots;
  for (std::uint32_t i = 0; i < step.arguments.count; ++i) {
    const ReadyArgument& argument = p.arguments[step.arguments.first + i];
    if (argument.is_extent) continue;
    if (argument.location.slot >= 0) slots.push_back(static_cast<std::size_t>(argument.location.slot));
    if (argument.location.slot == ValueLocation::packed) slots.push_back(p.bytes.size());
  }
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  return slots;
}

/// For each command, those that have ended before it starts: its stream's last one, and those it waits for.
std::vector<std::vector<DeviceGraph::Node>> dependencies(const Commands& commands) {
  std::vector<std::vector<DeviceGraph::Node>> after(commands.list.size());
  std::vector<DeviceGraph::Node> recorded(commands.events);  // for each event, its command
  std::vector<std::int64_t> last(schedule::most_streams, -1);
  for (std::uint32_t node = 0; node < commands.list.size(); ++node) {
    const Command& command = commands.list[node];
    std::int64_t& before = last[command.stream];
    if (before >= 0) after[node].push_back(static_cast<DeviceGraph::Node>(before));
    for (std::uint32_t i = 0; i < command.waits.count; ++i) {
      after[node].push_back(recorded[commands.waits[command.waits.first + i]]);
    }
    std::sort(after[node].begin(), after[node].end());
    after[node].erase(std::unique(after[node].begin(), after[node].end()), after[node].end());
    if (command.record != Command::no_event) recorded[command.record] = node;
    before = node;
  }
  return after;
}

}  // namespace

Replay::Replay(std::unique_ptr<DeviceGraph> graph) : graph_(std::move(graph)) {}
Replay::~Replay() = default;

std::unique_ptr<Replay> Replay::make(const Prepared::Impl& p, std::span<const Argument> arguments) {
  std::unique_ptr<DeviceGraph> graph = backend_of(p.executable->device)->create_graph();
  if (!graph) return nullptr;
  std::unique_ptr<Replay> replay(new Replay(std::move(graph)));
  replay->nodes_of_.resize(p.bytes.size() + 1);
  for (std::uint32_t node = 0; node < p.commands.list.size(); ++node) {
    const ReadyStep& step = p.steps[p.commands.list[node].step];
    for (const std::size_t slot : slots_of(p, step)) replay->nodes_of_[slot].push_back(node);
  }
  replay->stale_.resize(p.commands.list.size());
  replay->build(p, arguments);
  return replay;
}

void Replay::build(const Prepared::Impl& p, std::span<const Argument> arguments) {
  const std::vector<std::vector<DeviceGraph::Node>> after = dependencies(p.commands);
  for (std::uint32_t node = 0; node < p.commands.list.size(); ++node) {
    const ReadyStep& step = p.steps[p.commands.list[node].step];
    graph_->add(work_of(step, arguments.data() + step.arguments.first), after[node]);
  }
  graph_->finish();
}

void Replay::moved(std::size_t slot) noexcept {
  for (const std::uint32_t node : nodes_of_[slot]) stale_[node] = 1;
  any_stale_ = any_stale_ || !nodes_of_[slot].empty();
}

Status Replay::update(const Prepared::Impl& p, std::span<const Argument> arguments) noexcept {
  Backend& backend = *backend_of(p.executable->device);
  if (Status s = backend.enter(); !s) return s;
  Status failed;
  for (std::uint32_t node = 0; failed && node < stale_.size(); ++node) {
    if (!stale_[node]) continue;
    const ReadyStep& step = p.steps[p.commands.list[node].step];
    failed = graph_->update(node, work_of(step, arguments.data() + step.arguments.first));
    if (failed) {
      stale_[node] = 0;
    } else {
      failed = of_step(step, failed);
    }
  }
  const Status left = backend.leave();
  if (failed) failed = left;
  any_stale_ = any_stale_ && !failed;
  return failed;
}

Status Replay::make_anew(const Prepared::Impl& p, std::span<const Argument> arguments) noexcept {
  const contract::Pause once;  // it allocates, and may wait
  try {
    refused_ = std::exchange(graph_, backend_of(p.executable->device)->create_graph());
    build(p, arguments);
  } catch (const std::exception& error) {
    return status(ErrorCode::unsupported, "the graph cannot be made anew: {}", error.what());
  }
  std::fill(stale_.begin(), stale_.end(), 0);
  any_stale_ = false;
  return Status();
}

Status Replay::run(const Prepared::Impl& p, std::span<const Argument> arguments, Queue& queue) noexcept {
  if (any_stale_) {
    Status done = update(p, arguments);
    if (done.code() == ErrorCode::unsupported && refusal_) {
      refusal_ = done;
      done = make_anew(p, arguments);
    }
    if (!done) return done;
  }
  return graph_->launch(queue);
}

}  // namespace fuse::runtime
