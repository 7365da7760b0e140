// NVRTC for real, without a GPU: cubins, what ptxas reports, and what fails.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <algorithm>
#include <thread>

#include "compile/toolchains/cuda/nvrtc.hpp"
#include "cuda/fakes.hpp"

namespace fuse::test {
namespace {

using runtime::compile_to_cubin;

codegen::Source source_of(const std::string& body, const std::vector<std::string>& kernels) {
  codegen::Source source;
  source.name = "probe";
  source.prelude = "typedef float f32;\n";
  source.body = body;
  for (const std::string& name : kernels) {
    codegen::KernelInfo kernel;
    kernel.name = name;
    kernel.block_threads = 128;
    source.kernels.push_back(kernel);
  }
  return source;
}

constexpr const char* simple_text = R"(
extern "C" __global__ void simple(f32* y, const f32* x, int n) {
  __shared__ f32 tile[256];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < n) y[threadIdx.x] = tile[255 - threadIdx.x];
}
)";
// 64 live values in the 32 registers that 2 blocks of 1024 threads leave each.
constexpr const char* spilling_text = R"(
extern "C" __global__ void __launch_bounds__(1024, 2) spilling(f32* y, const f32* x, int n) {
  f32 v[64];
#pragma unroll
  for (int j = 0; j < 64; j++) v[j] = x[j * n + threadIdx.x];
  for (int r = 0; r < n; r++) {
#pragma unroll
    for (int j = 0; j < 64; j++) v[j] = v[j] * v[(j * 7 + 3) % 64] + x[r];
  }
#pragma unroll
  for (int j = 0; j < 64; j++) y[j * n + threadIdx.x] = v[j];
}
)";
// An array indexed by what only the run knows lives on the stack; that is no spill.
constexpr const char* stack_text = R"(
extern "C" __global__ void stacked(f32* y, const int* x, int n) {
  f32 v[64];
  for (int j = 0; j < 64; j++) v[j] = x[j];
  for (int j = 0; j < n; j++) v[x[j] & 63] += 1;
  for (int j = 0; j < 64; j++) y[j] = v[x[n + j] & 63];
}
)";

TEST_CASE("NVRTC reports registers, spills, shared memory and stack of each kernel", "[cuda][nvrtc]") {
  if (no_nvrtc()) return;
  const auto source =
      source_of(std::string(simple_text) + spilling_text + stack_text, {"simple", "spilling", "stacked"});
  for (int arch : {80, 90}) {
    const runtime::Cubin cubin = compile_to_cubin(source, arch);
    INFO(cubin.log);
    REQUIRE(cubin.image.size() > 100);
    CHECK(std::string(cubin.image.data() + 1, 3) == "ELF");
    REQUIRE(cubin.kernels.size() == 3);
    const auto &simple = cubin.kernels[0], &spilling = cubin.kernels[1], &stacked = cubin.kernels[2];
    CHECK(simple.name == "simple");
    CHECK(simple.registers > 4);
    CHECK(simple.registers < 32);
    CHECK(simple.shared_bytes == 1024);
    CHECK(simple.stack_bytes == 0);
    CHECK_FALSE(simple.spills());
    CHECK(spilling.name == "spilling");
    CHECK(spilling.registers == 32);
    CHECK(spilling.spill_store_bytes >= 32 * 4);
    CHECK(spilling.spill_load_bytes >= 32 * 4);
    CHECK(spilling.stack_bytes >= 32 * 4);
    CHECK(spilling.shared_bytes == 0);
    CHECK(spilling.spills());
    CHECK(stacked.stack_bytes == 256);
    CHECK_FALSE(stacked.spills());
  }
}

TEST_CASE("parallel compilation gives the same cubin as one thread", "[cuda][nvrtc]") {
  if (no_nvrtc()) return;
  const auto options = runtime::nvrtc_options(90, 2);
  CHECK(options.back() == "--split-compile=0");
  CHECK(runtime::nvrtc_options(90, 2, 3).back() == "--split-compile=3");
  for (const auto& alone : {runtime::nvrtc_options(90, 1), runtime::nvrtc_options(90, 2, 1)})
    CHECK_FALSE(alone.back().starts_with("--split-compile"));
  const auto source = source_of(std::string(simple_text) + stack_text, {"simple", "stacked"});
  std::vector<runtime::Cubin> cubins(2);
  std::vector<std::thread> threads;
  for (auto& cubin : cubins) threads.emplace_back([&] { cubin = compile_to_cubin(source, 90); });
  for (auto& thread : threads) thread.join();
  CHECK((cubins[0].image == cubins[1].image));
  CHECK(cubins[0].kernels[1].stack_bytes == 256);
}

TEST_CASE("multiplication and addition are not contracted", "[cuda][nvrtc]") {
  const auto options = runtime::nvrtc_options(80, 1);
  std::vector<std::string> wanted = {
      "--fmad=false",       "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "--gpu-architecture=sm_80",
      "--ptxas-options=-v", "--std=c++17"};
  if (runtime::nvrtc_version() >= std::pair(12, 9)) wanted.emplace_back("--no-cache");
  CHECK(options == wanted);
}

