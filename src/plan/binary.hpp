// Binary: kernels as a device loads them, whoever built them: machine code and what launches must know of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/source.hpp"

namespace fuse::runtime {

struct Binary {
  /// What a device takes at a time: a cubin, or a shared library of the host.
  struct Image {
    std::vector<char> bytes;
    std::uint32_t kernels = 0;  ///< of Binary::kernels, behind those of the images before it
  };
  std::string name;                          ///< the source's: "softmax"
  std::string maker;                         ///< the compiler: "/usr/bin/c++", "NVRTC 13.0"
  std::vector<codegen::KernelInfo> kernels;  ///< as Source::kernels
  std::vector<Image> images;
};

}  // namespace fuse::runtime
