// What is known of the machine that this process runs on: a plain value, read once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fuse::runtime::cpu {

struct Machine {
  int cores = 1;                            ///< logical cores that the process may use
  std::int64_t l1d_bytes = 32 << 10;        ///< first-level data cache of a core
  std::int64_t l2_bytes = 512 << 10;        ///< second-level cache of a core
  std::int64_t last_level_bytes = 8 << 20;  ///< one of the largest caches, which cores share
  std::string level;                        ///< what code may use: "x86-64-v3", "armv8-a"
  std::string model;                        ///< "AMD EPYC 9654 96-Core Processor"
};

const Machine& this_machine();

/// The numbers of the logical cores that the calling thread may run on now; empty where nobody says.
std::vector<int> allowed_cores();

/// "48K", "32M" or "512" as bytes, as Linux writes the sizes of caches; 0 for anything else.
std::int64_t cache_bytes(const std::string& text);

}  // namespace fuse::runtime::cpu
