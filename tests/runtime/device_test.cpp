// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/access.hpp"
#include "runtime/runtime_support.hpp"
#include "support/variable.hpp"

namespace fuse::test {
namespace {

TEST_CASE("device: names and reasons", "[runtime]") {
  REQUIRE(Device::reference().name() == "reference");
  REQUIRE(Device::reference().kind() == DeviceKind::reference);
  REQUIRE(to_string(Device::reference().kind()) == "reference");
  REQUIRE(Device::emulated().name() == "emulated h200");
  REQUIRE(checked_device().name() == "emulated tiny3 (checked)");
  REQUIRE(checked_device().why() == "emulated: asked for");
  REQUIRE(Device::cpu().name().starts_with("cpu x86-64-v"));
  REQUIRE(Device::cpu().why() == "cpu: asked for");
  REQUIRE(Device::reference().report().find("reference") != std::string::npos);
  REQUIRE(Device::emulated().report().find("h200") != std::string::npos);
}

TEST_CASE("device: auto_select says what it took and why, on one line", "[runtime]") {
  const Device device = Device::auto_select();
  const std::string why = device.why();
  INFO(why);
  REQUIRE(why.find('\n') == std::string::npos);
  if (device.kind() == DeviceKind::cuda) {
    REQUIRE(why == "cuda: the first GPU");
    REQUIRE(device.name().starts_with("cuda:0 "));
    return;
  }
  CHECK(why.find("  ") == std::string::npos);
  CHECK(why.find(" no GPU (") != std::string::npos);
  CHECK(std::count(why.begin(), why.end(), ' ') > 4);  // a sentence
  REQUIRE(error_of([] { Device::cuda(0); }) != "no error");
  // The cpu device wherever it opens, and the emulated one with the reason where it does not.
  const std::string cpu = error_of([] { Device::cpu(); });
  INFO(cpu);
  if (cpu == "no error") {
    REQUIRE(device.kind() == DeviceKind::cpu);
    CHECK(device.name() == Device::cpu().name());
    CHECK(why.starts_with("cpu: no GPU ("));
    CHECK(why.find("emulated") == std::string::npos);
  } else {
    REQUIRE(device.kind() == DeviceKind::emulated);
    CHECK(why.starts_with("emulated: no GPU ("));
    CHECK(why.find(", no cpu device (the cpu device cannot run kernels for ") != std::string::npos);
  }
}

TEST_CASE("device: auto_select takes the cpu device where there is no compiler, and compile names what lacks",
          "[runtime]") {
  const Variable none("FUSE_CXX", "/nonexistent/c++"), driver("FUSE_LIBCUDA", "/nonexistent/libcuda.so.1");
  if (error_of([] { Device::cpu(); }) != "no error") return;  // no x86-64-v2
  const Device device = Device::auto_select();
  CHECK(device.kind() == DeviceKind::cpu);
  Graph g("compiled_nowhere");
  g.output("y", g.input("x", f32, {3}) * 0.125);
  CHECK(error_of([&] {
          compile(g, device, {.cache = false});
        }).starts_with("missing-compiler: the cpu device needs a C++ compiler"));
}

TEST_CASE("device: memory of less than no bytes is refused, and none is memory", "[runtime]") {
  for (const Device& device : {Device::reference(), Device::emulated(), checked_device(), Device::cpu()}) {
    INFO(device.name());
    runtime::Backend& backend = *backend_of(device);
    for (const std::int64_t bytes : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()})
      CHECK_THROWS_AS(backend.allocate(bytes), Error);
    CHECK_THROWS_AS(backend.allocate(std::numeric_limits<std::int64_t>::max()), Error);
    void* const none = backend.allocate(0);
    CHECK(none != nullptr);
    backend.free(none);
  }
}

TEST_CASE("device: options that make no sense", "[runtime]") {
  REQUIRE(error_of([] { Device::emulated({.profile = "h2000"}); }).find("h200") != std::string::npos);
  REQUIRE(error_of([] { Device::emulated({.threads = -1}); }) ==
          "invalid-argument: the emulated device cannot run on -1 threads\n  hint: 0 takes one a core");
  REQUIRE(error_of([] { Device::emulated({.optimization = 4}); }) ==
          "invalid-argument: the emulated device has no optimization level 4\n  hint: 0 to 3, as the C++ "
          "compiler's -O");
  REQUIRE(error_of([] { Device::reference().wrap_stream(nullptr); }) ==
          "invalid-argument: reference is no cuda device: it has no CUstream to wrap\n"
          "  hint: make a stream with Device::stream");
}

TEST_CASE("device: the emulated kernels give the same bits at every optimization", "[runtime][emulated]") {
  Graph g("levels");
  const Tensor x = g.input("x", f32, {33, 70});
  g.output("y", exp(x) / sum(exp(x), {1}, {.keep_dims = true}) + rsqrt(x * x + 0.1));
  std::vector<float> values(33 * 70);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 97) * 0.0713f - 3;
  std::vector<std::vector<std::byte>> results;
  for (const int level : {0, 1, 2, 3}) {
    Session session(compile(g, Device::emulated({.optimization = level})));
    session.set("x", bytes_of(values));
    session.run();
    results.push_back(session.get("y"));
  }
  for (const auto& result : results) CHECK((result == results.front()));
}

