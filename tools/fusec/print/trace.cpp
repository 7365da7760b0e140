// SPDX-License-Identifier: Apache-2.0
#include "fusec/print/trace.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "fusec/print/fusec_json.hpp"

namespace fuse::fusec {
namespace {

Json name_of(const char* what, std::size_t process, int thread, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

}  // namespace

std::string chrome_trace(const std::vector<Profile>& profiles) {
  Json events = Json::array();
  for (std::size_t process = 0; process < profiles.size(); ++process) {
    const Profile& profile = profiles[process];
    events.push_back(name_of("process_name", process, 0, "by " + profile.clock));
    int streams = 0;
    for (const StepTime& step : profile.steps) streams = std::max(streams, step.stream + 1);
    for (int stream = 0; stream < streams; ++stream) {
      events.push_back(name_of("thread_name", process, stream,
                               stream == 0 ? "stream 0 (the caller's)" : fmt::format("stream {}", stream)));
    }
    for (const StepTime& step : profile.steps) {
      events.push_back({{"ph", "X"},
                        {"name", step.step},
                        {"pid", process},
                        {"tid", step.stream},
                        {"ts", step.start * 1e6},
                        {"dur", (step.end - step.start) * 1e6}});
    }
    // Groups may overlap: each is a track of its own.
    for (const GroupTime& group : profile.groups) {
      if (group.steps < 2) continue;  // the step says it
      for (const bool begins : {true, false}) {
        events.push_back({{"ph", begins ? "b" : "e"},
                          {"cat", "group"},
                          {"id", group.group},
                          {"name", fmt::format("group {}: {}", group.group, group.name)},
                          {"pid", process},
                          {"ts", (begins ? group.start : group.end) * 1e6}});
      }
    }
  }
  return json_text({{"displayTimeUnit", "ns"}, {"traceEvents", events}});
}

}  // namespace fuse::fusec
