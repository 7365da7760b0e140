// Epochs: which steps of a run are independent of each other, and the ways to spread them over streams
// (Astra, 4.5.3 to 4.5.5). Pure counting: it knows no graph.
//
//   step   0 a   1 a   2 b (after 0, 1)   3 a (after 2)   4 a (after 2)
//   epoch  level 0: {0 1}                 level 2: {3 4}            level 1 has one step, and no choice
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fuse::explore {

/// What is put on a stream as one.
struct Work {
  std::vector<std::uint32_t> after{};  ///< others that have ended before it starts; all smaller
  std::uint64_t kind = 0;              ///< the same for what computes the same; 0: it is not placed
  double seconds = 0;                  ///< an estimate
};

/// Work that is equivalent: of one kind, after and before work of the same kinds. Which of it runs on which
/// stream does not matter (4.5.5).
struct EquivalenceClass {
  std::vector<std::uint32_t> members{};
  double seconds = 0;  ///< of each
};

/// All work of one level: the longest way to it through what it comes after has as many steps.
struct Epoch {
  int level = 0;
  std::uint64_t key = 0;  ///< the same for epochs whose classes are alike
  std::vector<EquivalenceClass> classes{};

  /// Those of all classes, one class after the other.
  std::vector<std::uint32_t> members() const;
  double seconds() const;
};

/// The level of each.
std::vector<int> levels_of(std::span<const Work>);
/// Those in which at least two can be placed, by level.
std::vector<Epoch> epochs_of(std::span<const Work>);

/// How many of some equivalent kernels run on each stream, the largest number first; the order of streams on
/// which nothing ran before does not matter. Ten kernels on two streams: 5 ways if no stream is empty, as
/// the paper counts, and 6 if one may be (4.5.5).
std::vector<std::vector<int>> stream_counts(int kernels, int streams, bool may_be_empty);

/// A stream for each member of an epoch.
using Placement = std::vector<std::uint8_t>;
/// Ways to place an epoch on so many streams, at most `most` of them: those first whose busiest stream has
/// the least to do (4.8). The names of streams do not matter, so that each way is there once.
std::vector<Placement> placements(const Epoch&, int streams, std::size_t most);

}  // namespace fuse::explore
