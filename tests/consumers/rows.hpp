// What each consumer does with fuse: a small graph on the emulated device, numbers checked, an error caught.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

/// "ok", or what is wrong.
std::string check_rows();
