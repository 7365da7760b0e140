// Binary: kernels as a device loads them, whoever built them: machine code and what launches must know about
// it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/source.hpp"

namespace fuse::runtime {

struct Binary {
  /// What a device loads at a time: a cubin, or a shared library of the host.
  struct Image {
    std::vector<char> bytes;
    std::uint32_t kernels = 0;  ///< how many of Binary::kernels, after those of earlier images
    std::uint32_t first = 0;    ///< the number that the image gives the first of these: a library's entry
  };
  std::string name;                          ///< the source's name: "softmax"
  std::string maker;                         ///< the compiler: "/usr/bin/c++", "NVRTC 13.0"
  std::vector<codegen::KernelInfo> kernels;  ///< the same as Source::kernels
  std::vector<Image> images;
};

}  // namespace fuse::runtime
