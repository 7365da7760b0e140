// GEMMs of the cpu device's own kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/cpu/cores/worker_pool.hpp"
#include "runtime/cpu/gemm/gemm_kernels.hpp"
#include "runtime/device/backend.hpp"

namespace fuse::runtime::cpu {

/// Of what takes_strips takes, with products. `device`: the owner of the queues that it takes. Sums are f32
/// and rounded once. Its workspace has room for each thread of the pool, and for partial sums.
std::unique_ptr<Gemm> make_strip_gemm(const GemmDesc& desc, std::shared_ptr<WorkerPool> pool,
                                      const void* device, const GemmKernels& kernels = gemm_kernels());

/// The bytes of b as pack_panels makes it; 0: it stays as it is, since products of it are no faster then. It
/// has to be one for all matrices. `openblas`: whether it is there.
std::int64_t panel_bytes(const GemmDesc& desc, bool openblas, const GemmKernels& kernels = gemm_kernels());
/// b as PanelLayout says, in its own type. Only where panel_bytes are more than 0.
Status pack_panels(const GemmDesc& desc, WorkerPool& pool, const void* b, void* to,
                   const GemmKernels& kernels = gemm_kernels());

}  // namespace fuse::runtime::cpu
