// What an instruction of sm_80 and sm_90 keeps busy, and for how long: a table, with its sources.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sass_table/sass/disassembly.hpp"

namespace fuse::bench::sass {

/// The pipes of one sub-partition of a multiprocessor, of which it has four.
enum class Pipe : std::uint8_t {
  none,       ///< branches, barriers, constants, the uniform datapath: an issue slot alone
  fma,        ///< f32 arithmetic; on sm_90 packed halves too
  fma_heavy,  ///< the half of sm_90's fma that multiplies integers
  alu,        ///< integers, logic, comparisons
  half,       ///< packed halves of sm_80
  fp64,
  xu,   ///< transcendental functions, slow conversions
  lsu,  ///< memory and shuffles
};
constexpr std::size_t pipes = 8;
std::string_view to_string(Pipe);

/// Of one instruction of a warp.
struct Cost {
  Pipe pipe = Pipe::none;
  double cycles = 0;  ///< that the pipe is busy
};

/// Throws std::runtime_error for an architecture that the table has no column for, and for an opcode that it
/// does not know.
Cost cost_of(const Instruction&, int arch);
void check_arch(int arch);

/// Whether a kernel accesses one of its buffers by it. Generic accesses (LD) are of the shared memory of a
/// cluster, atomic ones of the counters of grid barriers.
bool loads_global(const Instruction&);
bool stores_global(const Instruction&);
/// Bytes that each thread accesses by an instruction of memory.
int access_bytes(const Instruction&);

}  // namespace fuse::bench::sass
