// PlanFacts: what prepare asks of a plan that is the same for all dims. Values may have equal sizes, and
// steps may do the same with other values, as those of the layers of a network: what prepare finds for the
// first of them serves all.
//
// Before:  t0 f32[B, 64]   t1 f32[B, 64]   t2 f32[64]   0: kernel 0 of t0, t2   1: kernel 0 of t1, t2
// After:   values 0 0 2    steps 0 0
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.hpp"

namespace fuse::runtime {

/// What says where a value lies.
enum class Place : std::uint8_t {
  slot,    ///< it has the buffer of the slot with its number
  packed,  ///< the packed memory
  memory,  ///< memory of its own in the workspace
  donor,   ///< the memory of another value
  inside,  ///< a part of another value's memory
};
std::vector<Place> places_of(const schedule::Plan&);

struct PlanFacts {
  explicit PlanFacts(const schedule::Plan&);

  std::vector<schedule::ValueId> roots;   ///< schedule::roots
  std::vector<Place> places;              ///< places_of
  std::vector<schedule::ValueId> values;  ///< for each value, the first that has as many bytes
  std::vector<std::uint32_t> tables;      ///< for each table, the first that is equal
  std::vector<std::uint32_t> steps;       ///< for each step of a run, the first that does the same
};

}  // namespace fuse::runtime
