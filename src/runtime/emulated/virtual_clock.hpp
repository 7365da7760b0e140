// VirtualClock: the time that work on a device would take, where the host's clock says nothing about it. Each
// queue has a time of its own. Work advances it by what the cost model says, or by a planted cost; a wait
// for an event takes the later of two times. So an exploration can be tested whose optimum is known.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>

#include "runtime/device/backend.hpp"
#include "target/residency.hpp"

namespace fuse::runtime {

/// What a queue is about to do.
struct ClockedWork {
  std::string_view kernel{};  ///< the name of a kernel; empty: a GEMM, a copy or a memset
  const GemmDesc* gemm = nullptr;
  schedule::Residency residency{};  ///< of a kernel
  std::int64_t bytes = 0;           ///< of what it reads and writes, each once
  double seconds = 0;               ///< by the cost model
  int beside = 0;                   ///< other queues that are at work when it starts
};

/// The seconds that work takes. It is pure.
using PlantedCost = std::function<double(const ClockedWork&)>;

class VirtualClock {
 public:
  /// `noise`: the standard deviation of each cost, as a share of it, drawn from the seed.
  VirtualClock(double noise, std::uint64_t seed) : noise_(noise), seed_(seed) {}
  VirtualClock(const VirtualClock&) = delete;
  VirtualClock& operator=(const VirtualClock&) = delete;

  void plant(PlantedCost cost);
  /// Advances the time of the queue by what the work costs.
  void spend(const void* queue, ClockedWork work);
  /// The queue does nothing before then.
  void wait_until(const void* queue, double time);
  double time(const void* queue) const;
  void forget(const void* queue);

 private:
  double noisy(double seconds);

  const double noise_;
  const std::uint64_t seed_;
  mutable std::mutex mutex_;
  PlantedCost cost_{};
  std::map<const void*, double> times_;
  std::uint64_t drawn_ = 0;
};

/// Plants costs on an emulated device with a virtual clock. Throws an internal Error for another device.
void plant_costs(Backend&, PlantedCost);

}  // namespace fuse::runtime
