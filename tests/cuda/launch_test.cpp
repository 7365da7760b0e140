// Queues, memory and launches of the cuda device, against the fake driver.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <cstdint>
#include <cstring>

#include "cuda/fakes.hpp"

namespace fuse::test {
namespace {

using runtime::Argument;

std::string plain_hex(const void* pointer) {
  char text[32];
  std::snprintf(text, sizeof text, "%llx",
                static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(pointer)));
  return text;
}

TEST_CASE("a launch packs pointers, i32 and i64 extents", "[cuda]") {
  const Fakes fakes;
  {
    const auto backend = fakes.backend();
    const auto queue = backend->create_queue();
    const auto module = load_cubin(*backend, scale_source(), scale_cubin());
    void* y = backend->allocate(1024);
    const Argument arguments[] = {
        {.address = y, .bytes = 1024}, {.value = -2}, {.value = std::int64_t{1} << 40}};
    const Status status = backend->launch(*queue, module->function("scale"), {7, 2, 3}, arguments, 3);
    CHECK(std::string(status.message()) == "");
    char stream[32];
    std::snprintf(stream, sizeof stream, "%p", queue->native());
    CHECK(fakes.find_call("cuLaunchKernel") ==
          std::string("cuLaunchKernel scale grid 7 2 3 block 128 1 1 shared 0 stream ") + stream +
              " args 8:" + plain_hex(y) + " 4:fffffffe 8:10000000000");
    backend->free(y);
  }
  fakes.require_clean();
}

TEST_CASE("a kernel that spins is launched as a cooperative one", "[cuda]") {
  const Fakes fakes;
  {
    const auto backend = fakes.backend();
    const auto queue = backend->create_queue();
    codegen::Source source = scale_source();
    source.kernels[0].cooperative = true;
    const auto module = load_cubin(*backend, source, scale_cubin());
    void* y = backend->allocate(1024);
    const Argument arguments[] = {{.address = y, .bytes = 1024}, {.value = 5}, {.value = 6}};
    REQUIRE(backend->launch(*queue, module->function("scale"), {7, 2, 3}, arguments, 3));
    char stream[32];
    std::snprintf(stream, sizeof stream, "%p", queue->native());
    CHECK(fakes.find_call("cuLaunchCooperativeKernel") ==
          std::string("cuLaunchCooperativeKernel scale grid 7 2 3 block 128 1 1 shared 0 stream ") + stream +
              " args 8:" + plain_hex(y) + " 4:5 8:6");
    CHECK(fakes.count("cuLaunchKernel") == 0);
    CHECK(backend->launch(*queue, module->function("scale"), {0, 1, 1}, arguments, 3));
    CHECK(fakes.count("cuLaunchCooperativeKernel") == 1);

    fakes.fail_at("cuLaunchCooperativeKernel", 1, 720);
    const Status status = backend->launch(*queue, module->function("scale"), {100000, 1, 1}, arguments, 3);
    CHECK(status.code() == ErrorCode::driver);
    CHECK(std::string(status.message()) ==
          "cuLaunchCooperativeKernel: CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE (720): too many blocks in "
          "cooperative launch: kernel scale");
    backend->free(y);
  }
  fakes.require_clean();
}

TEST_CASE("a launch calls the driver for nothing but the launch", "[cuda]") {
  const Fakes fakes;
  const auto backend = fakes.backend();
  const auto queue = backend->create_queue();
  const auto module = load_cubin(*backend, scale_source(), scale_cubin());
  const Argument arguments[3] = {};
  const auto& function = module->function("scale");
  const int before = fakes.call_count();
  REQUIRE(backend->launch(*queue, function, {1, 1, 1}, arguments, 3));
  REQUIRE(fakes.call_count() == before + 3);
  CHECK(std::string(fakes.call(before)) == "cuCtxPushCurrent");
  CHECK(contains(fakes.call(before + 1), "cuLaunchKernel"));
  CHECK(std::string(fakes.call(before + 2)) == "cuCtxPopCurrent");
}

TEST_CASE("loading a module loads its functions and sets their attributes", "[cuda]") {
  const Fakes fakes;
  const auto backend = fakes.backend();
  const int before = fakes.call_count();
  const auto module = load_cubin(*backend, scale_source(), scale_cubin());
#if CUDA_VERSION >= 12040
  CHECK(fakes.count("cuFuncLoad") == 1);
#endif
  // 2048 / 128 = 16 blocks of 4096 + 1024 bytes of 233472: 36 percent (attribute 9 is the carveout).
  CHECK(fakes.find_call("cuFuncSetAttribute", before) == "cuFuncSetAttribute scale 9 = 36");
}

TEST_CASE("the shared memory asked for holds whole units of each block", "[cuda]") {
  const Fakes fakes;
  const auto backend = fakes.backend();
  const int before = fakes.call_count();
  const auto module = load_cubin(*backend, scale_source(170), fake_cubin("scale 1024 259 8 4 8\n"));
  // 12 blocks, each of 259 + 1024 bytes rounded up to 1408. A driver makes 16 KB of 7 percent of 228 KB,
  // which is room for 11 of them.
  CHECK(fakes.find_call("cuFuncSetAttribute", before) == "cuFuncSetAttribute scale 9 = 8");
}

TEST_CASE("a zero grid launches nothing, a grid out of range is refused", "[cuda]") {
  const Fakes fakes;
  const auto backend = fakes.backend();
  const auto queue = backend->create_queue();
  const auto module = load_cubin(*backend, scale_source(), scale_cubin());
  const auto& function = module->function("scale");
  const Argument arguments[3] = {};
  CHECK(backend->launch(*queue, function, {0, 1, 1}, arguments, 3));
  CHECK(backend->launch(*queue, function, {1, 0, 1}, arguments, 3));
  CHECK(backend->launch(*queue, function, {1, 1, 0}, arguments, 3));
  for (runtime::Dim3 grid : {runtime::Dim3{-1, 1, 1}, runtime::Dim3{std::int64_t{1} << 31, 1, 1},
                             runtime::Dim3{1, 65536, 1}, runtime::Dim3{1, 1, 65536}}) {
    const Status status = backend->launch(*queue, function, grid, arguments, 3);
    CHECK(status.code() == ErrorCode::internal);
    CHECK(contains(status.message(), "is not launchable"));
    CHECK(backend->check_launch(function, grid, arguments, 3).message() == status.message());
  }
  CHECK(fakes.count("cuLaunchKernel") == 0);
}

TEST_CASE("arguments that do not match the kernel are refused", "[cuda]") {
  const Fakes fakes;
  const auto backend = fakes.backend();
  const auto queue = backend->create_queue();
  const auto module = load_cubin(*backend, scale_source(), scale_cubin());
  const auto& function = module->function("scale");
  Argument arguments[3] = {};
  CHECK(std::string(backend->launch(*queue, function, {}, arguments, 2).message()) ==
        "kernel scale takes 3 arguments, not 2");
  arguments[1].value = std::int64_t{1} << 31;
  CHECK(std::string(backend->launch(*queue, function, {}, arguments, 3).message()) ==
        "kernel scale: extent n = 2147483648 does not fit an i32");
  CHECK(std::string(backend->check_launch(function, {}, arguments, 3).message()) ==
        "kernel scale: extent n = 2147483648 does not fit an i32");
  CHECK(fakes.count("cuLaunchKernel") == 0);

  struct OtherQueue final : runtime::Queue {
    Status synchronize() noexcept override { return {}; }
  } other;
  CHECK(backend->launch(other, function, {}, arguments, 3).code() == ErrorCode::internal);
  const runtime::Function foreign;
  CHECK(backend->launch(*queue, foreign, {}, arguments, 3).code() == ErrorCode::internal);
  CHECK(backend->check_launch(foreign, {}, arguments, 3).code() == ErrorCode::internal);
}

TEST_CASE("a checked launch reads its arguments where they lie, at each launch", "[cuda]") {
  const Fakes fakes;
  const auto backend = fakes.backend();
  const auto queue = backend->create_queue();
  const auto module = load_cubin(*backend, scale_source(), scale_cubin());
  const auto& function = module->function("scale");
  Argument arguments[3] = {};
  void* const values[3] = {&arguments[0].address, &arguments[1].value, &arguments[2].value};
  REQUIRE(backend->check_launch(function, {4, 1, 1}, arguments, 3));
  std::vector<std::vector<std::string>> calls;
  for (const std::int64_t n : {7, 9}) {
    arguments[1].value = n;
    int before = fakes.call_count();
    REQUIRE(backend->launch(*queue, function, {4, 1, 1}, arguments, 3));
    calls.push_back(fakes.calls_since(before));
    before = fakes.call_count();
    REQUIRE(backend->launch_checked(*queue, function, {4, 1, 1}, arguments, values, 3));
    CHECK(fakes.calls_since(before) == calls.back());
  }
  CHECK(calls[0] != calls[1]);
}

TEST_CASE("a launch that fails names the code and the kernel", "[cuda]") {
  const Fakes fakes;
  const auto backend = fakes.backend();
  const auto queue = backend->create_queue();
  const auto module = load_cubin(*backend, scale_source(), scale_cubin());
  const Argument arguments[3] = {};
  fakes.fail_at("cuLaunchKernel", 1, 999);
  const Status status = backend->launch(*queue, module->function("scale"), {}, arguments, 3);
  CHECK(status.code() == ErrorCode::driver);
  CHECK(std::string(status.message()) ==
        "cuLaunchKernel: CUDA_ERROR_UNKNOWN (999): unknown error: kernel "
        "scale");
  fakes.fail_at("cuStreamSynchronize", 1, 1002);
  CHECK(std::string(queue->synchronize().message()) ==
        "cuStreamSynchronize: CUDA error (1002): unknown to this driver");
}

TEST_CASE("a kernel that the source or the cubin lacks, or whose blocks are too large", "[cuda]") {
  const Fakes fakes;
  {
    const auto backend = fakes.backend();
    const auto module = load_cubin(*backend, scale_source(), scale_cubin());
    const ErrorInfo unknown = error_info([&] { module->function("other"); });
    CHECK(unknown.kind == ErrorKind::internal);
    CHECK(contains(unknown.message, "source scale has no kernel other; it has scale"));
    const ErrorInfo absent =
        error_info([&] { load_cubin(*backend, scale_source(), fake_cubin("shift 1024 0\n")); });
    CHECK(contains(absent.message, "cuModuleGetFunction: CUDA_ERROR_NOT_FOUND (500)"));
    CHECK(contains(absent.message, "kernel scale"));
    const ErrorInfo large =
        error_info([&] { load_cubin(*backend, scale_source(512), fake_cubin("scale 256 0 8 4 8\n")); });
    CHECK(contains(large.message, "can run blocks of 256 threads"));
    CHECK(error_info([&] { load_cubin(*backend, scale_source(), {}); }).code == ErrorCode::internal);
  }
  fakes.require_clean();
}

TEST_CASE("bytes go to the device and come back", "[cuda]") {
  const Fakes fakes;
  {
    const auto backend = fakes.backend();
    const auto queue = backend->create_queue();
    CHECK(fakes.find_call("cuStreamCreate") == "cuStreamCreate 1");  // non-blocking
    char* a = static_cast<char*>(backend->allocate(300));
    char* b = static_cast<char*>(backend->allocate(300));
    void* none = backend->allocate(0);
    CHECK(none != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(a) % 256 == 0);
    std::vector<char> host(300, 'x'), back(300, 0);
    REQUIRE(backend->upload(*queue, a, host.data(), 300));
    REQUIRE(backend->memset(*queue, a + 100, 'z', 100));
    REQUIRE(backend->copy(*queue, b, a, 300));
    REQUIRE(backend->download(*queue, back.data(), b, 300));
    REQUIRE(queue->synchronize());
    std::memset(host.data() + 100, 'z', 100);
    CHECK(host == back);
    const int calls = fakes.call_count();
    CHECK(backend->copy(*queue, b, a, 0));
    CHECK(fakes.call_count() == calls);
    CHECK(backend->copy(*queue, b, a, -1).code() == ErrorCode::internal);
    backend->free(a);
    backend->free(b);
    backend->free(none);
    backend->free(nullptr);
  }
  fakes.require_clean();
}

TEST_CASE("out of memory says how much was asked and how much is free", "[cuda]") {
  const Fakes fakes;
  const auto backend = fakes.backend();
  const ErrorInfo error = error_info([&] { backend->allocate(std::int64_t{1} << 50); });
  CHECK(error.kind == ErrorKind::runtime);
  CHECK(error.code == ErrorCode::out_of_memory);
  CHECK(contains(error.hint, "give buffers and workspaces back"));
  CHECK(contains(error.message, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)"));
  CHECK(contains(error.message, "1125899906842624 bytes asked, 1000 of 2000 free"));
  CHECK(error_info([&] { backend->allocate(-1); }).kind == ErrorKind::internal);
}

TEST_CASE("the caller's stream is wrapped, not owned", "[cuda]") {
  const Fakes fakes;
  {
    const auto backend = fakes.backend();
    const auto own = backend->create_queue();
    {
      const auto wrapped = runtime::wrap_cuda_stream(*backend, own->native());
      CHECK(wrapped->native() == own->native());
      CHECK(wrapped->synchronize());
    }
    CHECK(fakes.live("stream") == 1);
    CHECK(runtime::wrap_cuda_stream(*backend, nullptr)->synchronize());
    const ErrorInfo error = error_info([&] { runtime::wrap_cuda_stream(*backend, fakes.foreign_stream()); });
    CHECK(error.kind == ErrorKind::user);
    CHECK(contains(error.message, "belongs to another context"));
  }
  fakes.require_clean();
}

TEST_CASE("what a backend made may outlive it", "[cuda]") {
  const Fakes fakes;
  {
    auto backend = fakes.backend();
    const auto queue = backend->create_queue();
    const auto module = load_cubin(*backend, scale_source(), scale_cubin());
    backend.reset();
    CHECK(fakes.live("context") == 1);
    CHECK(queue->synchronize());
  }
  fakes.require_clean();
}

}  // namespace
}  // namespace fuse::test
#endif
