// What one run of a plan moves, counted by the emulated device in checked mode, and the least it could.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compile/pipeline/pipeline.hpp"
#include "runtime/device/backend.hpp"

namespace fuse::runtime {

/// Bytes that steps other than GEMMs move.
struct Traffic {
  std::int64_t load = 0, store = 0;                ///< as the kernels ask for them
  std::int64_t sector_load = 0, sector_store = 0;  ///< in whole sectors, once for each access of a warp
  std::int64_t floor = 0;                          ///< what has to be read and written once

  std::int64_t requested() const { return load + store; }
  std::int64_t sectors() const { return sector_load + sector_store; }
};

/// The traffic of values of 1 MB and more, and of smaller ones, which caches hide when they are read twice.
struct PlanTraffic {
  Traffic large_values{}, small_values{};
};

/// `counts` are those of one run of the plan, for these dims.
PlanTraffic traffic_of(const Compiled&, const ir::Graph&, const DimValues& dims,
                       const std::vector<KernelCounts>& counts);

/// How often all threads executed each costly op, by its name; ops that were not executed are left out.
std::map<std::string, std::int64_t> executed_costly_ops(const std::vector<KernelCounts>& counts);

}  // namespace fuse::runtime
