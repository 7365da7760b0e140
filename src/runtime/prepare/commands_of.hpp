// commands_of: what a run enqueues where. Who waits for whom becomes events, one for each step that another
// stream waits for. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/stream_plan.hpp"
#include "runtime/execute/executable_impl.hpp"

namespace fuse::runtime {

Commands commands_of(const schedule::StreamPlan& streams);

}  // namespace fuse::runtime
