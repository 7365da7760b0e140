// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/largest_cluster.hpp"

#include <algorithm>

namespace fuse::runtime {
namespace {

// Compiled for the first architecture that has clusters; the driver compiles it for those that follow too.
constexpr char empty_kernel[] = R"(
.version 7.8
.target sm_90
.address_size 64
.visible .entry fuse_empty() { ret; }
)";

/// Whether the driver's own compiler is missing, switched off, or too old for the kernel.
bool has_no_compiler(CUresult loaded) {
  return loaded == CUDA_ERROR_JIT_COMPILER_NOT_FOUND || loaded == CUDA_ERROR_JIT_COMPILATION_DISABLED ||
         loaded == CUDA_ERROR_UNSUPPORTED_PTX_VERSION || loaded == CUDA_ERROR_NO_BINARY_FOR_GPU;
}

Status ask(const Driver& d, CUmodule module, const Target& target, int& blocks) noexcept {
  CUfunction empty = nullptr;
  if (Status s = d.status("cuModuleGetFunction", d.p_cuModuleGetFunction(&empty, module, "fuse_empty")); !s)
    return s;
  const auto shared = static_cast<int>(target.shared_per_block_optin);
  for (const auto& [attribute, value] :
       {std::pair{CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1},
        std::pair{CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared}}) {
    if (Status s = d.status("cuFuncSetAttribute", d.p_cuFuncSetAttribute(empty, attribute, value)); !s)
      return s;
  }
  CUlaunchConfig launch{};
  launch.gridDimX = launch.gridDimY = launch.gridDimZ = 1;
  launch.blockDimX = static_cast<unsigned>(target.warp_size);
  launch.blockDimY = launch.blockDimZ = 1;
  launch.sharedMemBytes = static_cast<unsigned>(shared);
  int found = 0;
  const CUresult asked = d.p_cuOccupancyMaxPotentialClusterSize(&found, empty, &launch);
  if (asked == CUDA_SUCCESS) blocks = std::max(1, found);
  return d.status("cuOccupancyMaxPotentialClusterSize", asked);
}

}  // namespace

Status largest_cluster(const Driver& d, const Target& target, int& blocks) noexcept {
  CUmodule module = nullptr;
  const CUresult loaded = d.p_cuModuleLoadData(&module, empty_kernel);
  if (Status s = d.status("cuModuleLoadData", loaded); !s)
    return has_no_compiler(loaded) ? Status(ErrorCode::unsupported, s.message()) : s;
  const Status asked = ask(d, module, target, blocks);
  const Status unloaded = d.status("cuModuleUnload", d.p_cuModuleUnload(module));
  return asked ? unloaded : asked;
}

}  // namespace fuse::runtime
