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

/// `needed`, of each slot: a null view of one that is not is passed over.
Status check_buffers(const Prepared::Impl& p, std::span<const BufferView> buffers,
                     const std::vector<char>& needed) noexcept {
  if (buffers.size() != p.bytes.size()) {
    return status(ErrorCode::invalid_argument, "{} buffers were given, there are {} slots", buffers.size(),
                  p.bytes.size());
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const BufferView& view = buffers[i];
    if (p.bytes[i] == 0 || !needed[i]) continue;
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

/// Memory of the executable's own: the workspace, the packed memory.
Status check_own(const char* what, BufferView own, std::int64_t needed, const char* hint,
                 const Prepared::Impl& p, std::span<const BufferView> buffers) noexcept {
  if (needed == 0) return Status::ok();
  if (!own.address || own.bytes < needed) {
    return status(ErrorCode::invalid_argument, "{} has {} bytes, needs {}{}", what,
                  own.address ? own.bytes : 0, needed, own.address ? "" : hint);
  }
  if (number(own.address) % runtime::workspace_alignment != 0) {
    return status(ErrorCode::invalid_argument, "{} is at {}, which is not {}-byte aligned", what, own.address,
                  runtime::workspace_alignment);
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (overlap(own.address, needed, buffers[i].address, p.bytes[i])) {
      return status(ErrorCode::invalid_argument, "{} overlaps the buffer of {}", what, p.slot_names[i]);
    }
  }
  return Status::ok();
}

Status check_workspace(const Prepared::Impl& p, std::span<const BufferView> buffers,
                       BufferView workspace) noexcept {
  return check_own("workspace", workspace, p.workspace_bytes, "", p, buffers);
}

Status check_packed(const Prepared::Impl& p, std::span<const BufferView> buffers,
                    BufferView packed) noexcept {
  return check_own("packed memory", packed, p.packed_bytes, ": fill it by Prepared::pack", p, buffers);
}

Status check_device(const Prepared::Impl& p, const Stream& stream) noexcept {
  if (stream.backend() == p.executable->device.backend()) return Status::ok();
  return status(ErrorCode::invalid_argument, "the stream is of another device than the executable's, {}",
                p.device_name);
}

/// Enqueues ready steps.
class Launcher {
 public:
  Launcher(const Prepared::Impl& p, runtime::Queue& queue, std::span<const BufferView> buffers,
           void* workspace, void* packed) noexcept
      : p_(p), backend_(*p.executable->device.backend()), queue_(queue), buffers_(buffers) {
    workspace_ = static_cast<std::byte*>(workspace);
    packed_ = static_cast<std::byte*>(packed);
  }

  Status run(const std::vector<runtime::ReadyStep>& steps) noexcept {
    for (const runtime::ReadyStep& step : steps) {
      if (Status failed = run(step); !failed) {
        return status(failed.code(), "{} failed: {}", step.label, failed.message());
      }
    }
    return Status::ok();
  }

 private:
  Status run(const runtime::ReadyStep& step) noexcept {
    switch (step.kind) {
      case runtime::ReadyStep::Kind::kernel:
        return launch(step);
      case runtime::ReadyStep::Kind::gemm:
        return step.gemm->run(queue_, at(step.a), at(step.b), at(step.c), at(step.scratch), at(step.extra));
      case runtime::ReadyStep::Kind::copy:
        return backend_.copy(queue_, at(step.c), at(step.a), step.c.bytes);
      case runtime::ReadyStep::Kind::memset:
        return backend_.memset(queue_, at(step.c), step.byte, step.c.bytes);
    }
    return {ErrorCode::internal, "unknown kind of step"};
  }

  void* at(const runtime::Place& place) const noexcept {
    if (place.slot >= 0) return buffers_[static_cast<std::size_t>(place.slot)].address;
    std::byte* const own = place.slot == runtime::Place::packed ? packed_ : workspace_;
    return place.bytes > 0 ? own + place.offset : nullptr;
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
  std::byte *workspace_ = nullptr, *packed_ = nullptr;
};

}  // namespace

Status Prepared::pack(Stream& stream, std::span<const BufferView> buffers, BufferView packed) const noexcept {
  const Impl& p = *impl_;
  if (Status bad = check_device(p, stream); !bad) return bad;
  if (Status bad = check_buffers(p, buffers, p.packs); !bad) return bad;
  if (Status bad = check_packed(p, buffers, packed); !bad) return bad;
  return Launcher(p, stream.queue(), buffers, nullptr, packed.address).run(p.setup);
}

Status Prepared::run(Stream& stream, std::span<const BufferView> buffers, BufferView workspace,
                     BufferView packed) const noexcept {
  const Impl& p = *impl_;
  const Device& device = p.executable->device;
  if (Status bad = check_device(p, stream); !bad) return bad;
  if (Status bad = check_buffers(p, buffers, p.runs); !bad) return bad;
  if (Status bad = check_overlap(p, buffers); !bad) return bad;
  if (Status bad = check_workspace(p, buffers, workspace); !bad) return bad;
  if (Status bad = check_packed(p, buffers, packed); !bad) return bad;
  if (overlap(workspace.address, p.workspace_bytes, packed.address, p.packed_bytes)) {
    return status(ErrorCode::invalid_argument, "workspace overlaps the packed memory");
  }
  if (device.kind() == DeviceKind::reference) return runtime::run_reference(p, buffers);
  return Launcher(p, stream.queue(), buffers, workspace.address, packed.address).run(p.steps);
}

}  // namespace v0
}  // namespace fuse