TEST_CASE("buffer: aligned, shared, copied both ways", "[runtime][device]") {
  for (const Device& device : every_device()) {
    INFO(device.name());
    const std::vector<float> data = {1, -2, 3.5f, 0};
    Buffer copy;
    REQUIRE(copy.size() == 0);
    {
      Buffer buffer = device.allocate(16);
      REQUIRE(buffer.size() == 16);
      REQUIRE(reinterpret_cast<std::uintptr_t>(buffer.address()) % 256 == 0);
      REQUIRE(buffer.view().address == buffer.address());
      buffer.upload(bytes_of(data));
      copy = buffer;
    }
    std::vector<std::byte> back(16);
    copy.download(back);
    REQUIRE(values_of<float>(back) == data);
    Buffer empty = device.allocate(0);
    REQUIRE(empty.address() != nullptr);
    REQUIRE_NOTHROW(empty.upload({}));
    REQUIRE(device.stream().synchronize().code() == ErrorCode::ok);
    REQUIRE((device.stream().native() == nullptr) == (device.kind() != DeviceKind::cuda));
  }
}

TEST_CASE("buffer: bad sizes are refused", "[runtime][device]") {
  for (const Device& device : {Device::reference(), test_device()}) {
    INFO(device.name());
    REQUIRE(error_of([&] { device.allocate(-1); }) == "invalid-argument: a buffer cannot have -1 bytes");
    const std::string huge = error_of([&] { device.allocate(std::int64_t{1} << 60); });
    REQUIRE(huge.starts_with("out-of-memory: "));
    REQUIRE(huge.find("1152921504606846976") != std::string::npos);
    Buffer buffer = device.allocate(16);
    std::vector<std::byte> bytes(15);
    REQUIRE(error_of([&] { buffer.upload(bytes); }) == "buffer-size: upload of 15 bytes for a buffer of 16");
    REQUIRE(error_of([&] { buffer.download(bytes); }) ==
            "buffer-size: download of 15 bytes for a buffer of 16");
    Buffer none;
    REQUIRE(error_of([&] { none.upload(bytes); }) == "buffer-size: upload of 15 bytes for a buffer of 0");
  }
}

