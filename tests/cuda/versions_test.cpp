// Which versions of the driver and of cuBLASLt go with fuse, and with each other. NVRTC is opened once a
// process, so its versions are tried by tests/commands/doctor_nvrtc.t. SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <fuse/fuse.hpp>

#include "base/access.hpp"
#include "compile/cache/cache_key.hpp"
#include "compile/toolchains/cuda/nvrtc.hpp"
#include "cuda/fakes.hpp"
#include "runtime/cuda/cublaslt.hpp"
#include "runtime/cuda/driver.hpp"
#include "support/variable.hpp"

namespace fuse::test {
namespace {

TEST_CASE("a driver older than CUDA 12 is refused, a newer one than the toolkit is not", "[cuda]") {
  const Fakes fakes;
  {
    const Variable version("FAKE_CUDA_VERSION", "11080");
    const ErrorInfo error = error_info([&] { fakes.backend(); });
    CHECK(error.kind == ErrorKind::runtime);
    CHECK(error.code == ErrorCode::incompatible_version);
    CHECK(contains(error.message, "is of CUDA 11.8; fuse takes 12.0 and newer"));
    CHECK(contains(error.message, fake_cuda_path()));
    CHECK(contains(error.hint, "update the NVIDIA driver"));
    fakes.require_clean();
  }
  const Variable version("FAKE_CUDA_VERSION", "15020");
  const auto driver = runtime::Driver::load({.cuda = fake_cuda_path(), .cublaslt = {}});
  CHECK(to_string(driver->cuda_version()) == "15.2");
  CHECK(driver->library.file().ends_with("/libfake_cuda.so"));
}

TEST_CASE("a cuBLASLt of another major version is refused by the first GEMM", "[cuda]") {
  for (const char* number : {"11402", "111103", "140000"}) {
    const Fakes fakes;
    const Variable version("FAKE_CUBLASLT_VERSION", number);
    const auto backend = fakes.backend();
    const ErrorInfo error = error_info([&] { backend->prepare_gemm({.m = 2, .n = 2, .k = 2}); });
    INFO(number << ": " << error.message);
    CHECK(error.code == ErrorCode::incompatible_version);
    CHECK(contains(error.message, "cuBLASLt is of a version that fuse does not take"));
    CHECK(contains(error.message, "fuse takes 12 to 13"));
  }
  const Variable version("FAKE_CUBLASLT_VERSION", "120304");
  const auto library = runtime::open_cublaslt_library(fake_cublaslt_path());
  CHECK(to_string(library.version()) == "12.3");
}

TEST_CASE("a driver of an older CUDA than a library is told with both versions", "[cuda]") {
  const Fakes fakes;
  const Variable version("FAKE_CUDA_VERSION", "12040");
  {
    const auto backend = fakes.backend();
    const ErrorInfo error = error_info([&] { backend->prepare_gemm({.m = 2, .n = 2, .k = 2}); });
    CHECK(error.kind == ErrorKind::runtime);
    CHECK(error.code == ErrorCode::incompatible_version);
    CHECK(contains(error.message, "the NVIDIA driver is of CUDA 12.4"));
    CHECK(contains(error.message, "older than cuBLASLt 13.0"));
    CHECK(contains(error.hint, "update the driver to one of CUDA 13.0 or newer"));
    CHECK(contains(error.hint, "install the CUDA 12 toolkit"));
    if (runtime::nvrtc_version().first == 13) {
      const ErrorInfo load = error_info([&] { backend->load(scale_source()); });
      CHECK(load.code == ErrorCode::incompatible_version);
      CHECK(contains(load.message, "older than NVRTC"));
    } else {
      WARN("skipped the driver against NVRTC: there is no NVRTC 13");
    }
  }
  fakes.require_clean();
  // Of one major version, the driver may be the older one.
  const Variable blas("FAKE_CUBLASLT_VERSION", "120900");
  CHECK_NOTHROW(fakes.backend()->prepare_gemm({.m = 2, .n = 2, .k = 2}));
}

TEST_CASE("the version of cuBLASLt is in the cache's key where the graph has products", "[cuda]") {
  const Fakes fakes;
  const auto key = [&](bool product, const char* number) {
    const Variable version("FAKE_CUBLASLT_VERSION", number);
    Graph g("g");
    const Tensor x = g.input("x", f32, {8, 8});
    g.output("y", product ? matmul(x, x) : exp(x));
    return runtime::cache_key(ir_of(g), *fakes.backend(), {});
  };
  CHECK(contains(key(true, "130001"), "products 'cuBLASLt 130001'\n"));
  CHECK(key(true, "130001") != key(true, "130002"));
  CHECK(contains(key(false, "130001"), "products ''\n"));
  const Variable nowhere("FUSE_LIBCUBLASLT", "/no/such/library");
  const auto backend = runtime::make_cuda_backend(0, {.cuda = fake_cuda_path(), .cublaslt = {}});
  Graph g("g");
  const Tensor x = g.input("x", f32, {8, 8});
  g.output("y", matmul(x, x));
  CHECK(contains(runtime::cache_key(ir_of(g), *backend, {}), "products 'no cuBLASLt'\n"));
}

}  // namespace
}  // namespace fuse::test
#endif
