// commands_of: what a run enqueues where. Who waits for whom becomes events, one for each step that another
// stream waits for. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/executable_impl.hpp"
#include "schedule/stream_plan.hpp"

namespace fuse::runtime {

Commands commands_of(const schedule::StreamPlan& streams);

}  // namespace fuse::runtime
