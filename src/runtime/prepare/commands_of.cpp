// SPDX-License-Identifier: Apache-2.0
#include "runtime/prepare/commands_of.hpp"

namespace fuse::runtime {

using schedule::TaskId;

Commands commands_of(const schedule::StreamPlan& streams) {
  Commands commands;
  std::vector<std::uint32_t> event(streams.order.size(), Command::no_event);
  const auto event_of = [&](TaskId task) {
    if (event[task] == Command::no_event) event[task] = commands.events++;
    return event[task];
  };
  std::vector<bool> started(static_cast<std::size_t>(streams.streams));
  std::size_t next = 0;
  for (const TaskId task : streams.order) {
    const schedule::StreamId stream = streams.stream[task];
    Command command{.step = task, .stream = stream};
    command.waits.first = static_cast<std::uint32_t>(commands.waits.size());
    for (; next < streams.waits.size() && streams.waits[next].task == task; ++next) {
      commands.waits.push_back(event_of(streams.waits[next].on));
      ++command.waits.count;
    }
    if (!started[stream] && stream != 0 && command.waits.count == 0) commands.forks.push_back(stream);
    started[stream] = true;
    commands.list.push_back(command);
  }
  for (const TaskId task : streams.final_waits) commands.final_waits.push_back(event_of(task));
  for (Command& command : commands.list) command.record = event[command.step];
  return commands;
}

}  // namespace fuse::runtime
