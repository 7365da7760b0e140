// SPDX-License-Identifier: Apache-2.0
#include "support/devices.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace fuse::test {

std::vector<Device> test_devices(int optimization) {
  const char* value = std::getenv("FUSE_TEST_DEVICE");
  const std::string name = value && *value ? value : "emulated";
  if (name == "emulated") {
    return {
        Device::emulated({.optimization = optimization}),
        Device::emulated({.profile = "tiny3", .checked = true, .threads = 2, .optimization = optimization})};
  }
  if (name == "cuda") {
    // Kept open, since a new context takes a second; never closed, since the driver may end before us.
    static const auto* gpu = new std::vector<Device>{Device::cuda()};
    return *gpu;
  }
  if (name == "cpu") return {Device::cpu(), Device::cpu({.threads = 1})};
  throw std::runtime_error("FUSE_TEST_DEVICE=" + name + ": emulated, cpu or cuda");
}

Device test_device() { return test_devices().front(); }

std::vector<Device> every_device() {
  std::vector<Device> devices = test_devices();
  devices.insert(devices.begin(), Device::reference());
  return devices;
}

}  // namespace fuse::test
