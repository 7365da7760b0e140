// A launch beyond the profile's limits, or with arguments that do not fit, is refused with a reason.
// SPDX-License-Identifier: Apache-2.0
#include "emulated/support.hpp"

namespace fuse::test {
namespace {

void refused(const Status& status, ErrorCode code, const std::string& text) {
  INFO(status.message());
  CHECK(status.code() == code);
  CHECK(std::string(status.message()).find(text) != std::string::npos);
}

const char* const demanding_kernels = R"(
FUSE_KERNEL(512) wide(global<float> y, int n) {
  if (threadIdx.x < n) store(y, threadIdx.x, 1.0f);
}
FUSE_KERNEL(32) roomy(global<float> y) {
  FUSE_SHARED(float, 2049, tile);
  store(tile, threadIdx.x, 1.0f);
  store(y, threadIdx.x, load(tile, threadIdx.x));
}
)";

}  // namespace

TEST_CASE("launch limits are the profile's", "[emulated]") {
  EmulatedDevice small({.profile = "tiny2"}), large({.profile = "h200"});
  small.load(demanding_kernels);
  large.load(demanding_kernels);
  const auto y = small.buffer(2048), z = large.buffer(2048);
  refused(small.run("wide", {1}, {y, extent(1)}), ErrorCode::invalid_argument,
          "wide: block of 512 exceeds the limit of 256 (tiny2)");
  refused(small.run("roomy", {1}, {y}), ErrorCode::invalid_argument,
          "roomy: shared memory of 8196 exceeds the limit of 8192 (tiny2)");
  CHECK(large.run("wide", {1}, {z, extent(1)}));
  CHECK(large.run("roomy", {1}, {z}));
  refused(large.run("wide", {1, 65536}, {z, extent(1)}), ErrorCode::invalid_argument,
          "wide: grid y of 65536 exceeds the limit of 65535 (h200)");
  refused(large.run("wide", {1, 1, 65536}, {z, extent(1)}), ErrorCode::invalid_argument, "grid z of 65536");
  refused(large.run("wide", {2147483648, 1, 1}, {z, extent(1)}), ErrorCode::invalid_argument,
          "grid x of 2147483648");
  refused(large.run("wide", {-1, 1, 1}, {z, extent(1)}), ErrorCode::invalid_argument, "negative grid");
}

TEST_CASE("a grid without blocks launches nothing", "[emulated]") {
  EmulatedDevice d({.checked = true});
  d.load(demanding_kernels);
  const auto y = d.buffer(2048);
  CHECK(d.run("wide", {0}, {y, extent(1)}));
  CHECK(d.run("wide", {5, 0, 5}, {y, extent(1)}));
  CHECK(d.backend->counts().empty());
}

TEST_CASE("arguments must match the parameters", "[emulated]") {
  EmulatedDevice d({});
  d.load(demanding_kernels);
  const auto y = d.buffer(2048);
  refused(d.run("wide", {1}, {y}), ErrorCode::invalid_argument, "wide: 1 arguments for 2 parameters");
  refused(d.run("wide", {1}, {y, extent(1ll << 31)}), ErrorCode::invalid_argument,
          "extent 'n' = 2147483648 does not fit its 32 bits");
  runtime::Argument long_y = y;
  long_y.bytes = 2049;
  refused(d.run("wide", {1}, {long_y, extent(1)}), ErrorCode::invalid_argument,
          "argument 'y' (2049 bytes at ");
  float host[512];
  const runtime::Argument foreign{.address = host, .bytes = sizeof host};
  refused(d.run("wide", {1}, {foreign, extent(1)}), ErrorCode::invalid_argument,
          "is not inside an allocation of this device");
  const runtime::Argument nothing{};
  CHECK(d.run("wide", {1}, {nothing, extent(0)}));
  CHECK_THROWS_WITH(d.module->function("narrow"), Catch::Contains("no kernel named narrow"));
}

TEST_CASE("profiles and thread counts are validated", "[emulated]") {
  CHECK_THROWS_WITH(runtime::make_emulated_backend({.profile = "h900"}),
                    Catch::Contains("unknown device profile 'h900'"));
  CHECK_THROWS_WITH(runtime::make_emulated_backend({.threads = -1}),
                    Catch::Contains("cannot run on -1 threads"));
  const auto backend = runtime::make_emulated_backend({.profile = "tiny3", .threads = 3});
  CHECK(backend->target().sms == 3);
  CHECK(backend->report().find("emulated tiny3: plain, 3 threads") == 0);
}

TEST_CASE("a thread has as much memory of its own as on a GPU", "[emulated][not-sanitized]") {
  EmulatedDevice d({});
  d.load(R"(
FUSE_KERNEL(64) deep(global<int> y) {
  volatile int own[100000];
  for (int i = 0; i < 100000; ++i) own[i] = i + threadIdx.x;
  block_barrier();
  int wrong = 0;
  for (int i = 0; i < 100000; ++i) wrong += own[i] != i + threadIdx.x;
  store(y, threadIdx.x, wrong);
}
)");
  const auto y = d.buffer(std::vector<std::int32_t>(64, 1));
  CHECK(d.run("deep", {1}, {y}));
  for (const std::int32_t wrong : d.values<std::int32_t>(y)) CHECK(wrong == 0);
}

}  // namespace fuse::test
