// Online sums: a sum of exponentials of distances below a row's maximum, in the pass that finds the maximum.
//
// What a thread has summed is relative to the greatest element that it has met, and scaled when it meets a
// greater one (Milakov and Gimelshein, Online normalizer calculation for softmax, 2018). So a row is walked
// once less, for rows that nothing caches.
//
// Before:  stages %1 reduce_max | %5 reduce_sum | %7 div     three walks
// After:   stages %1 reduce_max with %5 reduce_sum | %7 div  two
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ir/graph/ir_graph.hpp"
#include "schedule/segments/segment.hpp"

namespace fuse::schedule {

/// For %5 = sum(exp(x - %1)) and %1 = max(x), both over the same dims and in the type of x, f32 or f64, it is
/// %1. In narrower types the exponentials are rounded before they are added, which scaled sums would not be.
std::optional<ir::NodeId> maximum_below(const ir::Graph&, const ir::Node& sum);

/// The phase with such sums in the passes of their maxima, unless a maximum is stored; none where there are
/// no such sums, or the phase has outer reductions.
std::optional<Phase> with_online_softmax(const ir::Graph&, const Phase&);

}  // namespace fuse::schedule
