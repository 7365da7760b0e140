// The copies that times are compared with. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace fuse::bench {

/// Seconds of one copy from `from` to `to` by `threads` threads, each a part of its own: memcpy, or stream
/// (stores past the caches). The mean of `runs`, one behind the other. Throws std::runtime_error for another
/// name, and for stream on a processor without such stores.
double time_thread_copy(std::string_view how, void* to, const void* from, std::int64_t bytes, int threads,
                        std::int64_t runs);

}  // namespace fuse::bench
