// Which device a command runs on: what --device, --checked and --profile say together.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/device.hpp>
#include <string>

#include "commands.hpp"

namespace fuse::fusec {

struct ChosenDevice {
  Device device;
  std::string why{};  ///< as Device::why, or which option asks for it
};

/// What a profile stands for: the emulated device for that of a GPU, the cpu device for the level of a CPU.
Device device_of_profile(const GraphOptions& options, bool checked = false, bool check_indices = false);

/// Throws what opening the device throws; a user Error for an unknown profile, whatever the device is, and
/// for
/// --checked with another device than the emulated one.
ChosenDevice choose_device(const RunOptions& options);

}  // namespace fuse::fusec
