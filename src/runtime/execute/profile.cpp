// A prepared run as text, and when its steps are at work: by the cost model, and by marks on the streams.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/access.hpp"
#include "runtime/device/hot_path_check.hpp"
#include "runtime/execute/executable_impl.hpp"

namespace fuse {
inline namespace v0 {
namespace {

std::string label_of(const Prepared::Impl& p, const runtime::Command& command) {
  return fmt::to_string(p.steps[command.step].label);
}

/// The groups of the steps, which the profile has in the order of their commands.
std::vector<GroupTime> groups_of(const Prepared::Impl& p, const std::vector<StepTime>& steps) {
  std::map<schedule::GroupId, GroupTime> groups;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const schedule::GroupId group = p.steps[p.commands.list[i].step].group;
    if (group == schedule::no_group) continue;
    const auto [at, first] = groups.try_emplace(group);
    GroupTime& time = at->second;
    if (first) {
      time.group = static_cast<int>(group);
      time.name = p.build->program->groups.at(group);
      time.start = steps[i].start;
    }
    ++time.steps;
    time.start = std::min(time.start, steps[i].start);
    time.end = std::max(time.end, steps[i].end);
  }
  std::vector<GroupTime> result;
  for (auto& [group, time] : groups) result.push_back(std::move(time));
  return result;
}

}  // namespace

std::string Prepared::explain() const {
  const Impl& p = *impl_;
  const auto names = [](const std::vector<schedule::TaskId>& tasks) {
    return fmt::format("step{} {}", tasks.size() == 1 ? "" : "s", fmt::join(tasks, ", "));
  };
  std::string text = fmt::format("steps: {}  streams: {}  {:.2f} us by the cost model ({})\n", p.steps.size(),
                                 p.streams.streams, p.streams.seconds * 1e6,
                                 backend_of(p.executable->device)->target().name);
  text += fmt::format("workspace: {} bytes, of which {} are live at one time  packed: {} bytes\n",
                      p.workspace_bytes, p.workspace_bound, p.packed_bytes);
  if (!p.cooperative_steps.empty()) {
    text += fmt::format(
        "a workspace holds slots for {}{}\n", p.cooperative_steps,
        p.split ? fmt::format(", or runs {} launches where there are none", p.split->launches) : "");
  }
  std::size_t next = 0;
  for (const runtime::Command& command : p.commands.list) {
    const runtime::ReadyStep& step = p.steps[command.step];
    const schedule::Span span = p.streams.spans[command.step];
    text += fmt::format("stream {}  {:8.2f} to {:8.2f} us  {}\n", command.stream, span.start * 1e6,
                        span.end * 1e6, step.label);
    std::vector<schedule::TaskId> on;
    for (; next < p.streams.waits.size() && p.streams.waits[next].task == command.step; ++next) {
      on.push_back(p.streams.waits[next].on);
    }
    if (!on.empty()) text += fmt::format("          waits for {}\n", names(on));
    if (step.gemm) text += fmt::format("          {}\n", step.gemm->algorithm());
  }
  if (!p.streams.final_waits.empty()) text += fmt::format("ends after {}\n", names(p.streams.final_waits));
  return text;
}

Profile Prepared::predicted() const {
  const Impl& p = *impl_;
  Profile profile;
  profile.clock = "cost model (" + backend_of(p.executable->device)->target().name + ')';
  profile.seconds = p.streams.seconds;
  for (const runtime::Command& command : p.commands.list) {
    const schedule::Span span = p.streams.spans[command.step];
    profile.steps.push_back({label_of(p, command), command.stream, span.start, span.end});
  }
  profile.groups = groups_of(p, profile.steps);
  return profile;
}

void Workspace::measure() {
  runtime::contract::forbid("makes events");
  if (!impl_) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "the workspace is empty",
                 .hint = "make one by Prepared::workspace"});
  }
  const Prepared::Impl& p = *impl_->prepared;
  if (!impl_->marks.empty() || p.executable->device.kind() == DeviceKind::reference) return;
  std::vector<std::unique_ptr<runtime::Event>> marks(2 * p.commands.list.size() + 2);
  for (auto& mark : marks) mark = backend_of(p.executable->device)->create_event();
  // A graph cannot have the marks.
  if (impl_->replay) impl_->make_streams();
  impl_->mode = ExecutionMode::streams;
  impl_->marks = std::move(marks);
  impl_->marked = false;
}

std::optional<Profile> Workspace::measured() const {
  if (!impl_ || impl_->marks.empty() || !impl_->marked) return std::nullopt;
  const Prepared::Impl& p = *impl_->prepared;
  runtime::Backend& backend = *backend_of(p.executable->device);
  const auto& marks = impl_->marks;
  const runtime::Event &start = *marks[marks.size() - 2], &end = *marks.back();
  if (!backend.passed(end)) return std::nullopt;
  const auto since_start = [&](const runtime::Event& mark) {
    double seconds = 0;
    backend.elapsed(start, mark, seconds).throw_if_failed();
    return seconds;
  };
  Profile profile;
  profile.clock = backend.clock();
  profile.seconds = since_start(end);
  for (std::size_t i = 0; i < p.commands.list.size(); ++i) {
    const runtime::Command& command = p.commands.list[i];
    profile.steps.push_back(
        {label_of(p, command), command.stream, since_start(*marks[2 * i]), since_start(*marks[2 * i + 1])});
  }
  profile.groups = groups_of(p, profile.steps);
  return profile;
}

}  // namespace v0
}  // namespace fuse
