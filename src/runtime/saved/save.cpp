// Executable::save and load. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/access.hpp"
#include "os/mapped_file.hpp"
#include "runtime/device/hot_path_check.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "runtime/saved/container.hpp"
#include "runtime/saved/plan_file.hpp"

namespace fuse {
namespace runtime {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{4} << 30;  // the largest saved plan

/// What a file says about its graph.
class SavedOrigin final : public Origin {
 public:
  explicit SavedOrigin(Provenance kept) : kept_(std::move(kept)) {}

  std::string explain(const Executable::Impl&) const override { return kept_.explanation; }
  const std::string& source() const override { return kept_.source; }
  std::string graph() const override { return kept_.graph; }
  std::string options() const override { return kept_.options; }
  const Compiled& stages() const override {
    throw Error({.code = ErrorCode::unsupported,
                 .message = "a saved plan does not keep the stages of the compiler",
                 .hint = "compile the graph again"});
  }
  Status evaluate(const Prepared::Impl&, std::span<const BufferView>) const noexcept override {
    return {ErrorCode::internal, "a saved plan is not for the reference device"};
  }

 private:
  const Provenance kept_;
};

SavedTarget target_of(const Executable::Impl& impl) {
  if (impl.device.kind() == DeviceKind::reference) {
    throw Error({.code = ErrorCode::unsupported,
                 .message = "an executable of the reference device has no kernels to save",
                 .hint = "compile for the device that is to run it"});
  }
  return saved_target(backend_of(impl.device)->fits(), impl.builds,
                      {.explanation = impl.origin->explain(impl),
                       .source = impl.origin->source(),
                       .graph = impl.origin->graph(),
                       .options = impl.origin->options()});
}

bool same_slot(const Slot& a, const Slot& b) {
  return a.kind == b.kind && a.name == b.name && a.dtype == b.dtype && a.dims == b.dims && a.donor == b.donor;
}

void check_one_graph(const Executable::Impl& first, const Executable::Impl& other) {
  const std::vector<Slot>&mine = first.slots(), &its = other.slots();
  if (std::equal(mine.begin(), mine.end(), its.begin(), its.end(), same_slot)) return;
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("'{}' and '{}' have other inputs, parameters or outputs",
                                      first.signature().name, other.signature().name),
               .hint = "a saved plan has one graph, compiled for several devices"});
}

void check_new(const std::vector<SavedTarget>& targets, const SavedTarget& added, const std::string& device) {
  for (const SavedTarget& target : targets) {
    if (!differences(target.fits, added.fits).empty()) continue;
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("two executables are for a device such as {}", device)});
  }
}

/// What is written can be read: an extent that the text form has no room for is found here, not by who loads.
void check_readable(const std::vector<SavedTarget>& targets, const std::string& path) {
  try {
    for (const SavedTarget& target : targets) runnable(target, path);
  } catch (const Error& error) {
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::unsupported,
                 .message = "what would be saved could not be loaded: " + error.info().message});
  }
}

SavedTarget fitting(std::vector<SavedTarget> targets, const Device& device, const std::string& path) {
  const std::vector<Fit> here = backend_of(device)->fits();
  std::string why;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::string differ = differences(targets[i].fits, here);
    if (differ.empty()) return std::move(targets[i]);
    why += fmt::format("{}plan {}: {}", why.empty() ? "" : "\n", i, differ);
  }
  throw Error({.kind = ErrorKind::runtime,
               .code = ErrorCode::incompatible_version,
               .message = fmt::format("{} has no plan for {}\n{}", path, device.name(), why),
               .hint = "compile the graph for this device, and save it into the file too"});
}

}  // namespace
}  // namespace runtime

inline namespace v0 {

void save(const std::string& path, std::span<const Executable> executables) {
  std::vector<runtime::SavedTarget> targets;
  for (const Executable& executable : executables) {
    const Executable::Impl& impl = *impl_of(executable);
    runtime::check_one_graph(*impl_of(executables.front()), impl);
    runtime::SavedTarget target = runtime::target_of(impl);
    runtime::check_new(targets, target, impl.device.name());
    targets.push_back(std::move(target));
  }
  runtime::check_readable(targets, path);
  const std::string file = runtime::plan_file(targets);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(file));
  write_file_atomically(path, {&bytes, 1});
}

void Executable::save(const std::string& path) const { fuse::save(path, {this, 1}); }

Executable Executable::load(const std::string& path, const Device& device) {
  runtime::contract::forbid("loads a plan");
  const std::string file = runtime::read_whole(path, runtime::most_bytes);
  runtime::SavedTarget target = runtime::fitting(runtime::parse_plan_file(file, path), device, path);
  auto origin = std::make_shared<runtime::SavedOrigin>(std::move(target.provenance));
  return runtime::make_executable(
      device, std::move(origin),
      runtime::loaded_builds(runtime::runnable(std::move(target), path), *backend_of(device)));
}

}  // namespace v0
}  // namespace fuse
