// What a step costs by itself, by a roofline: the larger of traffic over bandwidth and operations over their
// rate, after a launch. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "target/residency.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

struct StepCost {
  double seconds = 0;
  double share = 1;  ///< share of the device that it fills, above 0 and at most 1
};

/// The bytes that a multiprocessor keeps in flight where it moves as much as it can.
inline constexpr double bytes_in_flight = 32 << 10;
/// A core of a CPU moves so many bytes before it pays to ask another one for help.
inline constexpr double bytes_of_chunk = 128 << 10;

/// `bytes`: those of all operands and results, each once. `most`: the share of the bandwidth that the
/// threads' accesses reach, however many blocks there are. `operations`: arithmetic, two per instruction.
StepCost kernel_cost(std::int64_t bytes, const Residency&, const Target&, double most = 1,
                     double operations = 0);
/// The cost where `share` says what the accesses reach, however many block slots are taken.
StepCost memory_cost(std::int64_t bytes, double share, const Target&);
/// A GEMM's blocks are assumed to make tiles of 128 x 128.
StepCost gemm_cost(std::int64_t bytes, std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k,
                   const Target&);
/// The cost of a copy or a memset of `bytes` read and written.
StepCost transfer_cost(std::int64_t bytes, const Target&);

}  // namespace fuse::schedule
