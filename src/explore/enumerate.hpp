// Enumerate: the lists of options that static knowledge leaves (Astra, 4.4 and 4.5.5). Pure counting, of
// things that alike names stand for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace fuse::explore {

/// The sizes of the parts into which a fusion group of GEMMs may be cut: 1, 2, 4, .. up to the largest that
/// its members and the cap allow; a group of 12 under a cap of 4 has 12, 6 and 3 GEMMs (4.5.1).
std::vector<int> chunk_sizes(int members, int cap);
/// The GEMMs that a group of so many members becomes.
int chunks(int members, int size);

/// How many of some equivalent kernels run on each stream, the largest number first. Kernels of one shape
/// with the same neighbours are equivalent, so that which of them runs where does not matter; nor does the
/// order of streams on which nothing ran before. Ten kernels on two streams: 5 ways if no stream is empty, as
/// the paper counts, and 6 if one may be (4.5.5).
std::vector<std::vector<int>> stream_counts(int kernels, int streams, bool may_be_empty);

}  // namespace fuse::explore
