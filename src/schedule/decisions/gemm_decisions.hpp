// Decisions about GEMMs: which algorithm each runs with, by what it computes.
//
//   # attention: %12 matmul
//   gemm 6f1c2a9be0d31455 {algorithm = 2}
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "schedule/decisions/decisions.hpp"

namespace fuse::schedule {

/// Gives GEMM segments the algorithms that entries have for them. Throws Error with code invalid_argument,
/// which names the line, where an entry fits no GEMM of the graph; where these are skipped, it counts them.
std::size_t take_algorithms(const std::vector<GemmDecision>&, bool skip_unfit, const ir::Graph&, Partition&);
/// The entries without those whose algorithm is a number of another version of the library: `library` is this
/// machine's. Throws Error with code invalid_argument for the first of them; where they are skipped, counts
/// them.
std::vector<GemmDecision> of_library(const Decisions&, const std::string& library, bool skip_unfit,
                                     std::size_t& unfit);
/// The entries of the GEMM segments that have an algorithm.
std::vector<GemmDecision> gemm_decisions_of(const ir::Graph&, const Partition&);
/// The same for all GEMM segments: one that has no algorithm runs with the first.
std::vector<GemmDecision> all_gemm_decisions_of(const ir::Graph&, const Partition&);

}  // namespace fuse::schedule
