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
#include <functional>
#include <optional>
#include <string>
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

/// All at once, none, or so many at once: parts of a group have at most so many members.
struct Merging {
  std::size_t most = 1;  ///< members of a part; 1: none are merged
  std::string name{};    ///< "apart", "chunks of 4", "merged"
};
/// Those of a group besides the default: what is furthest from it first.
std::vector<Merging> mergings_of(const GemmGroup&);

/// Insists that the groups of one key are merged so.
std::function<std::optional<bool>(const ir::Asked&)> merged_so(std::uint64_t key, const Merging&);

/// The answers to `merge` of the keys whose answers differ from those of the default, and of `key`.
std::vector<schedule::Answer> differing_merges(const std::vector<schedule::Answer>& own,
                                               const std::vector<schedule::Answer>& usual, std::uint64_t key);

}  // namespace fuse::runtime
