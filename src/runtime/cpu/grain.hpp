// How a launch is cut: by what it moves, and never by the number of threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace fuse::runtime::cpu {

struct Grain {
  std::int64_t blocks_of_chunk = 1;
  std::int64_t chunks = 0;
  int stream =
      0;  ///< how large the launch is beside its share of the last-level cache, as a kernel's call says
};

// To hand a chunk to another core takes some microseconds, in which one core moves about so many bytes.
constexpr std::int64_t bytes_of_chunk = 128 << 10, least_bytes_of_job = 64 << 10;

/// What a launch can count on of a last-level cache: a machine that shows few cores and a huge cache is a
/// part of a larger one, whose other cores use that cache too.
constexpr std::int64_t last_level_share(std::int64_t last_level_bytes, int cores) {
  constexpr std::int64_t most_of_core = 16 << 20;
  return std::min(last_level_bytes, cores * most_of_core);
}

/// `traffic`: the bytes of all buffers that the launch has; `share`: of the last-level cache.
constexpr Grain grain_of(std::int64_t blocks, std::int64_t traffic, std::int64_t share) {
  if (blocks <= 0) return {};
  Grain grain{.stream = traffic / 2 > share ? 2 : traffic >= share / 2 ? 1 : 0};
  const std::int64_t bytes_of_block = std::max<std::int64_t>(traffic / blocks, 1);
  grain.blocks_of_chunk = traffic < least_bytes_of_job
                              ? blocks
                              : std::clamp<std::int64_t>(bytes_of_chunk / bytes_of_block, 1, blocks);
  grain.chunks = (blocks - 1) / grain.blocks_of_chunk + 1;
  return grain;
}

}  // namespace fuse::runtime::cpu
