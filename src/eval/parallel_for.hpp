// Work split over threads, for loops whose every result is computed by one call alone, so that the bits do
// not depend on the split. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace fuse::runtime::reference {

/// Threads that parallel_for may use: those of the machine, at most 16.
std::size_t thread_count();

/// Calls body(begin, end) for contiguous parts of [0, count), none (but the last) smaller than `grain`, and
/// waits. Rethrows the first exception of a part. Runs on the calling thread what it gets no thread for.
void parallel_for(std::size_t count, std::size_t grain,
                  const std::function<void(std::size_t begin, std::size_t end)>& body);

}  // namespace fuse::runtime::reference
