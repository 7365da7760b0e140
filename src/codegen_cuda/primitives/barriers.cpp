// Barriers, from a block's to a grid's.
// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/primitives/table.hpp"

namespace fuse::codegen {

std::vector<Primitive> barrier_primitives() {
  return {
      {.name = "block_barrier",
       .cuda = R"(__device__ inline void block_barrier() { __syncthreads(); }
)",
       .host = R"(void block_barrier(int line = __builtin_LINE()) { call_->barrier(call_->runner, line); }
)",
       .communicates = true},
      // Each block adds one for each barrier that it comes to, and the counter is never reset: a block that
      // hurries on cannot be missed by those that still look. The acquire and release order what the block's
      // other threads access as well, by its two block barriers. Blocks with the same quotient by `blocks`
      // wait for each other, if there are as many.
      {.name = "group_barrier",
       .cuda = R"(__device__ inline void group_barrier(int* counters, int first, unsigned blocks) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned group = block / blocks;
  block_barrier();
  if (threadIdx.x == 0 && group < gridDim.x * gridDim.y * gridDim.z / blocks) {
    int* const counter = counters + first + group;
    unsigned count;
    asm volatile("atom.add.release.gpu.u32 %0, [%1], 1;" : "=r"(count) : "l"(counter) : "memory");
    const unsigned all = (count / blocks + 1) * blocks;
    for (;;) {
      asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(count) : "l"(counter) : "memory");
      if (count >= all) break;
      __nanosleep(32);
    }
  }
  block_barrier();
}
)",
       .host = R"(void group_barrier(int* counters, int first, unsigned blocks, int line = __builtin_LINE()) {
  call_->group_barrier(call_->runner, counters + first, blocks, line);
}
)",
       .checked_host =
           R"(void group_barrier(global<int> counters, int first, unsigned blocks, int line = __builtin_LINE()) {
  call_->group_barrier(call_->runner, counters.base + first, blocks, line);
}
)",
       .needs = {"block_barrier"},
       .communicates = true},
      {.name = "grid_barrier",
       .cuda = R"(__device__ inline void grid_barrier(int* counter) {
  group_barrier(counter, 0, gridDim.x * gridDim.y * gridDim.z);
}
)",
       .host = R"(void grid_barrier(int* counter, int line = __builtin_LINE()) {
  call_->grid_barrier(call_->runner, counter, line);
}
)",
       .checked_host = R"(void grid_barrier(global<int> counter, int line = __builtin_LINE()) {
  call_->grid_barrier(call_->runner, counter.base, line);
}
)",
       .needs = {"group_barrier"},
       .communicates = true},
      // The release and the acquire are of the cluster: shared memory of its blocks and global memory. Not
      // .aligned, as CUDA's own: lanes may have parted before.
      {.name = "cluster_barrier",
       .cuda = R"(__device__ inline void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}
)",
       .host =
           R"(void cluster_barrier(int line = __builtin_LINE()) { call_->cluster_barrier(call_->runner, 0, line); }
)",
       .communicates = true},
      // The release is of shared memory alone, which needs no fence of the whole GPU. PTX has it from
      // CUDA 12.8 on.
      {.name = "cluster_shared_barrier",
       .cuda = R"(__device__ inline void cluster_shared_barrier() {
#if __CUDACC_VER_MAJOR__ > 12 || __CUDACC_VER_MINOR__ >= 8
  asm volatile("fence.release.sync_restrict::shared::cta.cluster;\n\tbarrier.cluster.arrive.relaxed;" ::: "memory");
#else
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#endif
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}
)",
       .host = R"(void cluster_shared_barrier(int line = __builtin_LINE()) {
  call_->cluster_barrier(call_->runner, 1, line);
}
)",
       .communicates = true},
      // The fence of the block waits for the loads that the thread began: alone, the arrival may overtake
      // them (ptxas orders it so), and the block that they read from may end. A fence of the cluster would
      // wait for the whole GPU.
      {.name = "cluster_arrive",
       .cuda = R"(__device__ inline void cluster_arrive() {
  asm volatile("fence.acq_rel.cta;\n\tbarrier.cluster.arrive.relaxed;" ::: "memory");
}
)",
       .host =
           R"(void cluster_arrive(int line = __builtin_LINE()) { call_->cluster_arrive(call_->runner, line); }
)",
       .communicates = true},
      {.name = "cluster_wait",
       .cuda =
           R"(__device__ inline void cluster_wait() { asm volatile("barrier.cluster.wait;" ::: "memory"); }
)",
       .host = R"(void cluster_wait(int line = __builtin_LINE()) { call_->cluster_wait(call_->runner, line); }
)",
       .communicates = true},
      // Element i of the array where the block of that rank has it.
      {.name = "cluster_load",
       .cuda = R"(template <class T, class I, class R>
__device__ inline T cluster_load(const T* p, I i, R rank) {
  return *static_cast<const T*>(__cluster_map_shared_rank(p + i, static_cast<int>(rank)));
}
)",
       .host = R"(template <class T, class I, class R>
T cluster_load(const T* p, I i, R rank, int line = __builtin_LINE()) {
  return reinterpret_cast<const T*>(
      call_->peer(call_->runner, reinterpret_cast<const char*>(p), i, rank, sizeof(T), line))[i];
}
)",
       .checked_host = R"(template <class T, class I, class R>
typename bare<T>::type cluster_load(global<T> p, I i, R rank, int line = __builtin_LINE()) {
  return reinterpret_cast<const T*>(
      call_->peer(call_->runner, reinterpret_cast<const char*>(p.base), i, rank, sizeof(T), line))[i];
}
)",
       .communicates = true},
  };
}

}  // namespace fuse::codegen
