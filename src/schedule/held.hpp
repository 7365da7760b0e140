// Held values: elements of a row that later passes over it need again and that stay in the registers of the
// thread that computed them, so that a row is loaded once and costly ops are computed once. Where nobody
// knows how many those are, what was loaded stays in shared memory.
//
// Before:  softmax, stages max | sum | div     each pass loads x, the last two compute exp
// After:   x held from pass 0 to 1, exp(x - max) from 1 to 2; in shared memory: x from 0 to 2
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/graph.hpp"
#include "schedule/partition.hpp"

namespace fuse::schedule {

struct Held {
  ir::NodeId node = 0;
  int first = 0, last = 0;  ///< the pass that computes it and the last that uses it
  bool operator==(const Held&) const = default;
};

/// What the passes of a piece would hold, by pass, then in graph order: of each value that is needed again
/// the last step that is the same, unless computing it again loads little and is cheap.
std::vector<Held> held_values(const ir::Graph&, const Segment&);

/// What shared memory would hold instead: what takes a load of the tensor's size.
std::vector<Held> shared_values(const ir::Graph&, const Segment&);

/// 32-bit registers that an element of all values takes that are held at once.
int held_words(const ir::Graph&, const std::vector<Held>&);

}  // namespace fuse::schedule
