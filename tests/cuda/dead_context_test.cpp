// A context that an illegal address has ended: what comes after fails at once, and says by what.
// SPDX-License-Identifier: Apache-2.0
#include "cuda/fake_device.hpp"

namespace fuse::test {
namespace {

constexpr int illegal_address = 700, invalid_value = 1;

}  // namespace

TEST_CASE("a context that has ended is asked nothing more", "[cuda]") {
  const Fakes fakes;
  {
    const auto backend = fakes.backend();
    const auto queue = backend->create_queue();
    fakes.fail_at("cuStreamSynchronize", 1, invalid_value);  // this does not end it
    CHECK_FALSE(queue->synchronize());
    CHECK(queue->synchronize());
    fakes.fail_at("cuStreamSynchronize", 1, illegal_address);
    const Status first = queue->synchronize();
    CHECK(contains(first.message(), "CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
    const int before = fakes.call_count();
    const Status second = queue->synchronize();
    CHECK(second.code() == ErrorCode::driver);
    CHECK(contains(second.message(),
                   "the GPU's context ended by CUDA_ERROR_ILLEGAL_ADDRESS (700) of earlier work"));
    CHECK_FALSE(backend->enter());
    CHECK(error_info([&] { backend->create_queue(); }).code == ErrorCode::driver);
    for (const std::string& call : fakes.calls_since(before)) {
      INFO(call);
      CHECK(call.starts_with("cuGetError"));
    }
  }
  CHECK(fakes.live("stream") == 0);  // what there was is given back all the same
}

TEST_CASE("every error that ends a context is known", "[cuda]") {
  for (const int code : {214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911}) {
    INFO(code);
    const Fakes fakes;
    const auto backend = fakes.backend();
    const auto queue = backend->create_queue();
    fakes.fail_at("cuStreamSynchronize", 1, code);
    CHECK_FALSE(queue->synchronize());
    const int before = fakes.call_count();
    const Status second = queue->synchronize();
    CHECK(second.code() == ErrorCode::driver);
    CHECK(contains(second.message(), "the GPU's context ended by"));
    CHECK(contains(second.message(), "(" + std::to_string(code) + ")"));
    CHECK(fakes.call_count() == before);
  }
}

TEST_CASE("FUSE_SYNC names the step that ends a context", "[cuda]") {
  const Fakes fakes;
  const FakeEnvironment environment;
  const Variable sync("FUSE_SYNC", "1");
  {
    const Device device = Device::cuda();
    Graph g("sync");
    const Tensor x = g.input("x", f32, {64, 64});
    g.output("y", matmul(exp(x), x));
    Session session(compile(g, device));
    session.set("x", std::vector<std::byte>(64 * 64 * 4));
    fakes.fail_at("cuStreamSynchronize", 1, illegal_address);  // behind the first step
    const ErrorInfo error = error_info([&] { session.run(); });
    INFO(error.message);
    CHECK(contains(error.message, "step 0, kernel 'sync_exp_0' (exp) of dead_context_test.cpp:"));
    CHECK(contains(error.message, "CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
  }
}

}  // namespace fuse::test
