// NVRTC: a Source's text to a cubin for one arch, and what ptxas said of each kernel. Needs no GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codegen_cuda/source.hpp"
#include "runtime/library.hpp"

namespace fuse::runtime {

struct CompiledKernel {
  std::string name;
  int registers = 0;                   ///< a thread
  std::int64_t spill_store_bytes = 0;  ///< a thread
  std::int64_t spill_load_bytes = 0;
  std::int64_t shared_bytes = 0;  ///< static, a block
  std::int64_t stack_bytes = 0;   ///< a thread

  bool spills() const { return spill_store_bytes || spill_load_bytes; }
};

struct Cubin {
  std::vector<char> image;
  std::string log;                      ///< of the compiler and of ptxas, as they gave it
  std::vector<CompiledKernel> kernels;  ///< one for each of the Source's, in its order
};

/// Compiles for sm_<arch>; thread safe. Throws
///   user unknown_arch        NVRTC does not know the arch; the hint lists those it knows
///   runtime missing_library, incompatible_version, broken_install
///                            no NVRTC that fits and is whole: what was looked for, and where
///   internal internal        the text does not compile: the log and the lines around the first error
Cubin compile_to_cubin(const codegen::Source& source, int arch);

/// The options of a compilation, so that a key can cover them. `kernels` > 1 compiles them in parallel.
std::vector<std::string> nvrtc_options(int arch, std::size_t kernels);

/// Opened once a process; absent, it is a value with a report.
const SharedLibrary& nvrtc_library();
bool nvrtc_available() noexcept;
/// Major and minor; {0, 0} without NVRTC.
std::pair<int, int> nvrtc_version() noexcept;
/// The archs NVRTC compiles for, ascending; empty without NVRTC.
std::vector<int> nvrtc_archs() noexcept;
/// The libraries looked for and where, one a line; with a version when found.
std::string nvrtc_report();

/// Reads ptxas's report (--ptxas-options=-v) into one entry for each kernel it names, in its order.
std::vector<CompiledKernel> parse_ptxas_log(const std::string& log);

}  // namespace fuse::runtime
