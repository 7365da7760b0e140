// The border between the files that see libfuse's headers and those that see fuse's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

int libfuse_version();
std::string read_file(const char* path);
