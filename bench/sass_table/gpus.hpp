// What a GPU can issue for each byte that it copies: the budget of a kernel that should be as fast as a copy.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "target/target.hpp"

namespace fuse::bench::sass {

struct Gpu {
  std::string_view name;
  std::string_view profile;  ///< that kernels are compiled for
  int sms = 0;
  double clock = 0;  ///< Hz, boost
  double copy = 0;   ///< bytes/s read and written together
  std::string_view source;
};

const std::vector<Gpu>& gpus();
/// Throws std::runtime_error, which names the known ones.
const Gpu& gpu_of(std::string_view name);

constexpr int sub_partitions = 4;   ///< of a multiprocessor; each issues one instruction of a warp a cycle
constexpr double latency = 800e-9;  ///< seconds from a load of memory to its data, when memory is busy

/// Instructions of threads that it issues while it copies one byte.
double budget_of_byte(const Gpu&);

}  // namespace fuse::bench::sass
