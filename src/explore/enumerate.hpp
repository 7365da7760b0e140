// Enumerate: the ways to spread equivalent kernels over streams (Astra, 4.5.5). Pure counting.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace fuse::explore {

/// How many of some equivalent kernels run on each stream, the largest number first. Kernels of one shape
/// with the same neighbours are equivalent, so that which of them runs where does not matter; nor does the
/// order of streams on which nothing ran before. Ten kernels on two streams: 5 ways if no stream is empty, as
/// the paper counts, and 6 if one may be (4.5.5).
std::vector<std::vector<int>> stream_counts(int kernels, int streams, bool may_be_empty);

}  // namespace fuse::explore
