// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/refusal.hpp"

#include <fmt/format.h>

namespace fuse::schedule {

Refusal no_gain(GroupId group, std::vector<ir::NodeId> at, double together, double apart) {
  return {.group = group,
          .reason = Reason::no_gain,
          .at = std::move(at),
          .numbers = {{"one kernel us", fmt::format("{:.1f}", together * 1e6)},
                      {"separate us", fmt::format("{:.1f}", apart * 1e6)}}};
}

}  // namespace fuse::schedule
