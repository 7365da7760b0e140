// What a checked (or stuck) kernel did wrong. Recorded as plain data on a fiber's small stack; the text is
// made later, on a full one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "codegen_cuda/source.hpp"

namespace fuse::runtime::emulated {

/// A place in the run: which thread was where.
struct Place {
  std::uint64_t block = 0;
  unsigned thread = 0;
  int line = 0;
  bool store = false;
  const char* what = nullptr;  ///< "block_barrier", "warp_sum"; null: the thread has exited
};

struct Fault {
  enum class Kind : std::uint8_t {
    out_of_bounds,
    misaligned,
    unwritten,
    race,
    read_only,
    divergence,    ///< threads wait at different barriers or exchanges, or have exited
    partial_warp,  ///< an exchange in a warp with fewer than 32 lanes
    undeclared,    ///< a barrier in a kernel whose KernelInfo has none
    shared_size,   ///< more shared memory than KernelInfo has
    stack,
    memory,  ///< the machine ran out of memory
  };
  Kind kind = Kind::race;
  bool shared = false;
  const char* object = "";  ///< name of the parameter or shared array
  std::int64_t index = 0;
  std::int64_t limit = 0;  ///< elements it has; bytes for shared_size
  Place here{}, other{};
};

/// "softmax_0: race on shared 'partial'[3]: thread 32 reads at line 41 (%7 reduce_sum, softmax.sum), ..."
std::string describe(const Fault& fault, const codegen::KernelInfo& kernel);

}  // namespace fuse::runtime::emulated
