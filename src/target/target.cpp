// SPDX-License-Identifier: Apache-2.0
#include "target/target.hpp"

#include <algorithm>
#include <array>
#include <fuse/error.hpp>

namespace fuse {
namespace {

// Data-sheet attributes; a copy is taken for 0.89 of the bandwidth there, as on an H200. tiny2 and tiny3 are
// odd on purpose: they expose assumptions about SM counts, shared memory and clusters, and a whole wave of
// them fits an ordinary CPU.
const std::array<Target, 9>& profiles() {
  static const std::array<Target, 9> table = {{
      {.name = "h200"},
      {.name = "h100", .bandwidth = 3.0e12},
      {.name = "b200",
       .arch = 100,
       .sms = 148,
       .l2_bytes = 126 << 20,
       .bandwidth = 7.1e12,
       .flops_f32 = 72e12},
      {.name = "a100",
       .arch = 80,
       .sms = 108,
       .shared_per_block_optin = 166912,
       .shared_per_sm = 167936,
       .max_cluster = 1,
       .l2_bytes = 40 << 20,
       .bandwidth = 1.7e12,
       .flops_f32 = 19.5e12},
      {.name = "v100",
       .arch = 70,
       .sms = 80,
       .shared_per_block_optin = 98304,
       .shared_per_sm = 98304,
       .shared_reserved = 0,
       .shared_unit = 256,
       .max_cluster = 1,
       .l2_bytes = 6 << 20,
       .bandwidth = 0.79e12,
       .flops_f32 = 15.7e12},
      {.name = "l4",
       .arch = 89,
       .sms = 58,
       .max_threads_per_sm = 1536,
       .max_blocks_per_sm = 24,
       .shared_per_block_optin = 101376,
       .shared_per_sm = 102400,
       .max_cluster = 1,
       .l2_bytes = 48 << 20,
       .bandwidth = 0.27e12,
       .flops_f32 = 30e12},
      {.name = "rtx4090",
       .arch = 89,
       .sms = 128,
       .max_threads_per_sm = 1536,
       .max_blocks_per_sm = 24,
       .shared_per_block_optin = 101376,
       .shared_per_sm = 102400,
       .max_cluster = 1,
       .l2_bytes = 72 << 20,
       .bandwidth = 0.9e12,
       .flops_f32 = 82e12},
      {.name = "tiny3",
       .arch = 90,
       .sms = 3,
       .max_threads_per_block = 512,
       .max_threads_per_sm = 768,
       .max_blocks_per_sm = 5,
       .registers_per_sm = 32768,
       .shared_per_block = 16384,
       .shared_per_block_optin = 20480,
       .shared_per_sm = 24576,
       .max_cluster = 3,
       .l2_bytes = 1 << 20,
       .bandwidth = 50e9,
       .flops_f32 = 1e12},
      {.name = "tiny2",
       .arch = 80,
       .sms = 2,
       .max_threads_per_block = 256,
       .max_threads_per_sm = 256,
       .max_blocks_per_sm = 2,
       .registers_per_sm = 16384,
       .shared_per_block = 8192,
       .shared_per_block_optin = 8192,
       .shared_per_sm = 16384,
       .max_cluster = 1,
       .l2_bytes = 256 << 10,
       .bandwidth = 20e9,
       .flops_f32 = 0.5e12},
  }};
  return table;
}

}  // namespace

Architecture architecture(int arch) {
  static constexpr std::array<Architecture, 3> rows = {{
      {.first = 70, .shared_unit = 256, .f32_lanes = 64},
      {.first = 80, .shared_unit = 128, .f32_lanes = 64},
      {.first = 86, .shared_unit = 128, .f32_lanes = 128},
  }};
  Architecture found = rows.front();
  for (const Architecture& row : rows) {
    if (row.first <= arch) found = row;
  }
  return found;
}

Target cpu_target(std::string machine) {
  const std::int64_t second_level_bytes = (machine == "x86-64-v4"   ? 1024
                                           : machine == "x86-64-v2" ? 256
                                                                    : 512)
                                          << 10;
  return {.name = "cpu",
          .machine = std::move(machine),
          .arch = 0,
          .sms = 8,
          .max_threads_per_block = 32,
          .max_threads_per_sm = 1024,
          .max_blocks_per_sm = 32,
          .shared_per_block = second_level_bytes / 4,
          .shared_per_block_optin = second_level_bytes / 4,
          .shared_per_sm = 32 * second_level_bytes,
          .shared_reserved = 0,
          .max_cluster = 1,
          .l2_bytes = 16 << 20,  // of the last level
          .bandwidth = 40e9,
          .flops_f32 = 0.5e12,
          .launch_seconds = 1.5e-6,
          .node_seconds = 1.5e-6};
}

std::span<const std::string_view> cpu_machines() {
  static constexpr std::array<std::string_view, 4> machines = {"x86-64-v2", "x86-64-v3", "x86-64-v4",
                                                               "armv8-a"};
  return machines;
}

bool runs_on(std::string_view here, std::string_view machine) {
  const std::span<const std::string_view> levels = cpu_machines();
  const auto at = std::find(levels.begin(), levels.end(), machine),
             top = std::find(levels.begin(), levels.end(), here);
  const auto processor = [](std::string_view level) { return level.substr(0, level.find('-')); };
  return at != levels.end() && top != levels.end() && at <= top && processor(machine) == processor(here);
}

std::vector<std::string_view> target_profile_names() {
  std::vector<std::string_view> names;
  for (const Target& target : profiles()) names.push_back(target.name);
  return names;
}

Target target_profile(std::string_view name) {
  std::string known;
  for (const Target& target : profiles()) {
    if (target.name == name) return target;
    known += target.name + ", ";
  }
  for (const std::string_view machine : cpu_machines()) {
    if (machine == name) return cpu_target(std::string(machine));
    known += (machine == cpu_machines().front() ? "" : ", ") + std::string(machine);
  }
  throw Error({.code = ErrorCode::unknown_name,
               .message = "unknown device profile '" + std::string(name) + "'",
               .hint = "known profiles: " + known});
}

}  // namespace fuse
