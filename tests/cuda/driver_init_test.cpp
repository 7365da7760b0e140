// How the cuda device starts, and what it says when it does not.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include "cuda/fakes.hpp"
#include "os/shared_library.hpp"

namespace fuse::test {
namespace {

TEST_CASE("each failure of cuInit has its own message", "[cuda]") {
  struct Row {
    int code;
    const char* name;
    const char* meaning;
    const char* hint;
  };
  const Row rows[] = {
      {34, "cuInit: CUDA_ERROR_STUB_LIBRARY (34)", "stub for linking", "lib/stubs"},
      {46, "cuInit: CUDA_ERROR_DEVICE_UNAVAILABLE (46)", "exclusive mode", "nvidia-smi"},
      {100, "cuInit: CUDA_ERROR_NO_DEVICE (100)", "sees no GPU", "CUDA_VISIBLE_DEVICES"},
      {999, "cuInit: CUDA_ERROR_UNKNOWN (999)", "does not name", "nvidia-modprobe"},
      {802, "cuInit: CUDA error (802)", "fabric", "nvidia-fabricmanager"},
      {803, "cuInit: CUDA error (803)", "different versions", "reboot"},
      {804, "cuInit: CUDA error (804)", "forward-compatibility", "LD_LIBRARY_PATH"},
      {1001, "cuInit: CUDA error (1001)", "did not start", "dmesg"},
  };
  for (const Row& row : rows) {
    const Fakes fakes;
    fakes.fail_at("cuInit", 1, row.code);
    const ErrorInfo error = error_info([&] { fakes.backend(); });
    INFO(error.message << "\n" << error.hint);
    CHECK(error.kind == ErrorKind::runtime);
    CHECK(error.code == ErrorCode::driver);
    CHECK(contains(error.message, row.name));
    CHECK(contains(error.message, row.meaning));
    CHECK(contains(error.message, fake_cuda_path()));
    CHECK(contains(error.hint, row.hint));
    fakes.require_clean();
  }
}

TEST_CASE("a GPU that makes no context says why", "[cuda]") {
  struct Row {
    int code;
    ErrorCode error;
    const char* meaning;
    const char* hint;
  };
  const Row rows[] = {{46, ErrorCode::driver, "exclusive mode", "nvidia-smi for the compute mode"},
                      {2, ErrorCode::out_of_memory, "no memory left for a context", "another GPU"},
                      {807, ErrorCode::driver, "the MPS server", "nvidia-cuda-mps-control"},
                      {999, ErrorCode::driver, "a reason it does not name", "nvidia-modprobe"}};
  for (const Row& row : rows) {
    const Fakes fakes;
    fakes.fail_at("cuDevicePrimaryCtxRetain", 1, row.code);
    const ErrorInfo error = error_info([&] { fakes.backend(); });
    INFO(error.message << "\n" << error.hint);
    CHECK(error.kind == ErrorKind::runtime);
    CHECK(error.code == row.error);
    CHECK(contains(error.message, "cuDevicePrimaryCtxRetain: "));
    CHECK(contains(error.message, row.meaning));
    CHECK(contains(error.hint, row.hint));
  }
}

TEST_CASE("a GPU in MIG mode without an instance is no device", "[cuda]") {
  const Fakes fakes;
  fakes.set_device_count(0);
  const ErrorInfo error = error_info([&] { fakes.backend(); });
  CHECK(error.code == ErrorCode::invalid_argument);
  CHECK(error.message == "there is no CUDA device 0: this process sees 0");
  CHECK(contains(error.hint, "MIG mode"));
}

TEST_CASE("the target is read from the device", "[cuda]") {
  const Fakes fakes;
  const auto backend = fakes.backend();
  const Target& t = backend->target();
  CHECK(t.name == "Fake H200");
  CHECK(t.arch == 90);
  CHECK(t.sms == 132);
  CHECK(t.max_threads_per_sm == 2048);
  CHECK(t.registers_per_sm == 65536);
  CHECK(t.shared_per_block == 49152);
  CHECK(t.shared_per_block_optin == 232448);
  CHECK(t.shared_per_sm == 233472);
  CHECK(t.shared_reserved == 1024);
  CHECK(t.shared_unit == 128);
  CHECK(t.max_cluster == 16);
  CHECK(t.l2_bytes == 50 << 20);
  CHECK(t.bandwidth > 4.2e12);
  CHECK(t.bandwidth < 4.5e12);
  CHECK(t.flops_f32 > 6e13);
  CHECK(t.flops_f32 < 7e13);
  CHECK(contains(backend->report(), "device 0: Fake H200, sm_90, 132 SMs"));
}

TEST_CASE("an odd device: 8 blocks of a cluster at most, no clock rates", "[cuda]") {
  const Fakes fakes;
  fakes.set_largest_cluster(8);
  fakes.set_attribute(75, 12);  // compute capability
  fakes.set_attribute(36, 0);   // memory clock
  CHECK(fakes.backend()->target().max_cluster == 8);
  CHECK(fakes.backend()->target().arch == 120);
  CHECK(fakes.backend()->target().bandwidth == Target{}.bandwidth);
}

TEST_CASE("an ordinal that is not there", "[cuda]") {
  const Fakes fakes;
  for (int ordinal : {-1, 1, 1 << 30}) {
    const ErrorInfo error =
        error_info([&] { runtime::make_cuda_backend(ordinal, {.cuda = fake_cuda_path(), .cublaslt = {}}); });
    CHECK(error.kind == ErrorKind::user);
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(contains(error.message, "there is no CUDA device " + std::to_string(ordinal)));
    CHECK(contains(error.message, "sees 1"));
  }
  fakes.require_clean();
}

TEST_CASE("a missing driver says what was looked for and where", "[cuda]") {
  const ErrorInfo error =
      error_info([&] { runtime::make_cuda_backend(0, {.cuda = "/nowhere/libcuda.so.1", .cublaslt = {}}); });
  CHECK(error.kind == ErrorKind::runtime);
  CHECK(error.code == ErrorCode::missing_library);
  CHECK(contains(error.message, "the NVIDIA driver was not found"));
  CHECK(contains(error.message, "/nowhere/libcuda.so.1: cannot open shared object file"));
  CHECK(contains(error.hint, "nvidia-driver"));
}

TEST_CASE("a library that lacks the functions is refused by name", "[cuda]") {
  const ErrorInfo error =
      error_info([&] { runtime::make_cuda_backend(0, {.cuda = fake_cublaslt_path(), .cublaslt = {}}); });
  CHECK(error.code == ErrorCode::broken_install);
  CHECK(contains(error.message, "the NVIDIA driver is damaged or incomplete"));
  CHECK(contains(error.message, "opened, but it has no symbol cu"));
}

TEST_CASE("SharedLibrary reports every candidate and looks symbols up", "[cuda]") {
  using fuse::SharedLibrary;
  const LibrarySpec spec{
      .what = "a thing", .sonames = {"libnothing.so.7", fake_cuda_path()}, .hint = "install the thing"};
  const SharedLibrary library = SharedLibrary::open(spec);
  REQUIRE(library);
  CHECK(library.path() == fake_cuda_path());
  CHECK(contains(library.report(), "libnothing.so.7: cannot open"));
  CHECK(contains(library.report(), fake_cuda_path() + ": opened"));
  CHECK(library.symbol("cuInit") != nullptr);
  CHECK(library.symbol("cuNothing") == nullptr);
  const ErrorInfo error = error_info([&] { library.get<void (*)()>("cuNothing"); });
  CHECK(contains(error.message, "has no function cuNothing"));

  const SharedLibrary absent = SharedLibrary::open(
      {.what = "a thing", .sonames = {"libnothing.so.7"}, .toolkit = true, .hint = "install the thing"});
  CHECK_FALSE(absent);
  CHECK(contains(absent.report(), "/usr/local/cuda/lib64/libnothing.so.7: "));
  CHECK(absent.symbol("cuInit") == nullptr);
  CHECK(error_info([&] { absent.require(); }).hint == "install the thing");
}

}  // namespace
}  // namespace fuse::test
#endif
