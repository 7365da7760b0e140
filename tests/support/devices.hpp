// The devices that a test of results runs on; FUSE_TEST_DEVICE chooses. Such a test is tagged [device].
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/device.hpp>
#include <vector>

namespace fuse::test {

/// emulated (the default): plain, and checked on a small odd profile. cuda: the first GPU. cpu: with all
/// cores, and on one thread. `optimization`, of the emulated device: many kernels that run once are soonest
/// done at 0.
std::vector<Device> test_devices(int optimization = 2);

/// The first of them: without checks.
Device test_device();

/// The reference device, then those of test_devices().
std::vector<Device> every_device();

}  // namespace fuse::test
