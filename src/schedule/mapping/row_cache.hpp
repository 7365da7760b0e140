// Cached values: elements of a row that later passes over it need again. They stay in the registers of the
// thread that computed them, so that a row is loaded once and costly ops are computed once. Where their
// number is not known, what was loaded stays in shared memory. A packed cache keeps only what was loaded, as
// it came: two values of 16 bits per register.
//
// Before:  softmax, stages max | sum | div     each pass loads x, the last two compute exp
// After:   x cached from pass 0 to 1, exp(x - max) from 1 to 2; in shared memory or packed: x from 0 to 2
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

/// What the passes of a phase would cache, by pass, then in graph order: for each value that is needed again,
/// the last step that is the same, unless computing it again loads little and is cheap.
std::vector<CachedValue> cached_values(const ir::Graph&, const Phase&);

/// What they would cache packed, or in shared memory: the values that take a load of the tensor's size.
std::vector<CachedValue> loaded_values(const ir::Graph&, const Phase&);

/// The one of these two that registers cache.
std::vector<CachedValue> values_to_cache(const ir::Graph&, const Phase&, bool packed);

/// The work of all passes per element where they cache these, roughly, in instructions of a thread.
int instructions(const ir::Graph&, const Phase&, const std::vector<CachedValue>&);

/// The 32-bit registers per thread for as many elements of all values that are cached at once: one or two per
/// element, or, packed, as many as their bytes fill.
std::int64_t cache_registers(const ir::Graph&, const std::vector<CachedValue>&, std::int64_t elements,
                             bool packed);

}  // namespace fuse::schedule
