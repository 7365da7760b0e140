// CachedValue values: elements of a row that later passes over it need again and that stay in the registers
// of the thread that computed them, so that a row is loaded once and costly ops are computed once. Where
// nobody knows how many those are, what was loaded stays in shared memory. Packed, what was loaded stays in
// registers as it came, two values of 16 bits in each, and is all that stays.
//
// Before:  softmax, stages max | sum | div     each pass loads x, the last two compute exp
// After:   x held from pass 0 to 1, exp(x - max) from 1 to 2; in shared memory or packed: x from 0 to 2
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/segments/segment.hpp"

namespace fuse::schedule {

struct CachedValue {
  ir::NodeId node = 0;
  int first = 0, last = 0;  ///< the pass that computes it and the last that uses it
  bool operator==(const CachedValue&) const = default;
};

/// What the passes of a segment would hold, by pass, then in graph order: of each value that is needed again
/// the last step that is the same, unless computing it again loads little and is cheap.
std::vector<CachedValue> cached_values(const ir::Graph&, const Phase&);

/// What they would hold packed, or in shared memory: what takes a load of the tensor's size.
std::vector<CachedValue> loaded_values(const ir::Graph&, const Phase&);

/// Of these two, what registers hold.
std::vector<CachedValue> values_to_cache(const ir::Graph&, const Phase&, bool packed);

/// What all passes do for an element where they hold these, in instructions of a thread, roughly.
int instructions(const ir::Graph&, const Phase&, const std::vector<CachedValue>&);

/// 32-bit registers of a thread for as many elements of all values that are held at once: one or two for
/// each, or packed, as many as their bytes fill.
std::int64_t cache_registers(const ir::Graph&, const std::vector<CachedValue>&, std::int64_t elements,
                             bool packed);

}  // namespace fuse::schedule
