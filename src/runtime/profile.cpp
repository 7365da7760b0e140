// When the steps of a run are at work: by the cost model, and by marks on the streams.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/contract.hpp"
#include "runtime/executable_impl.hpp"

namespace fuse {
inline namespace v0 {

Profile Prepared::predicted() const {
  const Impl& p = *impl_;
  Profile profile;
  profile.clock = "cost model (" + p.executable->device.backend()->target().name + ')';
  profile.seconds = p.streams.seconds;
  for (const runtime::Command& command : p.commands.list) {
    const schedule::Span span = p.streams.spans[command.step];
    profile.steps.push_back({p.steps[command.step].label, command.stream, span.start, span.end});
  }
  return profile;
}

void Workspace::measure() {
  runtime::contract::forbid("makes events");
  const Prepared::Impl& p = *impl_->prepared;
  if (!impl_->marks.empty() || p.executable->device.kind() == DeviceKind::reference) return;
  std::vector<std::unique_ptr<runtime::Event>> marks(2 * p.commands.list.size() + 2);
  for (auto& mark : marks) mark = p.executable->device.backend()->create_event();
  impl_->marks = std::move(marks);
  impl_->marked = false;
}

std::optional<Profile> Workspace::measured() const {
  if (!impl_ || impl_->marks.empty() || !impl_->marked) return std::nullopt;
  const Prepared::Impl& p = *impl_->prepared;
  runtime::Backend& backend = *p.executable->device.backend();
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
    profile.steps.push_back({p.steps[command.step].label, command.stream, since_start(*marks[2 * i]),
                             since_start(*marks[2 * i + 1])});
  }
  return profile;
}

}  // namespace v0
}  // namespace fuse
