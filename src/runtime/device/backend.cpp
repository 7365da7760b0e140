// What devices share. Where work is done when its call returns, events are the host's clock, and there are no
// graphs. SPDX-License-Identifier: Apache-2.0
#include "runtime/device/backend.hpp"

#include <chrono>

#include "runtime/device/device_graph.hpp"
#include "runtime/device/host_event.hpp"
#include "runtime/device/residency_ledger.hpp"
#include "runtime/device/toolchain.hpp"

namespace fuse::runtime {

Status foreign_event() noexcept {
  return Status(ErrorCode::internal, "the event was made by another device");
}

Backend::Backend(std::shared_ptr<const Toolchain> toolchain)
    : residency_(std::make_shared<ResidencyLedger>()), toolchain_(std::move(toolchain)) {}
Backend::~Backend() = default;

std::unique_ptr<Module> Backend::load(const codegen::Source& source, int threads) {
  if (toolchain_) return load_binary(std::make_shared<const Binary>(toolchain_->build(source, threads)));
  throw Error({.kind = ErrorKind::runtime,
               .code = ErrorCode::unsupported,
               .message = "nothing builds kernels here: this library only runs what was compiled elsewhere",
               .hint = "link the whole of fuse, or load what Executable::save wrote"});
}

std::unique_ptr<Event> Backend::create_event(bool) { return std::make_unique<HostEvent>(); }

Status Backend::record(Queue&, Event& event) noexcept {
  auto* const host = dynamic_cast<HostEvent*>(&event);
  if (!host) return foreign_event();
  host->time = std::chrono::steady_clock::now();
  return {};
}

Status Backend::elapsed(const Event& from, const Event& to, double& seconds) noexcept {
  const auto* const first = dynamic_cast<const HostEvent*>(&from);
  const auto* const last = dynamic_cast<const HostEvent*>(&to);
  if (!first || !last) return foreign_event();
  seconds = std::chrono::duration<double>(last->time - first->time).count();
  return {};
}

std::unique_ptr<CapturedWork> Backend::capture(Queue&, const std::function<Status()>&) { return nullptr; }

std::unique_ptr<DeviceGraph> Backend::create_graph() { return nullptr; }

}  // namespace fuse::runtime
