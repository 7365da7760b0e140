// SPDX-License-Identifier: Apache-2.0
#include "timing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/access.hpp"

namespace fuse::bench {
namespace {

double quantile(const std::vector<double>& sorted, double part) {
  const double at = part * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

// A GPU's samples are long against an event's resolution of half a microsecond; the emulated device's short
// enough for a smoke test.
struct Effort {
  int samples;
  double sample_seconds;
  std::int64_t most_runs;
};
Effort effort(bool gpu) { return gpu ? Effort{25, 4e-3, 2000} : Effort{5, 2e-3, 50}; }

}  // namespace

Spread Spread::of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {quantile(samples, 0.5), quantile(samples, 0.25), quantile(samples, 0.75),
          samples.front(),        samples.back(),          static_cast<int>(samples.size())};
}

Json Spread::to_json() const {
  return {{"median", figure(median * 1e6)}, {"q1", figure(q1 * 1e6)},   {"q3", figure(q3 * 1e6)},
          {"min", figure(min * 1e6)},       {"max", figure(max * 1e6)}, {"n", n}};
}

std::int64_t DeviceTimer::sets_past_l2(std::int64_t bytes_of_a_set) {
  if (!gpu_) return 2;
  const std::int64_t bytes = std::max<std::int64_t>(bytes_of_a_set, 1),
                     l2_bytes = backend().target().l2_bytes;
  // Very small sets stop at a number that still allocates quickly; what they time is launches.
  return std::clamp<std::int64_t>(2 * l2_bytes / bytes + 1, 1, 256);
}

DeviceTimer::DeviceTimer(const Device& device)
    : gpu_(device.kind() == DeviceKind::cuda),
      stream_(device.stream()),
      from_(backend_of(device)->create_event()),
      to_(backend_of(device)->create_event()) {}

void DeviceTimer::enqueue(std::int64_t runs, std::int64_t sets, const Run& run) {
  for (std::int64_t i = 0; i < runs; ++i) run(next_++ % sets).throw_if_failed();
}

double DeviceTimer::between_marks(const std::function<void()>& enqueue) {
  double seconds = 0;
  backend().record(queue_of(stream_), *from_).throw_if_failed();
  enqueue();
  backend().record(queue_of(stream_), *to_).throw_if_failed();
  backend().elapsed(*from_, *to_, seconds).throw_if_failed();
  return seconds;
}

std::int64_t DeviceTimer::runs_of_a_sample(std::int64_t sets, const Run& run) {
  const Effort e = effort(gpu_);
  std::int64_t runs = 1;
  for (;;) {
    const double seconds = between_marks([&] { enqueue(runs, sets, run); });
    if (seconds >= e.sample_seconds || runs >= e.most_runs) return runs;
    const double wanted = static_cast<double>(runs) * e.sample_seconds / std::max(seconds, 1e-7);
    runs = std::min(std::max(static_cast<std::int64_t>(std::ceil(wanted)), 2 * runs), e.most_runs);
  }
}

Spread DeviceTimer::device(std::int64_t sets, const Run& run) {
  enqueue(gpu_ ? 3 : 1, sets, run);
  const std::int64_t runs = runs_of_a_sample(sets, run);
  std::vector<double> samples;
  for (int i = 0; i < effort(gpu_).samples; ++i) {
    samples.push_back(between_marks([&] { enqueue(runs, sets, run); }) / static_cast<double>(runs));
  }
  return Spread::of(std::move(samples));
}

std::optional<Spread> DeviceTimer::captured(std::int64_t sets, const Run& run) {
  if (!gpu_) return std::nullopt;
  const std::int64_t runs = std::min(runs_of_a_sample(sets, run), std::max<std::int64_t>(sets, 100));
  const auto work = backend().capture(queue_of(stream_), [&]() -> Status {
    for (std::int64_t i = 0; i < runs; ++i) {
      if (Status status = run(next_++ % sets); !status) return status;
    }
    return {};
  });
  if (!work) return std::nullopt;
  const auto launch = [&] { work->launch(queue_of(stream_)).throw_if_failed(); };
  std::vector<double> samples;
  between_marks(launch);
  for (int i = 0; i < effort(gpu_).samples; ++i) {
    samples.push_back(between_marks(launch) / static_cast<double>(runs));
  }
  return Spread::of(std::move(samples));
}

std::optional<Spread> DeviceTimer::host(std::int64_t sets, std::int64_t launches, const Run& run) {
  if (!gpu_) return std::nullopt;
  const std::int64_t runs = std::clamp<std::int64_t>(256 / std::max<std::int64_t>(launches, 1), 1, 100);
  std::vector<double> samples;
  for (int i = 0; i < effort(gpu_).samples; ++i) {
    stream_.synchronize().throw_if_failed();
    const auto start = std::chrono::steady_clock::now();
    enqueue(runs, sets, run);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    samples.push_back(took.count() / static_cast<double>(runs));
  }
  stream_.synchronize().throw_if_failed();
  return Spread::of(std::move(samples));
}

}  // namespace fuse::bench
