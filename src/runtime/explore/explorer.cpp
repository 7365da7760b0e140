// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <fuse/explore.hpp>
#include <mutex>
#include <utility>

#include "base/access.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/explore/exploration.hpp"

namespace fuse {
inline namespace v0 {
namespace {

void check(const Device& device, const ExploreOptions& options) {
  if (device.kind() == DeviceKind::reference) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "the reference device has nothing to explore",
                 .hint = "it runs op by op: take another device"});
  }
  const auto at_least = [](const char* name, double value, double least) {
    if (value >= least) return;
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("explore: {} = {}", name, value),
                 .hint = fmt::format("{} is at least {}", name, least)});
  };
  at_least("max_options", options.max_options, 1);
  at_least("max_cuts", options.max_cuts, 1);
  at_least("max_groups", options.max_groups, 0);
  at_least("max_epochs", options.max_epochs, 0);
  if (options.samples != 0 && (options.samples < 5 || options.samples > 10'000)) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("explore: samples = {}", options.samples),
                 .hint = "samples is 0, or from 5 to 10000: fewer show nothing"});
  }
  at_least("least_gain", options.least_gain, 1e-4);
  at_least("max_runs", static_cast<double>(options.max_runs), 1);
  at_least("max_seconds", options.max_seconds, 0);
  at_least("max_emulated_operations", options.max_emulated_operations, 0);
  at_least("max_executables", options.max_executables, 2);
}

}  // namespace

struct Explorer::Impl {
  explicit Impl(runtime::ExploredGraph explored)
      : start(std::chrono::steady_clock::now()),
        usual(std::make_shared<runtime::Variant>(compile(explored.graph, explored.device, explored.compile),
                                                 explored.dims)),
        backend(*backend_of(usual->executable().device())),
        exploration(std::move(explored), usual,
                    std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()),
        current(usual) {}

  Status run(Stream& stream, std::span<const BufferView> buffers) noexcept;
  bool explore(Stream& stream, std::span<const BufferView> buffers, Status& ran) noexcept;

  const std::chrono::steady_clock::time_point start;
  const std::shared_ptr<runtime::Variant> usual;
  runtime::Backend& backend;
  std::atomic<std::uint64_t> parameters{1};
  std::atomic<std::int64_t> runs{0};
  std::atomic<bool> over{false};
  mutable std::mutex exploring;  // the exploration, and whoever is measured
  runtime::Exploration exploration;
  std::mutex choosing;                        // what runs that are not measured take
  std::shared_ptr<runtime::Variant> current;  // guarded by it
};

Status Explorer::Impl::run(Stream& stream, std::span<const BufferView> buffers) noexcept {
  const bool first = runs++ == 0;  // the default's workspace comes before what exploration needs
  Status ran;
  if (!over && !first && explore(stream, buffers, ran)) return ran;
  std::shared_ptr<runtime::Variant> variant;
  {
    const std::lock_guard lock(choosing);
    variant = current;
  }
  return variant->run(stream, buffers, parameters);
}

/// Whether it has run.
bool Explorer::Impl::explore(Stream& stream, std::span<const BufferView> buffers, Status& ran) noexcept {
  const std::unique_lock lock(exploring, std::try_to_lock);
  if (!lock || backend.captures(queue_of(stream))) return false;
  try {
    const std::shared_ptr<runtime::Variant> variant = exploration.next(stream, buffers);
    if (std::shared_ptr<runtime::Variant> winner = exploration.take_winner()) {
      const std::lock_guard choice(choosing);
      current = std::move(winner);
    }
    over = exploration.over();
    if (!variant) return false;
    ran = variant->run_measured(stream, buffers, parameters);
    ran ? exploration.enqueued() : exploration.refused(ran);
    return true;
  } catch (const std::exception& failed) {
    exploration.stop(failed.what());
    over = true;
    return false;
  }
}

Explorer::Explorer(const Graph& graph, const Device& device, const DimValues& dims,
                   const ExploreOptions& explore, const CompileOptions& compile) {
  check(device, explore);
  CompileOptions of_dims = compile;
  of_dims.versions = of_dims.builds = 1;  // it measures one way to run at a time
  impl_ = std::make_unique<Impl>(runtime::ExploredGraph{graph, device, dims, explore, of_dims});
}

Explorer::Explorer(Explorer&&) noexcept = default;
Explorer& Explorer::operator=(Explorer&&) noexcept = default;
Explorer::~Explorer() = default;

const std::vector<Slot>& Explorer::slots() const { return impl_->usual->executable().slots(); }
const Executable& Explorer::default_executable() const { return impl_->usual->executable(); }
const Prepared& Explorer::prepared() const { return impl_->usual->prepared(); }
Status Explorer::run(Stream& stream, std::span<const BufferView> buffers) noexcept {
  return impl_->run(stream, buffers);
}
void Explorer::parameters_changed() { ++impl_->parameters; }
bool Explorer::done() const { return impl_->over; }

ExploreProgress Explorer::progress() const {
  ExploreProgress result;
  const std::lock_guard lock(impl_->exploring);
  impl_->exploration.describe(result);
  result.runs = impl_->runs;
  return result;
}

Tuning Explorer::tuning() const {
  const std::lock_guard lock(impl_->exploring);
  return Tuning(impl_->exploration.tuning());
}

void Explorer::wait_for_compiler() { impl_->exploration.wait_for_compiler(); }

}  // namespace v0
}  // namespace fuse
