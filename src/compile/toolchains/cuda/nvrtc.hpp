// NVRTC: a Source's text to a cubin for one arch, and what ptxas said about each kernel. Needs no GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "os/shared_library.hpp"
#include "plan/binary.hpp"
#include "plan/source.hpp"

namespace fuse::runtime {

struct CompiledKernel {
  std::string name;
  int registers = 0;                   ///< registers per thread
  std::int64_t spill_store_bytes = 0;  ///< bytes per thread
  std::int64_t spill_load_bytes = 0;
  std::int64_t shared_bytes = 0;  ///< static shared memory per block
  std::int64_t stack_bytes = 0;   ///< bytes per thread
  int min_blocks_per_sm = 1;      ///< blocks per multiprocessor whose registers it was compiled for

  bool spills() const { return spill_store_bytes || spill_load_bytes; }
};

struct Cubin {
  std::vector<char> image;
  std::string log;                      ///< the log of the compiler and of ptxas, as they gave it
  std::vector<CompiledKernel> kernels;  ///< one for each of the Source's, in its order
};

/// Compiles for sm_<arch>; what spills, again for fewer blocks on a multiprocessor, as few as it has to have
/// slots for: where registers are missing, more threads are no help (Cubin::log says so). One program, which
/// ptxas works on with `threads` threads (0: one per core); thread safe. Throws
///   user unknown_arch        NVRTC does not know the arch; the hint lists those it knows
///   runtime missing_library, incompatible_version, broken_install
///                            no NVRTC that fits and is whole: what was looked for, and where
///   internal internal        the text does not compile: the log and the lines around the first error
Cubin compile_to_cubin(const codegen::Source& source, int arch, int threads = 0);

/// The same in several programs, compiled on at most `threads` threads (0: one per core); each has a run of
/// the source's kernels, in order. One program where the source cannot be cut.
std::vector<Cubin> compile_to_cubins(const codegen::Source& source, int arch, int threads);

/// The binary as a device loads it: each cubin has as many of the source's kernels as it lists, the last all
/// others.
Binary binary_of(const codegen::Source& source, const std::vector<Cubin>& cubins);

/// The options of a compilation, so that a key can cover them. `kernels` > 1 are compiled on `threads`
/// threads.
std::vector<std::string> nvrtc_options(int arch, std::size_t kernels, int threads = 0);

/// Opened once per process; absent, it is a value with a report.
const SharedLibrary& nvrtc_library();
bool nvrtc_available() noexcept;
/// Major and minor; {0, 0} without NVRTC.
std::pair<int, int> nvrtc_version() noexcept;
/// The archs NVRTC compiles for, ascending; empty without NVRTC.
std::vector<int> nvrtc_archs() noexcept;
/// The libraries looked for and where, one per line; with a version when found.
std::string nvrtc_report();

/// Reads ptxas's report (--ptxas-options=-v) into one entry for each kernel it names, in its order.
std::vector<CompiledKernel> parse_ptxas_log(const std::string& log);

}  // namespace fuse::runtime