TEST_CASE("an arch that NVRTC does not know lists those it does", "[cuda][nvrtc]") {
  if (no_nvrtc()) return;
  for (int arch : {10, 91, -3, 999}) {
    const ErrorInfo error = error_info([&] { compile_to_cubin(source_of(simple_text, {"simple"}), arch); });
    CHECK(error.kind == ErrorKind::user);
    CHECK(error.code == ErrorCode::unknown_arch);
    CHECK(contains(error.message, "does not compile for sm_" + std::to_string(arch)));
    CHECK(contains(error.hint, "sm_80"));
    CHECK(contains(error.hint, "sm_90"));
    CHECK(contains(error.hint, arch == 999 ? "a newer CUDA toolkit" : "the emulated device only"));
  }
  const auto archs = runtime::nvrtc_archs();
  CHECK(std::is_sorted(archs.begin(), archs.end()));
}

TEST_CASE("a kernel of clusters for an arch that has none is a user's error", "[cuda][nvrtc]") {
  if (no_nvrtc()) return;
  codegen::Source source = source_of(simple_text, {"simple"});
  source.kernels[0].cluster = 8;
  const ErrorInfo error = error_info([&] { compile_to_cubin(source, 80); });
  CHECK(error.kind == ErrorKind::user);
  CHECK(error.code == ErrorCode::unsupported);
  CHECK(error.message == "kernel 'simple' needs clusters of 8 blocks, which sm_80 does not have");
  CHECK(contains(error.hint, "clusters need sm_90 or later"));
}

TEST_CASE("text that does not compile shows the log and the lines around the error", "[cuda][nvrtc]") {
  if (no_nvrtc()) return;
  const auto source =
      source_of("extern \"C\" __global__ void bad(f32* y) {\n  y[0] = missing;\n}\n", {"bad"});
  const ErrorInfo error = error_info([&] { compile_to_cubin(source, 90); });
  INFO(error.message);
  CHECK(error.kind == ErrorKind::internal);
  CHECK(contains(error.message, "nvrtcCompileProgram probe.cu for sm_90: NVRTC_ERROR_COMPILATION (6)"));
  CHECK(contains(error.message, "probe.cu(3): error: identifier \"missing\" is undefined"));
  CHECK(contains(error.message, "\n     2 | extern \"C\" __global__ void bad(f32* y) {\n"));
  CHECK(contains(error.message, "\n>    3 |   y[0] = missing;\n"));
  const ErrorInfo absent = error_info([&] { compile_to_cubin(source_of(simple_text, {"other"}), 90); });
  CHECK(contains(absent.message, "ptxas reported no kernel other of probe.cu"));
}

TEST_CASE("ptxas's report is read per kernel", "[cuda]") {
  const auto kernels = runtime::parse_ptxas_log(
      "softmax.cu(7): warning: unused\n"
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'a' for 'sm_80'\n"
      "ptxas info    : Function properties for a\n"
      "ptxas         .     816 bytes stack frame, 1220 bytes spill stores, 1236 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 0 barriers, 816 bytes cumulative stack size\n"
      "ptxas info    : Compiling entry function 'b' for 'sm_80'\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers, 1024 bytes smem, 372 bytes cmem[0]\n");
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0].name == "a");
  CHECK(kernels[0].registers == 32);
  CHECK(kernels[0].stack_bytes == 816);
  CHECK(kernels[0].spill_store_bytes == 1220);
  CHECK(kernels[0].spill_load_bytes == 1236);
  CHECK(kernels[1].registers == 255);
  CHECK(kernels[1].shared_bytes == 1024);
  CHECK_FALSE(kernels[1].spills());
  CHECK(runtime::parse_ptxas_log("").empty());
  CHECK(runtime::parse_ptxas_log("ptxas fatal : Used ").empty());
}

TEST_CASE("the backend compiles a source and loads it", "[cuda][nvrtc]") {
  if (no_nvrtc()) return;
  const Fakes fakes;
  {
    const auto backend = fakes.backend();
    const auto module = backend->load(source_of(simple_text, {"simple"}));
    static_cast<void>(module->function("simple"));
    CHECK(fakes.live("module") == 1);
  }
  fakes.require_clean();
}

TEST_CASE("the NVRTC report tells where it was looked for", "[cuda]") {
  const std::string report = runtime::nvrtc_report();
  CHECK(contains(report, "NVRTC, the CUDA run-time compiler:"));
  const auto [major, minor] = runtime::nvrtc_version();
  CHECK(contains(report, runtime::nvrtc_available()
                             ? "version " + std::to_string(major) + "." + std::to_string(minor)
                             : "libnvrtc.so.12: "));
}

}  // namespace
}  // namespace fuse::test
#endif
