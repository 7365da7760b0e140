// Every call to the driver and to cuBLASLt fails once: the failure is named, and nothing leaks.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <array>
#include <set>

#include "cuda/fakes.hpp"

namespace fuse::test {
namespace {

/// Does of everything something; the first failure's text, or "".
std::string use_everything(const Fakes& fakes) {
  try {
    const auto backend = fakes.backend();
    const auto queue = backend->create_queue();
    const auto wrapped = runtime::wrap_cuda_stream(*backend, queue->native());
    const auto module = load_cubin(*backend, scale_source(), scale_cubin());
    const auto gemm = backend->prepare_gemm(
        {.batch = 2, .m = 3, .n = 4, .k = 5, .stride_a = 15, .stride_b = 20, .stride_c = 12});
    const auto zeros = backend->prepare_gemm({.batch = 2, .m = 3, .n = 4, .k = 0, .stride_c = 13});
    struct Memory {
      runtime::Backend& backend;
      void* address;
      ~Memory() { backend.free(address); }
    };
    const Memory a{*backend, backend->allocate(4096)}, b{*backend, backend->allocate(4096)};
    std::array<float, 64> host{};
    const runtime::Argument arguments[] = {{.address = a.address, .bytes = 4096}, {.value = 1}, {.value = 2}};
    Status statuses[] = {
        backend->upload(*queue, a.address, host.data(), sizeof host),
        backend->memset(*queue, b.address, 0, 4096),
        backend->copy(*queue, b.address, a.address, sizeof host),
        backend->launch(*queue, module->function("scale"), {2, 1, 1}, arguments, 3),
        gemm->run(*queue, a.address, a.address, b.address, nullptr),
        zeros->run(*queue, a.address, a.address, b.address, nullptr),
        backend->download(*queue, host.data(), b.address, sizeof host),
        wrapped->synchronize(),
    };
    std::string text;
    for (const Status& status : statuses) {
      if (!status && text.empty()) text = status.message();
    }
    return text;
  } catch (const Error& error) {
    return error.info().message;
  }
}

std::string function_of(const std::string& call) { return call.substr(0, call.find(' ')); }

TEST_CASE("a failure at any call of the driver is reported and leaks nothing", "[cuda]") {
  std::vector<std::string> clean;
  {
    const Fakes fakes;
    REQUIRE(use_everything(fakes) == "");
    fakes.require_clean();
    for (int i = 0; i < fakes.call_count(); ++i) clean.push_back(fakes.call(i));
  }
  REQUIRE(clean.size() > 60);
  // From the first thing given back on, only destructors run: they have nobody to tell.
  std::size_t first_release = 0;
  while (first_release < clean.size() && function_of(clean[first_release]) != "cuMemFree") ++first_release;
  REQUIRE(first_release < clean.size());
  first_release -= 2;  // its push, and the mode of captures

  std::set<std::string> failed;
  for (std::size_t n = 0; n < clean.size(); ++n) {
    const Fakes fakes;
    fakes.fail_at("", static_cast<int>(n) + 1, 999);
    const std::string text = use_everything(fakes);
    const std::string function = function_of(clean[n]);
    INFO("call " << n << ", " << clean[n] << ": " << text);
    if (n < first_release) {
      CHECK(contains(text, function + ": CUDA_ERROR_UNKNOWN (999)"));
      failed.insert(function);
    } else {
      CHECK(text == "");
    }
    fakes.require_clean();
  }
  CHECK(failed.size() >= 22);
}

TEST_CASE("a failure at any call of cuBLASLt is reported and leaks nothing", "[cuda]") {
  std::vector<std::string> clean;
  {
    const Fakes fakes;
    REQUIRE(use_everything(fakes) == "");
    for (int i = 0; i < fakes.blas_call_count(); ++i) clean.push_back(fakes.blas_call(i));
  }
  REQUIRE(clean.size() > 20);
  for (std::size_t n = 0; n < clean.size(); ++n) {
    const Fakes fakes;
    fakes.blas_fail_at("", static_cast<int>(n) + 1, 13);
    const std::string text = use_everything(fakes);
    INFO("call " << n << ", " << clean[n] << ": " << text);
    CHECK(contains(text, function_of(clean[n]) + ": CUBLAS_STATUS_EXECUTION_FAILED (13)"));
    fakes.require_clean();
  }
}

}  // namespace
}  // namespace fuse::test
#endif
