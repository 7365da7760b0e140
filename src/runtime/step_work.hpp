// A ready step's work, once it is known where its values lie. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "runtime/executable_impl.hpp"
#include "runtime/formatted_status.hpp"
#include "runtime/work_graph.hpp"

namespace fuse::runtime {

/// Where places are in a run.
struct Bases {
  std::span<const BufferView> buffers;
  std::byte *workspace, *packed;

  void* at(const Place& place) const noexcept {
    std::byte* base = place.slot == Place::packed ? packed : workspace;
    if (place.slot >= 0)
      base = static_cast<std::byte*>(buffers[static_cast<std::size_t>(place.slot)].address);
    if (place.bytes == 0) return place.slot >= 0 ? base : nullptr;
    return base ? base + place.offset : nullptr;
  }
};

/// `arguments` are the step's own.
Work work_of(const ReadyStep& step, const Bases& bases, const Argument* arguments) noexcept;

inline Status of_step(const ReadyStep& step, const Status& failed) noexcept {
  return status(failed.code(), "{} failed: {}", step.label, failed.message());
}

}  // namespace fuse::runtime
