// The kernels of fuse_bench's group probe compile for every GPU that they are for. What they do runs on the
// emulated device in bench_test.cpp. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "probe/kernels.hpp"
#include "support/catch.hpp"

#if FUSE_COMPILER_HAS_CUDA
#include "compile/toolchains/cuda/nvrtc.hpp"

namespace {

bool has_kernel(const fuse::codegen::Source& source, const std::string& name) {
  return std::any_of(source.kernels.begin(), source.kernels.end(),
                     [&](const fuse::codegen::KernelInfo& kernel) { return kernel.name == name; });
}

}  // namespace

TEST_CASE("the probe's kernels compile, without spills, for GPUs old and new", "[bench][nvrtc]") {
  if (!fuse::runtime::nvrtc_available()) {
    WARN("skipped: there is no NVRTC");
    return;
  }
  for (const auto& [profile, arch] : {std::pair{"v100", 75}, {"a100", 80}, {"h200", 90}}) {
    CAPTURE(arch);
    fuse::Target target = fuse::target_profile(profile);
    target.arch = arch;
    const fuse::codegen::Source source = fuse::bench::probe_source(target);
    CHECK(has_kernel(source, "convert_f2f") == (arch >= 80));
    CHECK(has_kernel(source, "store_and_cluster_barrier") == (arch >= 90));
    const fuse::runtime::Cubin cubin = fuse::runtime::compile_to_cubin(source, arch);
    REQUIRE(cubin.kernels.size() == source.kernels.size());
    for (const fuse::runtime::CompiledKernel& kernel : cubin.kernels) {
      CAPTURE(kernel.name);
      CHECK(kernel.registers > 0);
      CHECK(!kernel.spills());
    }
  }
}
#endif
