// SPDX-License-Identifier: Apache-2.0
#include "device_choice.hpp"

#include <fmt/format.h>

#include "common.hpp"
#include "target/target.hpp"

namespace fuse::fusec {
namespace {

/// The level of a CPU that --profile names; empty for a GPU's.
std::string level_of(const GraphOptions& options) {
  return is_cpu(target_profile(options.profile)) ? options.profile : "";
}

Device named_device(const RunOptions& options) {
  const std::string& name = options.device;
  if (name == "reference") return Device::reference();
  if (name == "cuda") return Device::cuda();
  if (name == "cpu") return Device::cpu({.machine = level_of(options.graph)});
  if (name == "emulated")
    return Device::emulated({.profile = options.graph.profile,
                             .checked = options.checked,
                             .check_indices = options.check_indices});
  return Device::auto_select();
}

}  // namespace

Device device_of_profile(const GraphOptions& options, bool checked, bool check_indices) {
  const std::string level = level_of(options);
  if (!level.empty() && !checked) return Device::cpu({.machine = level});
  return Device::emulated({.profile = options.profile, .checked = checked, .check_indices = check_indices});
}

ChosenDevice choose_device(const RunOptions& options) {
  target_profile(options.graph.profile);
  const bool automatic = options.device == "auto";
  if (options.checked && !automatic && options.device != "emulated") {
    user_error(ErrorCode::invalid_argument,
               fmt::format("--checked is of the emulated device, not of {}", options.device));
  }
  if (automatic && (options.checked || options.graph.profile_named)) {
    Device device = device_of_profile(options.graph, options.checked, options.check_indices);
    std::string why = fmt::format("{}: {} is an option of this device", to_string(device.kind()),
                                  options.checked ? "--checked" : "--profile " + options.graph.profile);
    return {std::move(device), std::move(why)};
  }
  Device device = named_device(options);
  std::string why = device.why();
  return {std::move(device), std::move(why)};
}

}  // namespace fuse::fusec
