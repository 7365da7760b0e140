// The emulated device: runs the emitted CUDA text on the CPU, and in checked mode proves it free of the
// faults that a GPU would not report. docs/emulated-device.md is its page.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/device.hpp>
#include <memory>
#include <optional>
#include <string>

#include "runtime/device/backend.hpp"
#include "target/target.hpp"

namespace fuse::runtime {

struct EmulatedOptions {
  std::string profile = "h200";
  std::optional<Target> target{};  ///< in place of the profile's
  bool checked = false;
  bool check_indices = false;
  int threads = 0;                 ///< OS threads that run blocks; 0: as many as the machine has
  std::uint64_t shuffle_seed = 0;  ///< nonzero: blocks, warps and lanes run in a random order
  BlockScheduling scheduling = BlockScheduling::greedy;  ///< how blocks of cooperative launches get slots
  int optimization = 2;                                  ///< level of the C++ compiler, 0 to 3
  /// Time is the cost model's (virtual_clock.hpp), with noise from a seed; else it is the host's.
  bool virtual_clock = false;
  double clock_noise = 0;
  std::uint64_t clock_seed = 1;
};

/// Throws a user Error for an unknown profile. A missing compiler is an Error of the first load.
std::unique_ptr<Backend> make_emulated_backend(const EmulatedOptions& options);

}  // namespace fuse::runtime
