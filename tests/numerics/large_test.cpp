// One real run above 2^31 elements: indices, grids and sizes are 64-bit where they have to be.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fuse/fuse.hpp>
#include <iostream>
#include <vector>

#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/sanitized.hpp"
#include "tensors/host_tensor.hpp"

using namespace fuse;  // NOLINT
using runtime::HostTensor;

TEST_CASE("numerics: a tensor of more than 2^31 elements", "[numerics][device][large]") {
  // A sanitizer sees nothing of the kernel that runs, and doubles the memory.
  if (test::sanitized()) return;
  constexpr std::int64_t n = (std::int64_t{1} << 31) + 12345;
  const auto free_bytes = static_cast<std::int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  if (free_bytes < 3 * n) {
    std::cout << "skipped: a run of " << n << " bytes needs three times as much free memory\n";
    return;
  }
  Graph g("large");
  const Dim N = g.dim("N", {.min = 256, .max = std::int64_t{1} << 40, .hint = 1024});
  // The low byte of a coordinate, wrapped: right only where the whole coordinate is.
  const Tensor i = g.iota(i64, {N}, 0);
  const Tensor y = convert(i ^ (i >> 8) ^ (i >> 16) ^ (i >> 24), u8);
  g.output("y", y);
  g.output("tail", slice(y, 0, N - 100, N));
  g.output("picked", gather(y, g.dim_size(N) - 1 - g.iota(i64, {5}, 0), 0));

  const auto expected = [](std::int64_t at) {
    return static_cast<std::uint8_t>(at ^ (at >> 8) ^ (at >> 16) ^ (at >> 24));
  };
  Session session(compile(g, test::test_device()), {{"N", n}});
  session.run();
  HostTensor got = HostTensor::make(u8, {n});
  session.get("y", got.data);
  // Of 256 elements the low byte of the coordinate counts up, and the others are the same: one of 256 runs.
  std::vector<std::array<std::uint8_t, 256>> runs(256);
  for (std::size_t others = 0; others < 256; ++others) {
    for (std::size_t low = 0; low < 256; ++low) runs[others][low] = static_cast<std::uint8_t>(others ^ low);
  }
  std::int64_t wrong = 0;
  for (std::int64_t at = 0; at < n; at += 256) {
    const auto bytes = static_cast<std::size_t>(std::min<std::int64_t>(256, n - at));
    wrong += std::memcmp(got.data.data() + at, runs[expected(at)].data(), bytes) != 0;
  }
  CHECK(wrong == 0);
  HostTensor tail = HostTensor::make(u8, {100}), picked = HostTensor::make(u8, {5});
  session.get("tail", tail.data);
  session.get("picked", picked.data);
  for (std::int64_t at = 0; at < 100; ++at) CHECK(tail.get_int(at) == expected(n - 100 + at));
  for (std::int64_t at = 0; at < 5; ++at) CHECK(picked.get_int(at) == expected(n - 1 - at));
}
