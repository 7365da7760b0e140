// SPDX-License-Identifier: Apache-2.0
#include "probe/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "codegen_cuda/primitives/primitives.hpp"

namespace fuse::bench {
namespace {

// The two instructions that round an f32 to bf16 are named, whatever the primitive to_bf16 uses. Elsewhere
// than on a GPU both are that primitive.
constexpr const char* conversions = R"(
#ifdef __CUDACC_RTC__
__device__ inline float by_f2f(float v) {
  unsigned short bits;
  asm volatile("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(v));
  return __uint_as_float(static_cast<unsigned>(bits) << 16);
}
__device__ inline float by_f2fp(float v) {
  unsigned pair;
  asm volatile("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(v));
  return __uint_as_float(pair << 16);
}
#else
inline float by_f2f(float v) { return to_f32(to_bf16(v)); }
inline float by_f2fp(float v) { return to_f32(to_bf16(v)); }
#endif
FUSE_KERNEL(256) convert_f2f(global<float> x, int n) {
  const int at = blockIdx.x * 256 + threadIdx.x;
  float v = load(x, at);
  for (int i = 0; i < n; ++i) v = by_f2f(v);
  store(x, at, v);
}
FUSE_KERNEL(256) convert_f2fp(global<float> x, int n) {
  const int at = blockIdx.x * 256 + threadIdx.x;
  float v = load(x, at);
  for (int i = 0; i < n; ++i) v = by_f2fp(v);
  store(x, at, v);
}
)";

// x[0] is the numerator and x[1] the divisor of all threads: a compiler knows neither. x[0] is positive zero,
// an ordinary number, or one so small that the quotient's correction underflows.
constexpr const char* body = R"(
FUSE_KERNEL(256) divide(global<float> x, int n) {
  const float a = load(x, 0);
  float b = load(x, 1);
  for (int i = 0; i < n; ++i) b = b + a / b;
  if (b == 0.0f) store(x, 2, b);
}
FUSE_KERNEL(256) barrier_of_block(global<float> x, int n) {
  for (int i = 0; i < n; ++i) block_barrier();
}
FUSE_KERNEL(256) store_alone(global<float> x, int n) {
  const int at = blockIdx.x * 256 + threadIdx.x;
  for (int i = 0; i < n; ++i) {
    store(x, 4 + at, static_cast<float>(i));
    block_barrier();
  }
}
FUSE_KERNEL(256) store_and_grid_barrier(global<float> x, global<int> counter, int n) {
  const int at = blockIdx.x * 256 + threadIdx.x;
  for (int i = 0; i < n; ++i) {
    store(x, 4 + at, static_cast<float>(i));
    grid_barrier(counter);
  }
}
FUSE_KERNEL(32) chase(global<int> x, int n) {
  if (threadIdx.x == 0) {
    int at = load(x, 1);
    for (int i = 0; i < n; ++i) at = load(x, at);
    store(x, 1, at);
  }
}
FUSE_KERNEL(32) nothing(global<float> x, int n) {
  if (n < 0) store(x, 0, 0.0f);
}
)";

constexpr const char* cluster = R"(
FUSE_KERNEL(256) FUSE_CLUSTER({0}) store_and_cluster_barrier(global<float> x, int n) {{
  const int at = blockIdx.x * 256 + threadIdx.x;
  for (int i = 0; i < n; ++i) {{
    store(x, 4 + at, static_cast<float>(i));
    cluster_barrier();
  }}
}}
)";

codegen::KernelInfo kernel(const char* name, int threads, DType of_x) {
  using Kind = codegen::KernelParam::Kind;
  codegen::KernelInfo info{.name = name, .block_threads = threads};
  info.params = {{Kind::buffer, "x", of_x, true}, {Kind::extent, "n", DType::i32, false}};
  return info;
}

}  // namespace

codegen::Source probe_source(const Target& target) {
  codegen::Source source;
  source.name = "probe";
  source.primitives = {"block_barrier", "global", "grid_barrier", "kernel", "load", "store"};
  source.body = body;
  source.kernels = {kernel("divide", probe_threads, DType::f32), kernel("chase", 32, DType::i32),
                    kernel("nothing", 32, DType::f32)};
  for (const char* name : {"barrier_of_block", "store_alone", "store_and_grid_barrier"}) {
    codegen::KernelInfo& info = source.kernels.emplace_back(kernel(name, probe_threads, DType::f32));
    info.communicates = true;
  }
  codegen::KernelInfo& grid = source.kernels.back();
  grid.cooperative = true;
  grid.params.insert(grid.params.begin() + 1,
                     {codegen::KernelParam::Kind::buffer, "counter", DType::i32, true});
  if (target.arch >= 80) {
    source.body += conversions;
    source.kernels.push_back(kernel("convert_f2f", probe_threads, DType::f32));
    source.kernels.push_back(kernel("convert_f2fp", probe_threads, DType::f32));
  }
  if (target.max_cluster > 1) {
    source.primitives.insert(source.primitives.end(), {"cluster_barrier", "cluster_size"});
    source.body += fmt::format(cluster, std::min(target.max_cluster, 8));
    codegen::KernelInfo info = kernel("store_and_cluster_barrier", probe_threads, DType::f32);
    info.communicates = true;
    info.cluster = std::min(target.max_cluster, 8);
    source.kernels.push_back(info);
  }
  source.prelude = codegen::cuda_prelude(source.primitives);
  return source;
}

}  // namespace fuse::bench
