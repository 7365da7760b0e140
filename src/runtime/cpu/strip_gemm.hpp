// GEMMs of the cpu device's own kernels: 16-bit floats, thin results, and small matrices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/cpu/gemm_kernels.hpp"
#include "runtime/cpu/worker_pool.hpp"
#include "runtime/device/backend.hpp"

namespace fuse::runtime::cpu {

/// Of what takes_strips takes, with products. `device`: the owner of the queues that it takes. Sums are f32
/// and rounded once. Its workspace has room for each thread of the pool, and for partial sums.
std::unique_ptr<Gemm> make_strip_gemm(const GemmDesc& desc, std::shared_ptr<WorkerPool> pool,
                                      const void* device, const GemmKernels& kernels = gemm_kernels());

}  // namespace fuse::runtime::cpu
