// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "compile/toolchains/cuda/nvrtc.hpp"
#include "compile/toolchains/doctor.hpp"
#include "runtime/cuda/cublaslt.hpp"
#include "runtime/cuda/driver.hpp"

namespace fuse::runtime {
namespace {

codegen::Source trivial_source() {
  codegen::Source source;
  source.name = "doctor";
  source.body = "extern \"C\" __global__ void nothing() {}\n";
  codegen::KernelInfo kernel;
  kernel.name = "nothing";
  kernel.block_threads = 1;
  source.kernels = {kernel};
  return source;
}

// The arch of the GPU, else the newest that NVRTC knows: what a compilation would be for.
int arch_for(const Diagnosis& d, const CudaContext* gpu) {
  if (gpu) return gpu->target().arch;
  return d.nvrtc_archs.empty() ? 0 : d.nvrtc_archs.back();
}

}  // namespace

void diagnose_cuda(Diagnosis& d) {
  const std::size_t problems_before = d.problems.size();
  const SharedLibrary library = open_driver_library({});
  d.libraries.push_back(describe(library));
  std::shared_ptr<const Driver> driver;
  std::unique_ptr<CudaContext> gpu;
  check(d, library.what(), [&] {
    driver = Driver::load({});
    d.libraries.back().version = "CUDA " + to_string(driver->cuda_version());
    gpu = std::make_unique<CudaContext>(driver, 0);
  });

  // Without a GPU the toolkit is looked at as well: it compiles on any machine.
  const SharedLibrary& nvrtc = nvrtc_library();
  d.libraries.push_back(describe(nvrtc));
  d.nvrtc_archs = nvrtc_archs();
  check(d, "NVRTC", [&] {
    nvrtc.require();
    compile_to_cubin(trivial_source(), arch_for(d, gpu.get()));
  });
  const SharedLibrary cublaslt = open_cublaslt_library({});
  d.libraries.push_back(describe(cublaslt));
  check(d, "cuBLASLt", [&] { cublaslt.require(); });
  if (driver) {
    check(d, "driver against NVRTC", [&] { check_driver_covers(*driver, nvrtc); });
    check(d, "driver against cuBLASLt", [&] { check_driver_covers(*driver, cublaslt); });
  }

  if (d.problems.size() == problems_before) {
    try_device(d, "cuda", [] { return Device::cuda(0); });
  } else if (!library && d.problems[problems_before].code == ErrorCode::missing_library) {
    const std::string named = value_of(Variable::libcuda);
    d.devices.push_back(
        {"cuda", false,
         fmt::format("no NVIDIA driver: {} was not found", named.empty() ? "libcuda.so.1" : named)});
  } else {
    d.devices.push_back({"cuda", false, d.problems[problems_before].where + " is at fault"});
  }
}

}  // namespace fuse::runtime
