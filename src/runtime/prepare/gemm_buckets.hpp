// A table of GEMM algorithms by buckets of extents, from what was timed (BladeDISC, 5.2.2; docs/gemm.md).
//
// Before:  B * S = 8: algorithm 1; 64: algorithm 1; 512: algorithm 0
// After:   test 0: B * S <= 64  yes: version 1  no: version 0
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/dim.hpp>
#include <string>
#include <vector>

#include "plan/gemm_algorithm.hpp"
#include "plan/plan.hpp"

namespace fuse::runtime {

/// The number of the extents in (2^(b-1), 2^b]; those of at most 1 are 0.
int bucket_of(std::int64_t extent);

/// What was fastest for some extents.
struct TimedExtents {
  std::vector<std::int64_t> values{};
  std::string algorithm{};  ///< Gemm::recorded; empty: the library's proposal
};

/// Of a GEMM, those that depend on the dims.
std::vector<Dim> symbolic_extents(const schedule::GemmStep&);
/// Equal for GEMMs of a plan that one table serves.
std::string gemm_text(const schedule::GemmStep&);

/// `timed` is not empty, and has no two of the same buckets; their values are those of `extents`. Extents of
/// a bucket that is not among them take the algorithm of the next larger one, else of the largest. The
/// library is for the caller to fill in.
schedule::GemmAlgorithms algorithms_by_bucket(const std::vector<Dim>& extents,
                                              std::vector<TimedExtents> timed);

}  // namespace fuse::runtime
