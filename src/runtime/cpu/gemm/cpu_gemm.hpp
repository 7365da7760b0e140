// GEMMs of the cpu device: cut into tiles that threads compute beside each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "runtime/cpu/cores/worker_pool.hpp"
#include "runtime/cpu/gemm/gemm_kernels.hpp"
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

/// `device`: the owner of the queues that it takes. `kernels`: of the device's level. Throws as
/// make_host_gemm does.
std::unique_ptr<Gemm> make_cpu_gemm(const GemmDesc& desc, std::shared_ptr<WorkerPool> pool,
                                    const void* device, const GemmKernels& kernels = gemm_kernels());

/// Backend::packed_gemm_bytes, prefers_packed_gemm, reads_backwards and pack_gemm of the cpu device. The last
/// may throw bad_alloc.
std::int64_t packed_cpu_gemm_bytes(const GemmDesc& desc, const GemmKernels& kernels);
/// No product asks for more scratch: 4 MB for each thread, and at most 64 partial sums of a tile.
std::int64_t most_cpu_gemm_scratch(const WorkerPool& pool);
bool prefers_packed_cpu_gemm(const GemmDesc& desc, const GemmKernels& kernels);
bool cpu_gemm_reads_backwards(const GemmDesc& desc, const GemmKernels& kernels);
Status pack_cpu_gemm(const GemmDesc& desc, WorkerPool& pool, const void* b, void* to,
                     const GemmKernels& kernels);

/// Elements of a result that lie side by side, or below each other.
struct ResultLine {
  std::int64_t first = 0;   ///< where the first one lies in c
  std::int64_t apart = 1;   ///< between two of them
  std::int64_t column = 0;  ///< of the first one
  bool turned = false;      ///< below each other: all are in one column
  std::int64_t count = 0;
};

/// One more operation on each element: the bits of two steps.
template <class T>
void apply_epilogue(const GemmDesc& d, const ResultLine& line, void* c, const void* extra) noexcept {
  T* const to = static_cast<T*>(c) + line.first;
  const T* const from = static_cast<const T*>(extra);
  const auto scale = static_cast<T>(d.scale);
  if constexpr (std::is_same_v<T, float>) {
    const GemmKernels& kernels = gemm_kernels();
    const bool adds = d.epilogue == schedule::EpilogueKind::add;
    if (line.apart == 1 && d.epilogue == schedule::EpilogueKind::scale)
      return kernels.scale(to, scale, line.count);
    if (line.apart == 1 && (adds || (d.epilogue == schedule::EpilogueKind::bias && !line.turned)))
      return kernels.add(from + (adds ? line.first : line.column), to, line.count);
  }
  const auto each = [&](const auto& change) {
    for (std::int64_t i = 0; i < line.count; ++i) to[i * line.apart] = change(to[i * line.apart], i);
  };
  switch (d.epilogue) {
    case schedule::EpilogueKind::scale:
      return each([&](T x, std::int64_t) { return x * scale; });
    case schedule::EpilogueKind::add:
      return each([&](T x, std::int64_t i) { return x + from[line.first + i * line.apart]; });
    case schedule::EpilogueKind::bias:
      return each([&](T x, std::int64_t i) { return x + from[line.column + (line.turned ? 0 : i)]; });
    default:
      return;
  }
}

/// What a device answers that is given a queue of another one.
Status foreign_queue() noexcept;

}  // namespace fuse::runtime::cpu
