// A loop on a bounded number of threads. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace fuse {

/// Calls work(i) for every i below count, on at most `threads` threads (0: one per core), this one among
/// them. Takes indices in order. Throws what the lowest index that failed threw; later ones may then never
/// have run.
void parallel_for(int threads, std::size_t count, const std::function<void(std::size_t)>& work);

/// `threads`, or one per core where it is 0; at least 1. A negative number is a user Error.
std::size_t thread_count(int threads);

}  // namespace fuse
