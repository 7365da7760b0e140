// Kernels by loops of their own: nests of the enumeration, and random lists of splits that the rules take,
// lowered and run on the checked emulated device in several orders of threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/mapping/legal_nests.hpp"
#include "schedule/nest/choices.hpp"
#include "schedule/segments/segment.hpp"
#include "target/target.hpp"

namespace fuse::fuzz {

/// What the campaign and the tests try: numbers that few extents are multiples of.
schedule::NestNumbers odd_numbers();

struct NestSettings {
  std::uint64_t seed = 1;
  std::int64_t count = 0;  ///< nests drawn from the enumeration
  std::int64_t lists = 0;  ///< random lists drawn
  std::int64_t batch = 32;
  int jobs = 1;
};

struct NestTotals {
  std::map<std::string, std::size_t> structures{};  ///< of each phase, on any profile
  std::int64_t nests = 0;                           ///< run, of the enumeration
  std::int64_t drawn = 0, taken = 0;                ///< random lists, and those of them that were run
  std::int64_t wanted = 0, runs = 0;                ///< of nests, each on one profile in three orders
  std::vector<std::string> failures{};
};

NestTotals run_nests(const NestSettings&, const std::function<void(const NestTotals&)>& progress);

}  // namespace fuse::fuzz
