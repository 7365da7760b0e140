// A mark on the host's clock: the event of devices whose work is done when its call returns.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "runtime/device/backend.hpp"

namespace fuse::runtime {

class HostEvent : public Event {
 public:
  std::chrono::steady_clock::time_point time;
};

}  // namespace fuse::runtime
