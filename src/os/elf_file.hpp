// A shared library as a file: whether all of it is there. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace fuse {

/// "cut short: 100 bytes, its segments need 3000" where the file ends before a segment that the loader would
/// map; empty where it is whole, cannot be read, or is no 64-bit ELF file (the loader says so itself).
std::string elf_truncation(const std::string& path);

}  // namespace fuse
