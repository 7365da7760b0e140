// Prepared::run: the hot path. No allocation, no lock, nothing compiled.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "runtime/executable_impl.hpp"
#include "runtime/memory_plan.hpp"
#include "runtime/reference_run.hpp"

namespace fuse {
inline namespace v0 {
namespace {

constexpr std::uintptr_t buffer_alignment = 16;

/// A Status with a formatted message, which is cut rather than allocated.
template <class... Args>
Status status(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) noexcept {
  std::array<char, 509> text;
  const auto end = fmt::format_to_n(text.data(), text.size(), format, std::forward<Args>(args)...);
  return {code, {text.data(), std::min(end.size, text.size())}};
}

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

bool overlap(const void* a, std::int64_t a_bytes, const void* b, std::int64_t b_bytes) {
  if (a_bytes <= 0 || b_bytes <= 0) return false;
  const std::uintptr_t x = number(a), y = number(b);
  return x < y ? y - x < static_cast<std::uintptr_t>(a_bytes) : x - y < static_cast<std::uintptr_t>(b_bytes);
}

Status check_buffers(const Prepared::Impl& p, std::span<const BufferView> buffers) noexcept {
  if (buffers.size() != p.bytes.size()) {
    return status(ErrorCode::invalid_argument, "{} buffers were given, there are {} slots", buffers.size(),
                  p.bytes.size());
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const BufferView& view = buffers[i];
    if (p.bytes[i] == 0) continue;
    if (!view.address) {
      return status(ErrorCode::invalid_argument, "buffer of {} is null, needs {} bytes ({})", p.slot_names[i],
                    p.bytes[i], p.slot_types[i]);
    }
    if (view.bytes < p.bytes[i]) {
      return status(ErrorCode::invalid_argument, "buffer of {} has {} bytes, needs {} ({})", p.slot_names[i],
                    view.bytes, p.bytes[i], p.slot_types[i]);
    }
    if (number(view.address) >
        std::numeric_limits<std::uintptr_t>::max() - static_cast<std::uint64_t>(p.bytes[i])) {
      return status(ErrorCode::invalid_argument, "buffer of {} is at {}: its {} bytes pass the end of memory",
                    p.slot_names[i], view.address, p.bytes[i]);
    }
    if (number(view.address) % buffer_alignment != 0) {
      return status(ErrorCode::invalid_argument, "buffer of {} is at {}, which is not {}-byte aligned",
                    p.slot_names[i], view.address, buffer_alignment);
    }
  }
  return Status::ok();
}

/// Outputs stand after the other slots.
Status check_overlap(const Prepared::Impl& p, std::span<const BufferView> buffers) noexcept {
  const std::vector<Slot>& slots = p.executable->slots;
  for (std::size_t i = slots.size(); i-- > 0 && slots[i].kind == Slot::Kind::output;) {
    const auto donor = slots[i].donor;
    if (donor && p.bytes[i] > 0 && buffers[i].address != buffers[*donor].address) {
      return status(ErrorCode::invalid_argument, "buffer of {} is not that of {}, whose memory it takes",
                    p.slot_names[i], p.slot_names[*donor]);
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (donor == j || !overlap(buffers[i].address, p.bytes[i], buffers[j].address, p.bytes[j])) continue;
      return status(ErrorCode::invalid_argument, "buffer of {} overlaps the buffer of {}", p.slot_names[i],
                    p.slot_names[j]);
    }
  }
  return Status::ok();
}

Status check_workspace(const Prepared::Impl& p, std::span<const BufferView> buffers,
                       BufferView workspace) noexcept {
  if (p.workspace_bytes == 0) return Status::ok();
  if (!workspace.address || workspace.bytes < p.workspace_bytes) {
    return status(ErrorCode::invalid_argument, "workspace has {} bytes, needs {}",
                  workspace.address ? workspace.bytes : 0, p.workspace_bytes);
  }
  if (number(workspace.address) % runtime::workspace_alignment != 0) {
    return status(ErrorCode::invalid_argument, "workspace is at {}, which is not {}-byte aligned",
                  workspace.address, runtime::workspace_alignment);
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (overlap(workspace.address, p.workspace_bytes, buffers[i].address, p.bytes[i])) {
      return status(ErrorCode::invalid_argument, "workspace overlaps the buffer of {}", p.slot_names[i]);
    }
  }
  return Status::ok();
}

/// Enqueues ready steps.
class Launcher {
 public:
  Launcher(const Prepared::Impl& p, runtime::Queue& queue, std::span<const BufferView> buffers,
           void* workspace) noexcept
      : p_(p), backend_(*p.executable->device.backend()), queue_(queue), buffers_(buffers) {
    workspace_ = static_cast<std::byte*>(workspace);
  }

  Status run(const runtime::ReadyStep& step) noexcept {
    switch (step.kind) {
      case runtime::ReadyStep::Kind::kernel:
        return launch(step);
      case runtime::ReadyStep::Kind::gemm:
        return step.gemm->run(queue_, at(step.a), at(step.b), at(step.c), at(step.scratch));
      case runtime::ReadyStep::Kind::copy:
        return backend_.copy(queue_, at(step.c), at(step.a), step.c.bytes);
      case runtime::ReadyStep::Kind::memset:
        return backend_.memset(queue_, at(step.c), step.byte, step.c.bytes);
    }
    return {ErrorCode::internal, "unknown kind of step"};
  }

 private:
  void* at(const runtime::Place& place) const noexcept {
    if (place.slot >= 0) return buffers_[static_cast<std::size_t>(place.slot)].address;
    return place.bytes > 0 ? workspace_ + place.offset : nullptr;
  }

  Status launch(const runtime::ReadyStep& step) noexcept {
    std::array<runtime::Argument, runtime::max_arguments> arguments;
    for (std::uint32_t i = 0; i < step.arguments; ++i) {
      const runtime::ReadyArgument& from = p_.arguments[step.first_argument + i];
      arguments[i] = from.is_extent ? runtime::Argument{.value = from.value}
                                    : runtime::Argument{.address = at(from.place), .bytes = from.place.bytes};
    }
    return backend_.launch(queue_, *step.function, step.grid, arguments.data(),
                           static_cast<int>(step.arguments));
  }

  const Prepared::Impl& p_;
  runtime::Backend& backend_;
  runtime::Queue& queue_;
  std::span<const BufferView> buffers_;
  std::byte* workspace_ = nullptr;
};

}  // namespace

Status Prepared::run(Stream& stream, std::span<const BufferView> buffers,
                     BufferView workspace) const noexcept {
  const Impl& p = *impl_;
  const Device& device = p.executable->device;
  if (stream.backend() != device.backend()) {
    return status(ErrorCode::invalid_argument, "the stream is of another device than the executable's, {}",
                  p.device_name);
  }
  if (Status bad = check_buffers(p, buffers); !bad) return bad;
  if (Status bad = check_overlap(p, buffers); !bad) return bad;
  if (Status bad = check_workspace(p, buffers, workspace); !bad) return bad;
  if (device.kind() == DeviceKind::reference) return runtime::run_reference(p, buffers);
  Launcher launcher(p, stream.queue(), buffers, workspace.address);
  for (const runtime::ReadyStep& step : p.steps) {
    if (Status failed = launcher.run(step); !failed) {
      return status(failed.code(), "{} failed: {}", step.label, failed.message());
    }
  }
  return Status::ok();
}

}  // namespace v0
}  // namespace fuse
