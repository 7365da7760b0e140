// SPDX-License-Identifier: Apache-2.0
#include "target/step_cost.hpp"

#include <algorithm>
#include <cmath>

namespace fuse::schedule {
namespace {

constexpr double gemm_tile = 128;
// The caches that cores share bring so many times what memory does.
constexpr double speed_of_caches = 2.5;

/// The share of a CPU that a launch keeps busy: each core takes chunks of neighbouring blocks.
double share_of_cores(double bytes, double blocks, const Target& target) {
  return std::min(blocks, std::ceil(bytes / bytes_of_chunk)) / target.sms;
}

/// What the last-level cache has room for comes from there: the step before has just written it, or read it.
double bandwidth(double bytes, const Target& target) {
  const bool cached = is_cpu(target) && bytes <= static_cast<double>(target.l2_bytes);
  return target.bandwidth * (cached ? speed_of_caches : 1);
}

/// A part of the device has a part of its bandwidth and of its arithmetic.
StepCost roofline(double bytes, double operations, double share, const Target& target) {
  share = std::clamp(share, 1.0 / (4.0 * target.sms), 1.0);
  const double traffic = bytes / (bandwidth(bytes, target) * share);
  const double arithmetic = operations / (target.flops_f32 * share);
  return {target.launch_seconds + std::max(traffic, arithmetic), share};
}

}  // namespace

StepCost kernel_cost(std::int64_t bytes, const Residency& launch, const Target& target, double most,
                     double operations) {
  if (is_cpu(target)) {
    const double moved = static_cast<double>(bytes);
    return roofline(moved, operations, share_of_cores(moved, static_cast<double>(launch.blocks), target),
                    target);
  }
  const double slots = std::max(1, blocks_per_sm(launch, target)) * static_cast<double>(target.sms);
  const double share = std::min(most, static_cast<double>(launch.blocks) / slots);
  return roofline(static_cast<double>(bytes), operations, share, target);
}

StepCost memory_cost(std::int64_t bytes, double share, const Target& target) {
  return roofline(static_cast<double>(bytes), 0, share, target);
}

StepCost gemm_cost(std::int64_t bytes, std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k,
                   const Target& target) {
  const auto tiles = [](std::int64_t extent) { return std::ceil(static_cast<double>(extent) / gemm_tile); };
  const double blocks = static_cast<double>(batch) * tiles(m) * tiles(n);
  const double operations = 2.0 * static_cast<double>(batch) * static_cast<double>(m) *
                            static_cast<double>(n) * static_cast<double>(k);
  return roofline(static_cast<double>(bytes), operations, blocks / target.sms, target);
}

StepCost transfer_cost(std::int64_t bytes, const Target& target) {
  if (is_cpu(target)) return kernel_cost(bytes, {.blocks = bytes}, target);
  return roofline(static_cast<double>(bytes), 0, static_cast<double>(bytes) / (bytes_in_flight * target.sms),
                  target);
}

}  // namespace fuse::schedule
