// What the scheduler knows about a device: a plain value with named profiles. No driver is asked here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fuse {

struct Target {
  std::string name;  ///< "h200"
  /// What kernels are compiled for on a CPU, "x86-64-v4"; empty for a GPU. A CPU's cores stand for
  /// multiprocessors: each runs blocks of one warp, one after the other.
  std::string machine{};
  int arch = 90;  ///< 90 for sm_90: selects instructions, never the schedule
  int sms = 132;  ///< streaming multiprocessors
  int warp_size = 32;
  int max_threads_per_block = 1024;
  int max_threads_per_sm = 2048;
  int max_blocks_per_sm = 32;
  int registers_per_sm = 65536;
  std::int64_t shared_per_block = 49152;  ///< bytes a block may have without opting in
  std::int64_t shared_per_block_optin = 232448;
  std::int64_t shared_per_sm = 233472;
  std::int64_t shared_reserved = 1024;  ///< bytes per block that the driver takes
  std::int64_t shared_unit = 128;       ///< bytes: a block's shared memory is a multiple of them
  int max_cluster = 16;                 ///< blocks; 1 where there are no clusters
  std::int64_t l2_bytes = 50 << 20;
  std::size_t argument_bytes = 4096;  ///< bytes that the arguments of a launch may take
  double bandwidth = 4.3e12;          ///< bytes/s that a device copy reaches
  double flops_f32 = 60e12;           ///< flop/s outside tensor cores
  // These were measured on an H200 (docs/performance.md), except for the launch: there it took 4.5 us, the
  // host's time for the call on a virtual machine.
  double launch_seconds = 2.5e-6;
  double node_seconds = 1.0e-6;     ///< time between two kernels of a replayed graph
  double cluster_seconds = 0.4e-6;  ///< wait of a cluster's blocks for each other, with what they stored
  double barrier_seconds = 1.0e-6;  ///< the same wait for all blocks of a kernel
};

inline bool is_cpu(const Target& target) { return !target.machine.empty(); }

/// A CPU of that feature level, with the least second-level cache that processors of the level usually have.
/// The sizes of the caches at hand and the number of cores are no part of it: plans, and so bits, are the
/// same for all of them.
Target cpu_target(std::string machine);
/// The levels of x86-64, each of which has what those before it have, then those of AArch64.
std::span<const std::string_view> cpu_machines();
/// Whether kernels for a CPU of level `machine` run on one of level `here`.
bool runs_on(std::string_view here, std::string_view machine);

/// What no driver reports about the GPUs of one architecture.
struct Architecture {
  int first = 0;  ///< the row holds from this one (75 for sm_75) to the next row's
  std::int64_t shared_unit = 0;
  int f32_lanes = 0;  ///< f32 units per multiprocessor
};
Architecture architecture(int arch);

/// The named profile of a GPU (a row of target.cpp: "h200", "l4"), or the CPU of a level
/// ("x86-64-v4"); a user error naming the known ones otherwise.
Target target_profile(std::string_view name);
std::vector<std::string_view> target_profile_names();  ///< of GPUs

}  // namespace fuse
