// What it costs to turn emitted text into something that runs: the system compiler for the emulated device,
// NVRTC for a GPU.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>

#include "groups/groups.hpp"
#include "groups/handwritten.hpp"
#include "measure.hpp"
#include "runtime/emulated/emulated.hpp"
#if FUSE_COMPILER_HAS_CUDA
#include "compile/toolchains/cuda/nvrtc.hpp"
#endif

namespace fuse::bench {
namespace {

constexpr int compile_cost_samples = 5;

template <class F>
void measure(Report& report, const std::string& name, int kernels, int count, const std::string& how,
             F&& work) {
  Samples times;
  for (int i = 0; i < count; ++i) times.add(time_once(work), kernels);
  report
      .add(times.seconds(fmt::format("{}.{}_kernel{}", name, kernels, kernels == 1 ? "" : "s"), "ms a kernel",
                         1e3))
      .how = how;
}

void emulated(Report& report, bool checked) {
  const auto backend = runtime::make_emulated_backend({.checked = checked});
  for (const int kernels : {1, 100}) {
    const codegen::Source source = softmax_warp_source(kernels);
    measure(report, checked ? "emulated_checked" : "emulated", kernels,
            kernels == 1 ? compile_cost_samples : 3, "softmax of a warp a row; system compiler and dlopen",
            [&] { backend->load(source); });
  }
}

void nvrtc([[maybe_unused]] Report& report) {
#if FUSE_COMPILER_HAS_CUDA
  if (!runtime::nvrtc_available()) return;
  const auto [major, minor] = runtime::nvrtc_version();
  runtime::compile_to_cubin(softmax_warp_source(1), 90);  // opens the library
  for (const int kernels : {1, 20}) {
    const codegen::Source source = softmax_warp_source(kernels);
    measure(report, "nvrtc", kernels, kernels == 1 ? compile_cost_samples : 3,
            fmt::format("softmax of a warp a row; NVRTC {}.{} to a cubin for sm_90", major, minor),
            [&] { runtime::compile_to_cubin(source, 90); });
  }
#endif
}

}  // namespace

void bench_compile(Report& report, const Settings&) {
  for (const bool checked : {false, true}) emulated(report, checked);
  nvrtc(report);
}

}  // namespace fuse::bench
