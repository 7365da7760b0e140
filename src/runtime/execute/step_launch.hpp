// A ready step's work, once it is known where its values lie. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/formatted_status.hpp"
#include "runtime/device/device_graph.hpp"
#include "runtime/execute/executable_impl.hpp"

namespace fuse::runtime {

/// `arguments` are the step's own.
Work work_of(const ReadyStep& step, const Argument* arguments) noexcept;

inline Status of_step(const ReadyStep& step, const Status& failed) noexcept {
  return status(failed.code(), "{}{}{} failed: {}", step.label, step.lines.empty() ? "" : " of ", step.lines,
                failed.message());
}

}  // namespace fuse::runtime
