// Device memory: ranges are checked always; checked mode also knows which bytes anybody wrote.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <fstream>

#include "emulated/support.hpp"
#include "runtime/emulated/memory/device_memory.hpp"

namespace fuse::test {
namespace {

/// Of the process, used or not.
std::int64_t address_space_bytes() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

}  // namespace

TEST_CASE("no bytes may be asked for behind the last one, and one may not", "[emulated]") {
  runtime::emulated::Memory memory(false);
  auto* const first = static_cast<char*>(memory.allocate(64));
  for (const std::int64_t at : {0, 1, 64}) {
    const std::optional<runtime::emulated::Span> found = memory.find(first + at, 64 - at);
    REQUIRE(found);
    CHECK(found->offset == at);
    CHECK(!memory.find(first + at, 65 - at));
  }
  CHECK(memory.release(first));
}

TEST_CASE("memory moves between host and device", "[emulated]") {
  for (const bool checked : {false, true}) {
    EmulatedDevice d({.checked = checked});
    std::vector<int> values(100);
    for (int i = 0; i < 100; ++i) values[static_cast<std::size_t>(i)] = i;
    const auto a = d.buffer(values), b = d.buffer(400);
    CHECK(reinterpret_cast<std::uintptr_t>(a.address) % 256 == 0);
    REQUIRE(d.backend->copy(*d.queue, b.address, a.address, 400));
    CHECK(d.values<int>(b) == values);
    REQUIRE(d.backend->memset(*d.queue, b.address, 0, 8));
    CHECK(d.values<int>(b)[1] == 0);
    CHECK(d.values<int>(b)[2] == 2);
    CHECK(d.queue->synchronize());
  }
}

TEST_CASE("ranges outside an allocation are refused", "[emulated]") {
  EmulatedDevice d({});
  const auto a = d.buffer(100);
  char host[200] = {};
  for (const Status& s :
       {d.backend->upload(*d.queue, a.address, host, 101),
        d.backend->download(*d.queue, host, a.address, 101), d.backend->memset(*d.queue, host, 0, 1),
        d.backend->copy(*d.queue, a.address, host, 4), d.backend->upload(*d.queue, nullptr, host, 1),
        d.backend->upload(*d.queue, a.address, host, -1)}) {
    CHECK(s.code() == ErrorCode::invalid_argument);
    CHECK(std::string(s.message()).find("not inside an allocation of this device") != std::string::npos);
  }
  CHECK(d.backend->upload(*d.queue, nullptr, nullptr, 0));
}

TEST_CASE("allocation: nothing, too much, and freeing what is not ours", "[emulated]") {
  EmulatedDevice d({.checked = true});
  const auto none = d.buffer(0);
  CHECK(none.address != nullptr);
  char byte = 0;
  CHECK_FALSE(d.backend->upload(*d.queue, none.address, &byte, 1));
  CHECK_THROWS_WITH(d.backend->allocate(1ll << 60), Catch::Contains("cannot allocate"));
  CHECK_THROWS_WITH(d.backend->allocate(-1), Catch::Contains("an allocation of -1 bytes"));
  d.backend->free(&byte);
  d.backend->free(nullptr);
  void* left = d.backend->allocate(1000);  // the device's end frees it
  CHECK(left != nullptr);
}

TEST_CASE("checked memory that is freed takes no addresses any more", "[emulated]") {
  constexpr std::int64_t bytes = 64 << 20, rounds = 64;
  const std::int64_t before = address_space_bytes();
  {
    EmulatedDevice d({.checked = true});
    for (std::int64_t i = 0; i < rounds; ++i) d.backend->free(d.backend->allocate(bytes));
    CHECK(address_space_bytes() - before < rounds * bytes / 4);
  }
  for (std::int64_t i = 0; i < rounds; ++i) {
    EmulatedDevice d({.checked = true});
    CHECK(d.backend->allocate(bytes));  // the device's end frees it
  }
  CHECK(address_space_bytes() - before < rounds * bytes / 4);
}

TEST_CASE("checked mode refuses to download what nobody wrote", "[emulated][fault]") {
  EmulatedDevice d({.checked = true});
  const auto a = d.buffer(64), b = d.buffer(64);
  char host[64] = {};
  REQUIRE(d.backend->upload(*d.queue, a.address, host, 40));
  const auto status = d.download(a, host);
  CHECK(status.code() == ErrorCode::kernel_fault);
  CHECK(std::string(status.message()) == "download of 64 bytes: nobody wrote byte 40");
  CHECK(d.backend->download(*d.queue, host, a.address, 40));
  // A copy carries the gap along.
  REQUIRE(d.backend->copy(*d.queue, b.address, a.address, 64));
  CHECK_FALSE(d.download(b, host));
  REQUIRE(d.backend->memset(*d.queue, static_cast<char*>(b.address) + 40, 7, 24));
  CHECK(d.download(b, host));
}

TEST_CASE("a GEMM in checked mode reads written memory and marks its result", "[emulated][fault]") {
  EmulatedDevice d({.checked = true});
  const auto gemm = d.backend->prepare_gemm(
      {.batch = 2, .m = 2, .n = 3, .k = 4, .stride_a = 8, .stride_b = 0, .stride_c = 6});
  const auto a = d.buffer(std::vector<float>(16, 2.0f)), b = d.buffer(std::vector<float>(12, 3.0f));
  const auto c = d.buffer(48), fresh = d.buffer(48), small = d.buffer(44);
  const auto run = [&](const runtime::Argument& x, const runtime::Argument& y, const runtime::Argument& z) {
    return gemm->run(*d.queue, x.address, y.address, z.address, nullptr);
  };
  REQUIRE(run(a, b, c));
  CHECK(d.values<float>(c) == std::vector<float>(12, 24.0f));
  CHECK(std::string(run(a, fresh, c).message()) == "gemm: reads b[0], which nobody wrote");
  CHECK(std::string(run(a, b, small).message()).find("gemm: operand c of 48 bytes") == 0);
}

}  // namespace fuse::test
