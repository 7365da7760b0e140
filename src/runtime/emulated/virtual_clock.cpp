// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulated/virtual_clock.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace fuse::runtime {
namespace {

/// A number between 0 and 1, never either, for each counter (the finaliser of SplitMix64).
double uniform(std::uint64_t seed, std::uint64_t counter) {
  std::uint64_t bits = seed + counter * 0x9e3779b97f4a7c15ull;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ull;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebull;
  bits ^= bits >> 31;
  return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
}

}  // namespace

void VirtualClock::plant(PlantedCost cost) {
  const std::lock_guard lock(mutex_);
  cost_ = std::move(cost);
}

/// By the method of Box and Muller. No work takes less than a tenth of what it costs.
double VirtualClock::noisy(double seconds) {
  if (noise_ == 0) return seconds;
  const double u = uniform(seed_, 2 * drawn_), v = uniform(seed_, 2 * drawn_ + 1);
  ++drawn_;
  const double normal = std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  return seconds * std::max(0.1, 1 + noise_ * normal);
}

void VirtualClock::spend(const void* queue, ClockedWork work) {
  const std::lock_guard lock(mutex_);
  double& now = times_[queue];
  work.beside = static_cast<int>(std::count_if(times_.begin(), times_.end(), [&](const auto& other) {
    return other.first != queue && other.second > now;
  }));
  now += noisy(cost_ ? cost_(work) : work.seconds);
}

void VirtualClock::wait_until(const void* queue, double time) {
  const std::lock_guard lock(mutex_);
  double& now = times_[queue];
  now = std::max(now, time);
}

double VirtualClock::time(const void* queue) const {
  const std::lock_guard lock(mutex_);
  const auto found = times_.find(queue);
  return found == times_.end() ? 0 : found->second;
}

void VirtualClock::forget(const void* queue) {
  const std::lock_guard lock(mutex_);
  times_.erase(queue);
}

}  // namespace fuse::runtime
