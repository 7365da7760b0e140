// The ways to merge each group of GEMMs of a graph: Astra's fusion sets by a common argument, in chunks
// (4.4.1).
//
//   x -> matmul w0, w1, .. w11      one GEMM of 12, 6 of two, 3 of four, or 12 apart
//
// Groups that compute the same, such as those of each time step, are one variable.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/graph/question.hpp"
#include "schedule/decisions/decisions.hpp"

namespace fuse::runtime {

/// A group that the compiler asked about.
struct GemmGroup {
  std::uint64_t key = 0;               ///< of the question
  std::size_t members = 0;             ///< GEMMs in it
  double work = 0;                     ///< multiplications at the hints, of all groups with this key
  bool merged = false, apart = false;  ///< what becomes of them by default; both, where they differ
};

/// The groups that the compiler asks about, each key once.
class GroupSurvey {
 public:
  void see(const ir::Asked&);
  /// Those with the most work first. `answers`: the default's.
  std::vector<GemmGroup> heaviest(int most, const std::vector<schedule::Answer>& answers) const;

 private:
  std::vector<GemmGroup> groups_;
};

/// How many GEMMs at most become one, in the ways to merge a group besides the default: all of them, chunks,
/// or 1, which leaves them apart. What is furthest from the default comes first.
std::vector<std::size_t> chunk_sizes(const GemmGroup&);

/// Insists that the groups of one key are merged in chunks of this size.
ir::Insist merged_in_chunks(std::uint64_t key, std::size_t size);

/// The answers to `merge` of the keys whose answers differ from those of the default, and of `key`.
std::vector<schedule::Answer> differing_merges(const std::vector<schedule::Answer>& own,
                                               const std::vector<schedule::Answer>& usual, std::uint64_t key);

}  // namespace fuse::runtime
