// Blocks of a multiprocessor against NVIDIA's own count, cuda_occupancy.h, where the toolkit is installed.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "target/residency.hpp"

#if __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>

#include <climits>
#endif

namespace fuse::test {
namespace {

#if __has_include(<cuda_occupancy.h>)

/// From the table of compute capabilities in NVIDIA's programming guide. The header has its own block slots.
struct OccupancyRow {
  int arch, threads;
  std::int64_t shared, reserved;
};
constexpr OccupancyRow occupancy_rows[] = {
    {70, 2048, 98304, 0},      {75, 1024, 65536, 0},      {80, 2048, 167936, 1024},
    {86, 1536, 102400, 1024},  {87, 1536, 167936, 1024},  {89, 1536, 102400, 1024},
    {90, 2048, 233472, 1024},  {100, 2048, 233472, 1024}, {103, 2048, 233472, 1024},
    {110, 1536, 233472, 1024}, {120, 1536, 102400, 1024}, {121, 1536, 102400, 1024}};

cudaOccDeviceProp properties_of(const OccupancyRow& row) {
  cudaOccDeviceProp p;
  p.computeMajor = row.arch / 10;
  p.computeMinor = row.arch % 10;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsPerMultiprocessor = row.threads;
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.warpSize = 32;
  p.sharedMemPerBlock = 49152;
  p.sharedMemPerMultiprocessor = static_cast<std::size_t>(row.shared);
  p.sharedMemPerBlockOptin = static_cast<std::size_t>(row.shared - row.reserved);
  p.reservedSharedMemPerBlock = static_cast<std::size_t>(row.reserved);
  p.numSms = 1;
  return p;
}

Target target_of(const OccupancyRow& row, const cudaOccDeviceProp& properties) {
  int slots = 0;
  REQUIRE(cudaOccMaxBlocksPerMultiprocessor(&slots, &properties) == CUDA_OCC_SUCCESS);
  return {.name = "sm_" + std::to_string(row.arch),
          .arch = row.arch,
          .max_threads_per_sm = row.threads,
          .max_blocks_per_sm = slots,
          .shared_per_block_optin = row.shared - row.reserved,
          .shared_per_sm = row.shared,
          .shared_reserved = row.reserved,
          .shared_unit = architecture(row.arch).shared_unit};
}

int blocks_by_nvidia(const cudaOccDeviceProp& properties, int threads, int registers, std::int64_t shared) {
  cudaOccFuncAttributes attributes;
  attributes.maxThreadsPerBlock = INT_MAX;
  attributes.numRegs = registers;
  attributes.numBlockBarriers = 1;
  attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  attributes.maxDynamicSharedSizeBytes = static_cast<std::size_t>(shared);
  const cudaOccDeviceState state;
  cudaOccResult result{};
  REQUIRE(cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &attributes, &state, threads,
                                                  static_cast<std::size_t>(shared)) == CUDA_OCC_SUCCESS);
  return result.activeBlocksPerMultiprocessor;
}

TEST_CASE("blocks of a multiprocessor are those that cuda_occupancy.h counts", "[schedule][residency]") {
  std::vector<int> sizes = {1, 31, 33, 65, 100, 255, 257, 1000, 1023}, counts = {1, 255};
  for (int threads = 32; threads <= 1024; threads += 32) sizes.push_back(threads);
  for (int registers = 8; registers < 255; registers += 8) {
    counts.push_back(registers);
    counts.push_back(registers + 1);  // one unit more
  }
  std::int64_t cases = 0, above = 0, below = 0;
  std::string worst;
  for (const OccupancyRow& row : occupancy_rows) {
    const cudaOccDeviceProp properties = properties_of(row);
    const Target target = target_of(row, properties);
    std::vector<std::int64_t> shared = {0, 1, 127, 128, 129, 255, 256, 257, 259, 49151, 49152, 49153};
    for (std::int64_t bytes = 700; bytes < 12000; bytes += 701) shared.push_back(bytes);
    for (std::int64_t bytes = 13000; bytes < target.shared_per_block_optin; bytes += 9973)
      shared.push_back(bytes);
    for (int k = -2; k <= 1; ++k) shared.push_back(target.shared_per_block_optin + k);
    for (const int threads : sizes) {
      for (const int registers : counts) {
        for (const std::int64_t bytes : shared) {
          const int nvidia = blocks_by_nvidia(properties, threads, registers, bytes);
          const int own = schedule::blocks_per_sm(
              {.blocks = 1, .threads = threads, .registers = registers, .shared_bytes = bytes}, target);
          ++cases;
          above += own > nvidia;
          below += own < nvidia;
          if (own == nvidia || !worst.empty()) continue;
          worst = target.name + ": " + std::to_string(threads) + " threads, " + std::to_string(registers) +
                  " registers, " + std::to_string(bytes) + " bytes: " + std::to_string(own) + ", not " +
                  std::to_string(nvidia);
        }
      }
    }
  }
  WARN("cuda_occupancy.h: " << cases << " cases, " << above << " above, " << below << " below");
  INFO("the first that differs: " << worst);
  CHECK(cases > 1000000);
  CHECK(above == 0);
  CHECK(below == 0);
}

TEST_CASE("the profiles of real GPUs have the limits of their architecture", "[schedule][residency]") {
  for (const std::string_view name : {"h200", "a100", "v100"}) {
    const Target profile = target_profile(name);
    INFO(name);
    const auto* const row = std::find_if(std::begin(occupancy_rows), std::end(occupancy_rows),
                                         [&](const OccupancyRow& r) { return r.arch == profile.arch; });
    REQUIRE(row != std::end(occupancy_rows));
    const Target target = target_of(*row, properties_of(*row));
    CHECK(profile.max_threads_per_sm == target.max_threads_per_sm);
    CHECK(profile.max_blocks_per_sm == target.max_blocks_per_sm);
    CHECK(profile.registers_per_sm == target.registers_per_sm);
    CHECK(profile.shared_per_sm == target.shared_per_sm);
    CHECK(profile.shared_per_block_optin == target.shared_per_block_optin);
    CHECK(profile.shared_reserved == target.shared_reserved);
    CHECK(profile.shared_unit == target.shared_unit);
  }
}

#else

TEST_CASE("blocks of a multiprocessor are those that cuda_occupancy.h counts", "[schedule][residency]") {
  WARN("skipped: the CUDA toolkit's cuda_occupancy.h is not here");
}

#endif

TEST_CASE("a block that has more than a block may have has no slot", "[schedule][residency]") {
  Target target = target_profile("h200");
  target.shared_per_block_optin = 64 << 10;  // less than half of a multiprocessor's
  const auto blocks = [&](int threads, std::int64_t shared) {
    return schedule::blocks_per_sm({.blocks = 1, .threads = threads, .registers = 32, .shared_bytes = shared},
                                   target);
  };
  CHECK(blocks(256, 64 << 10) > 0);
  CHECK(blocks(256, (64 << 10) + 1) == 0);
  CHECK(blocks(target.max_threads_per_block, 0) > 0);
  CHECK(blocks(target.max_threads_per_block + 1, 0) == 0);
}

}  // namespace
}  // namespace fuse::test
