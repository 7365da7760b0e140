// GEMMs of the cpu device: cut into tiles that threads compute beside each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/cpu/worker_pool.hpp"
#include "runtime/device/backend.hpp"

namespace fuse::runtime::cpu {

/// The tiles of a GEMM, fixed by its shape alone: results have the same bits for every number of threads.
struct Tiling {
  std::int64_t rows = 0, columns = 0;  ///< of a tile; the last ones may be smaller
  std::int64_t down = 0, across = 0;   ///< tiles of one matrix
  std::int64_t tiles = 0;              ///< of all matrices of all calls
  std::int64_t tiles_of_chunk = 1;
};
/// Of one with products: neither an extent nor the number of matrices is 0.
Tiling tiling_of(const GemmDesc& desc);

/// `device`: the owner of the queues that it takes. Throws as make_host_gemm does.
std::unique_ptr<Gemm> make_cpu_gemm(const GemmDesc& desc, std::shared_ptr<WorkerPool> pool,
                                    const void* device);

/// What a device answers that is given a queue of another one.
Status foreign_queue() noexcept;

}  // namespace fuse::runtime::cpu
