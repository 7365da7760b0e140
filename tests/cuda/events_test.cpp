// Events and captured graphs of the cuda device, against the fake driver, where an operation takes 1 ms.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include "cuda/fakes.hpp"

namespace fuse::test {
namespace {

struct Timed {
  Fakes fakes;
  std::unique_ptr<runtime::Backend> backend = fakes.backend();
  std::unique_ptr<runtime::Queue> queue = backend->create_queue();
  std::unique_ptr<runtime::Event> from = backend->create_event(), to = backend->create_event();
  void* memory = backend->allocate(64);
  ~Timed() { backend->free(memory); }

  Status clear() { return backend->memset(*queue, memory, 0, 64); }
  double seconds() {
    double seconds = -1;
    backend->elapsed(*from, *to, seconds).throw_if_failed();
    return seconds;
  }
};

}  // namespace

TEST_CASE("events time what stands between them", "[cuda]") {
  {
    Timed t;
    CHECK(t.backend->clock() == "CUDA events");
    REQUIRE(t.clear());
    REQUIRE(t.backend->record(*t.queue, *t.from));
    for (int i = 0; i < 3; ++i) REQUIRE(t.clear());
    REQUIRE(t.backend->record(*t.queue, *t.to));
    CHECK(t.seconds() == Approx(3e-3));
    CHECK(t.fakes.live("event") == 2);
    CHECK(t.fakes.misuse() == 0);
  }
  Fakes().require_clean();
}

TEST_CASE("a failure of an event's call is reported, a foreign event refused", "[cuda]") {
  Timed t;
  t.fakes.fail_at("cuEventRecord", 1, 999);
  CHECK(contains(t.backend->record(*t.queue, *t.from).message(), "cuEventRecord: CUDA_ERROR_UNKNOWN"));
  REQUIRE(t.backend->record(*t.queue, *t.from));
  REQUIRE(t.backend->record(*t.queue, *t.to));
  t.fakes.fail_at("cuEventSynchronize", 2, 999);
  double seconds = 0;
  CHECK(contains(t.backend->elapsed(*t.from, *t.to, seconds).message(), "cuEventSynchronize"));
  t.fakes.fail_at("cuEventCreate", 1, 2);
  CHECK(error_info([&] { t.backend->create_event(); }).code == ErrorCode::out_of_memory);
  runtime::Event other;
  CHECK(t.backend->record(*t.queue, other).message() == "the event was made by another device");
  CHECK(t.backend->elapsed(other, *t.to, seconds).code() == ErrorCode::internal);
}

TEST_CASE("a queue says whether it is being captured", "[cuda]") {
  Timed t;
  CHECK_FALSE(t.backend->captures(*t.queue));
  const auto work = t.backend->capture(*t.queue, [&] {
    CHECK(t.backend->captures(*t.queue));
    return t.clear();
  });
  CHECK_FALSE(t.backend->captures(*t.queue));
}

TEST_CASE("captured work runs when it is launched", "[cuda]") {
  {
    Timed t;
    const auto work = t.backend->capture(*t.queue, [&] {
      Status first = t.clear();
      return first ? t.clear() : first;
    });
    REQUIRE(work);
    REQUIRE(t.backend->record(*t.queue, *t.from));
    for (int i = 0; i < 5; ++i) REQUIRE(work->launch(*t.queue));
    REQUIRE(t.backend->record(*t.queue, *t.to));
    CHECK(t.seconds() == Approx(10e-3));
    CHECK(t.fakes.live("graph") == 1);
    CHECK(t.fakes.misuse() == 0);
  }
  Fakes().require_clean();
}

TEST_CASE("a capture that fails leaves a stream that works", "[cuda]") {
  {
    Timed t;
    const auto refuse = [] { return Status(ErrorCode::internal, "no"); };
    CHECK(contains(error_info([&] { t.backend->capture(*t.queue, refuse); }).message, "no"));
    for (const char* call : {"cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphInstantiateWithFlags"}) {
      CAPTURE(call);
      t.fakes.fail_at(call, 1, 999);
      CHECK(contains(error_info([&] { t.backend->capture(*t.queue, [&] { return t.clear(); }); }).message,
                     call));
      CHECK(t.fakes.live("graph") == 0);
    }
    CHECK(t.queue->synchronize());
    CHECK(t.fakes.misuse() == 0);
  }
  Fakes().require_clean();
}

}  // namespace fuse::test
#endif
