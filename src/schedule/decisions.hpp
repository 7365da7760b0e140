// Decisions: how the kernels of a graph run, as a text that a person or a program may write.
//
//   fuse decisions 1
//   target {arch = 90, sms = 132, ...}
//   # softmax: %7 div
//   kernel 6f1c2a9be0d31455 {mapping = row_block, block = 256, vector = 8, hold = 32, packed}
//   kernel 6f1c2a9be0d31455 2 {mapping = row_warp, block = 128}
//
// A kernel is named by what it computes (content_key): equal kernels share an entry, and no name matters. A
// number behind the key picks one of them, counted from 0 in the order of the plan, and goes before the entry
// of all. A kernel without an entry runs as the chooser says. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.hpp"
#include "schedule/canonical.hpp"
#include "schedule/choices.hpp"
#include "schedule/partition.hpp"
#include "schedule/target.hpp"

namespace fuse::schedule {

struct KernelDecision {
  std::uint64_t key = 0;
  std::optional<std::uint32_t> occurrence{};
  KernelChoices choices{};
  std::string note{};  ///< of the comment above it
  int line = 0;        ///< of the text; 0: of none
};

struct Decisions {
  std::string target{};  ///< target_text of the device that they are for
  std::vector<KernelDecision> kernels{};
};

/// What of a target the decisions may depend on, without its name and speed.
std::string target_text(const Target&);

std::string print(const Decisions&);
/// Throws Error with code parse: the line, the key, and what would be right.
Decisions parse_decisions(std::string_view text);

/// What was decided of each kernel piece; `chosen` is set.
Decisions decisions_of(const ir::Graph&, const Partition&, const EqualPieces&, const Target&);

struct DecisionOptions {
  bool skip_unfit = false;    ///< entries that fit nothing are counted and left out, and no error
  bool grid_barriers = true;  ///< kernels may wait for all of their blocks
};

/// Decisions for the pieces of one graph.
class RecordedChoices {
 public:
  /// Throws Error with code invalid_argument where they are for another target, or an entry fits no kernel of
  /// the graph: it names the line.
  RecordedChoices(const Decisions&, const DecisionOptions&, const ir::Graph&, const Partition&,
                  const EqualPieces&, const Target&);
  /// Of a piece; null: nothing was recorded.
  const KernelChoices* of(std::uint32_t piece) const;
  std::size_t pieces() const { return of_piece_.size(); }  ///< that have an entry
  std::size_t unfit() const { return unfit_; }

 private:
  std::map<std::uint32_t, KernelChoices> of_piece_{};
  std::size_t unfit_ = 0;
};

}  // namespace fuse::schedule
