// What the cpu device knows of its machine, and how it cuts launches.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/cores/machine.hpp"
#include "runtime/cpu/grain.hpp"
#include "support/catch.hpp"

namespace fuse::test {
namespace {

using runtime::cpu::Grain;
using runtime::cpu::grain_of;

TEST_CASE("the machine has cores and caches", "[runtime]") {
  const runtime::cpu::Machine& machine = runtime::cpu::this_machine();
  CHECK(machine.cores >= 1);
  CHECK(machine.l1d_bytes >= 4 << 10);
  CHECK(machine.l2_bytes >= machine.l1d_bytes);
  CHECK(machine.last_level_bytes >= machine.l2_bytes);
  CHECK(!machine.level.empty());
  CHECK(!machine.model.empty());
  const auto cores = runtime::cpu::allowed_cores();
  if (!cores.empty()) CHECK(cores.size() == static_cast<std::size_t>(machine.cores));
}

TEST_CASE("sizes of caches are read as Linux writes them", "[runtime]") {
  using runtime::cpu::cache_bytes;
  CHECK(cache_bytes("48K") == 48 << 10);
  CHECK(cache_bytes("32M") == 32 << 20);
  CHECK(cache_bytes("512") == 512);
  for (const char* wrong : {"", "K", "-1K", "4Kb", "4T", "99999999999K"}) CHECK(cache_bytes(wrong) == 0);
}

TEST_CASE("a part of a larger machine counts on a part of its cache", "[runtime]") {
  using runtime::cpu::last_level_share;
  CHECK(last_level_share(260 << 20, 2) == 32 << 20);
  CHECK(last_level_share(32 << 20, 2) == 32 << 20);
  CHECK(last_level_share(96 << 20, 8) == 96 << 20);
  CHECK(last_level_share(std::int64_t{4} << 30, 1024) == std::int64_t{4} << 30);
}

TEST_CASE("a launch is cut by what it moves", "[runtime]") {
  constexpr std::int64_t cache = 32 << 20;
  CHECK(grain_of(0, 1 << 30, cache).chunks == 0);
  const Grain small = grain_of(1000, (64 << 10) - 1, cache);
  CHECK(small.chunks == 1);
  CHECK(small.blocks_of_chunk == 1000);
  const Grain even = grain_of(1024, 1024 * 4096, cache);
  CHECK(even.blocks_of_chunk == 32);
  CHECK(even.chunks == 32);
  CHECK(even.stream == 0);
  const Grain odd = grain_of(1000, 1000 * 4096, cache);
  CHECK(odd.chunks == 32);  // the last has 8 blocks
  const Grain large_blocks = grain_of(7, std::int64_t{7} << 20, cache);
  CHECK(large_blocks.blocks_of_chunk == 1);
  CHECK(large_blocks.chunks == 7);
  const Grain many_blocks = grain_of(std::int64_t{1} << 62, 1 << 20, cache);
  CHECK(many_blocks.blocks_of_chunk == 128 << 10);
  CHECK(many_blocks.chunks == std::int64_t{1} << 45);
  CHECK(grain_of(8, cache / 2 - 1, cache).stream == 0);
  CHECK(grain_of(8, cache / 2, cache).stream == 1);
  CHECK(grain_of(8, 2 * cache, cache).stream == 1);
  CHECK(grain_of(8, 2 * cache + 2, cache).stream == 2);
}

}  // namespace
}  // namespace fuse::test