TEST_CASE("buffer: parts, at once and as work of a stream", "[runtime][device]") {
  for (const Device& device : every_device()) {
    INFO(device.name());
    Buffer buffer = device.allocate(5 * sizeof(float));
    buffer.upload(std::vector<float>{1, 2, 3, 4, 5});
    buffer.upload(std::vector<float>{30, 40}, 2 * sizeof(float));
    std::vector<float> middle(3), all(5);
    buffer.download(middle, sizeof(float));
    REQUIRE(middle == std::vector<float>{2, 30, 40});

    // Work of one stream is done in order.
    Stream stream = device.stream();
    const std::vector<float> first = {-1}, last = {-4, -5};
    buffer.upload(stream, first);
    buffer.upload(stream, std::span(last), 3 * sizeof(float));
    buffer.download(stream, all);
    REQUIRE(stream.synchronize().code() == ErrorCode::ok);
    REQUIRE(all == std::vector<float>{-1, 2, 30, -4, -5});

    REQUIRE_NOTHROW(buffer.upload(HostData(), 5 * sizeof(float)));
    const Buffer moved = std::move(buffer);
    REQUIRE(error_of([&] { buffer.upload(all); }) ==  // NOLINT: use after move is the point
            "buffer-size: upload of 20 bytes for a buffer of 0");
    REQUIRE_NOTHROW(Buffer().download(stream, HostSpan()));
  }
}

TEST_CASE("buffer: a part that is not inside is refused, and a stream of another device",
          "[runtime][device]") {
  for (const Device& device : {Device::reference(), test_device()}) {
    INFO(device.name());
    Buffer buffer = device.allocate(16);
    std::vector<float> values(2);
    Stream stream = device.stream(), other = Device::reference().stream();
    const std::int64_t most = std::numeric_limits<std::int64_t>::max();
    REQUIRE(error_of([&] { buffer.upload(values, 12); }) ==
            "buffer-size: upload of 8 bytes from byte 12 on, for a buffer of 16");
    REQUIRE(error_of([&] { buffer.download(stream, values, -4); }) ==
            "buffer-size: download of 8 bytes from byte -4 on, for a buffer of 16");
    REQUIRE(error_of([&] { buffer.upload(stream, values, most); }) ==
            fmt::format("buffer-size: upload of 8 bytes from byte {} on, for a buffer of 16", most));
    REQUIRE(error_of([&] { buffer.download(HostSpan(), 17); }) ==
            "buffer-size: download of 0 bytes from byte 17 on, for a buffer of 16");
    REQUIRE(error_of([&] { buffer.upload(other, values); }) ==
            "invalid-argument: upload: the stream is of another device than the buffer\n"
            "  hint: make both with the same Device");
  }
}

// NOLINTBEGIN: use after move is the point
TEST_CASE("a handle that was moved from is still one", "[runtime]") {
  Device device = Device::reference();
  const Device other_device = std::move(device);
  REQUIRE(device.name() == "reference");
  Stream stream = device.stream();
  const Stream other_stream = std::move(stream);
  REQUIRE(stream.synchronize().ok());

  Graph g;
  g.output("y", g.input("x", f32, {2}) + g.parameter("w", f32, {2}));
  Executable executable = compile(g, device);
  const Executable other_executable = std::move(executable);
  const std::vector<float> weight = {1, 2};
  Bound bound = executable.bind(WeightsBuilder().add("w", f32, {2}, bytes_of(weight)).build());
  const Bound other_bound = std::move(bound);
  Prepared prepared = bound.executable().prepare();
  const Prepared other_prepared = std::move(prepared);
  REQUIRE(prepared.bytes(0) == 8);

  Buffer buffer = device.allocate(8);
  const Buffer other_buffer = std::move(buffer);
  REQUIRE(other_buffer.size() == 8);
  REQUIRE(buffer.size() == 0);
}
// NOLINTEND

TEST_CASE("reference backend: has memory only", "[runtime]") {
  const Device device = Device::reference();
  REQUIRE(error_of([&] { backend_of(device)->load_binary(nullptr); }) ==
          "internal: internal error: the reference device evaluates graphs; it cannot load kernels");
  REQUIRE(error_of([&] { backend_of(device)->prepare_gemm({}); }) ==
          "internal: internal error: the reference device evaluates graphs; it cannot prepare a gemm");
  REQUIRE(backend_of(device)->target().name == "h200");
}

}  // namespace
}  // namespace fuse::test
