// Time on a device: marks around many runs, each on other buffers than the last.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <fuse/device.hpp>
#include <optional>
#include <vector>

#include "base/access.hpp"
#include "report/bench_json.hpp"
#include "runtime/device/backend.hpp"

namespace fuse::bench {

/// Of n samples, in seconds.
struct Spread {
  double median = 0, q1 = 0, q3 = 0, min = 0, max = 0;
  int n = 0;

  /// `samples` is not empty. Quartiles are interpolated between samples.
  static Spread of(std::vector<double> samples);
  Json to_json() const;  ///< in microseconds
};

class DeviceTimer {
 public:
  explicit DeviceTimer(const Device& device);

  /// Enqueues one run on the buffer set `set`, in [0, sets).
  using Run = std::function<Status(std::int64_t set)>;

  /// Device seconds of one run. Warms up, then every sample is as many runs as take a while.
  Spread device(std::int64_t sets, const Run& run);
  /// The same runs as one captured graph; empty where the device captures none.
  std::optional<Spread> captured(std::int64_t sets, const Run& run);
  /// Host seconds of one call of `run`, in bursts short enough that the queue never fills; empty where the
  /// call waits for the work. `launches` is what one run enqueues.
  std::optional<Spread> host(std::int64_t sets, std::int64_t launches, const Run& run);

  /// Buffer sets to use in turn, so that more than twice the L2 cache is touched before a set comes back. Two
  /// on the emulated device, which has no such cache.
  std::int64_t sets_past_l2(std::int64_t bytes_of_a_set);

  Stream& stream() { return stream_; }
  runtime::Backend& backend() { return *backend_of(stream_); }

 private:
  double between_marks(const std::function<void()>& enqueue);
  void enqueue(std::int64_t runs, std::int64_t sets, const Run& run);
  std::int64_t runs_of_a_sample(std::int64_t sets, const Run& run);

  bool gpu_;
  Stream stream_;
  std::unique_ptr<runtime::Event> from_, to_;
  std::int64_t next_ = 0;  // runs so far: its remainder is the next set
};

}  // namespace fuse::bench
