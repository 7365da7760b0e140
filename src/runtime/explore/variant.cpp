// SPDX-License-Identifier: Apache-2.0
#include "runtime/explore/variant.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "runtime/explore/space.hpp"
#include "schedule/segments/canonical.hpp"

namespace fuse::runtime {
namespace {

/// For each step of the plan, its region; steps and segments have the same nodes.
std::vector<std::string> regions_of(const Compiled& stages) {
  const auto form_of = schedule::canonical_forms(stages.graph, stages.partition.storage);
  std::map<NodeList, std::string> known;
  for (const schedule::Segment& segment : stages.partition.segments) {
    if (segment.kind == schedule::Segment::Kind::custom) continue;
    const std::uint64_t key = content_key(stages.graph, form_of(segment));
    const bool gemm = segment.kind == schedule::Segment::Kind::gemm;
    known.emplace(segment.nodes, gemm ? gemm_name(key) : kernel_name(key));
  }
  std::vector<std::string> result;
  for (const schedule::Step& step : stages.plan.steps) {
    const auto found = known.find(step.nodes);
    result.push_back(found == known.end() ? "" : found->second);
  }
  return result;
}

/// For each command, what its step has; `other` for those of another plan.
template <class T>
std::vector<T> by_command(const Workspace& workspace, const std::vector<T>& by_step, const T& other) {
  const Prepared::Impl& p = *impl_of(workspace)->prepared;
  std::vector<T> result;
  for (const Command& command : p.commands.list)
    result.push_back(p.as_planned ? by_step[p.steps[command.step].number] : other);
  return result;
}

}  // namespace

Status status_of(const std::exception& failed) noexcept {
  const auto* const error = dynamic_cast<const Error*>(&failed);
  return {error ? error->code() : ErrorCode::internal, failed.what()};
}

Variant::Variant(Executable executable, const DimValues& dims, ExecutionMode mode,
                 std::shared_ptr<PackedMemory> packed)
    : executable_(std::move(executable)),
      prepared_(executable_.prepare(dims)),
      mode_(mode),
      packed_(packed ? std::move(packed) : std::make_shared<PackedMemory>(executable_, prepared_)) {}

std::shared_ptr<Workspace> Variant::workspace_for(const Stream& stream) {
  constexpr std::size_t most = 8;
  const void* const queue = &queue_of(stream);
  const auto known = std::ranges::find(workspaces_, queue, &OnStream::queue);
  if (known != workspaces_.end()) {
    workspaces_.splice(workspaces_.begin(), workspaces_, known);
  } else {
    OnStream made{.queue = queue};
    made.workspace = std::make_shared<Workspace>(prepared_.workspace({mode_}));
    made.captured = made.workspace;
    if (mode_ != ExecutionMode::streams) made.captured = std::make_shared<Workspace>(prepared_.workspace());
    workspaces_.push_front(std::move(made));
    if (workspaces_.size() > most) workspaces_.pop_back();  // a run in flight keeps what it needs
  }
  const bool captures =
      mode_ != ExecutionMode::streams && backend_of(executable_.device())->captures(queue_of(stream));
  return captures ? workspaces_.front().captured : workspaces_.front().workspace;
}

Status Variant::run(Stream& stream, std::span<const BufferView> buffers, std::uint64_t parameters) noexcept {
  try {
    std::shared_ptr<Workspace> workspace;
    {
      const std::lock_guard lock(mutex_);
      workspace = workspace_for(stream);
    }
    if (Status failed = packed_->pack(prepared_, stream, buffers, parameters); !failed) return failed;
    return prepared_.run(stream, buffers, *workspace, packed_->view());
  } catch (const std::exception& failed) {
    return status_of(failed);
  }
}

void Variant::make_measurable(const EpochTimes& epochs) {
  if (impl_of(measuring_)) return;
  Workspace made = prepared_.workspace({mode_});
  if (mode_ == ExecutionMode::graph) {
    Backend& backend = *backend_of(executable_.device());
    marks_ = {.start = backend.create_event(), .end = backend.create_event()};
    measuring_ = std::move(made);
    return;
  }
  made.measure();
  const Compiled& stages = stages_of(executable_);
  regions_ = by_command(made, regions_of(stages), std::string());
  levels_ = by_command(made, epochs.levels_of(stages.plan), -1);
  epochs_ = epochs;
  measuring_ = std::move(made);
}

Status Variant::run_measured(Stream& stream, std::span<const BufferView> buffers,
                             std::uint64_t parameters) noexcept {
  try {
    if (Status failed = packed_->pack(prepared_, stream, buffers, parameters); !failed) return failed;
    Backend& backend = *backend_of(executable_.device());
    if (marks_.start) {
      if (Status failed = backend.record(queue_of(stream), *marks_.start); !failed) return failed;
    }
    if (Status failed = prepared_.run(stream, buffers, measuring_, packed_->view()); !failed) return failed;
    return marks_.end ? backend.record(queue_of(stream), *marks_.end) : Status();
  } catch (const std::exception& failed) {
    return status_of(failed);
  }
}

std::optional<std::map<std::string, double>> Variant::measured() const {
  if (marks_.start) {
    Backend& backend = *backend_of(executable_.device());
    if (!backend.passed(*marks_.end)) return std::nullopt;
    double whole = 0;
    backend.elapsed(*marks_.start, *marks_.end, whole).throw_if_failed();
    return std::map<std::string, double>{{"", whole}};
  }
  const std::optional<Profile> profile = measuring_.measured();
  if (!profile) return std::nullopt;
  std::map<std::string, double> seconds = {{"", profile->seconds}};
  std::vector<double> ends(epochs_.levels());
  for (std::size_t i = 0; i < profile->steps.size(); ++i) {
    const StepTime& step = profile->steps[i];
    if (!regions_[i].empty()) seconds[regions_[i]] += step.end - step.start;
    if (levels_[i] < 0) continue;
    double& end = ends[static_cast<std::size_t>(levels_[i])];
    end = std::max(end, step.end);
  }
  epochs_.add(ends, seconds);
  return seconds;
}

}  // namespace fuse::runtime
