// SPDX-License-Identifier: Apache-2.0
#include "sass_table/sass/opcodes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace fuse::bench::sass {
namespace {

/// Where a rate is from.
///   guide    the CUDA C++ programming guide, "Arithmetic Instructions", the table of results per clock cycle
///            per multiprocessor, columns 8.0 and 9.0: 128 results a cycle of 4 sub-partitions are 1 cycle
///            for the 32 threads of a warp, 64 are 2, 32 are 4, 16 are 8
///   profiler the Nsight Compute documentation, "Pipelines": which pipe executes what
///   assumed  neither has it; taken to be as its kin
enum class From : std::uint8_t { guide, profiler, assumed };

struct Row {
  std::string_view base;
  std::string_view modifier;  ///< that the opcode has; empty: any. The first row that fits counts
  Cost sm80, sm90;
  From from;
};

constexpr Cost slot{};
constexpr Cost alu{Pipe::alu, 2}, xu{Pipe::xu, 8}, lsu{Pipe::lsu, 4};
constexpr Cost fma80{Pipe::fma, 2}, fma90{Pipe::fma, 1}, imad90{Pipe::fma_heavy, 2};
constexpr Cost half80{Pipe::half, 1}, bf16_80{Pipe::half, 2};
constexpr Cost fp64_80{Pipe::fp64, 4}, fp64_90{Pipe::fp64, 2};

constexpr Row table[] = {
    // f32
    {"FADD", "", fma80, fma90, From::guide},
    {"FMUL", "", fma80, fma90, From::guide},
    {"FFMA", "", fma80, fma90, From::guide},
    {"FMUL32I", "", fma80, fma90, From::guide},
    {"FADD32I", "", fma80, fma90, From::guide},
    {"FFMA32I", "", fma80, fma90, From::guide},
    {"FMNMX", "", alu, alu, From::guide},
    {"FSETP", "", alu, alu, From::guide},
    {"FSET", "", alu, alu, From::guide},
    {"FSEL", "", alu, alu, From::profiler},
    {"FSWZADD", "", alu, alu, From::assumed},
    {"FCHK", "", xu, xu, From::assumed},
    {"MUFU", "", xu, xu, From::guide},
    // Packed halves. HADD2.F32 widens one.
    {"HADD2", "BF16_V2", bf16_80, fma90, From::guide},
    {"HMUL2", "BF16_V2", bf16_80, fma90, From::guide},
    {"HFMA2", "BF16_V2", bf16_80, fma90, From::guide},
    {"HADD2", "", half80, fma90, From::guide},
    {"HMUL2", "", half80, fma90, From::guide},
    {"HFMA2", "", half80, fma90, From::guide},
    {"HADD2_32I", "", half80, fma90, From::guide},
    {"HMUL2_32I", "", half80, fma90, From::guide},
    {"HFMA2_32I", "", half80, fma90, From::guide},
    {"HMNMX2", "", alu, alu, From::assumed},
    {"HSETP2", "", alu, alu, From::assumed},
    {"HSET2", "", alu, alu, From::assumed},
    // f64
    {"DADD", "", fp64_80, fp64_90, From::guide},
    {"DMUL", "", fp64_80, fp64_90, From::guide},
    {"DFMA", "", fp64_80, fp64_90, From::guide},
    {"DSETP", "", fp64_80, fp64_90, From::profiler},
    // Conversions
    {"F2FP", "", alu, alu, From::guide},  // "all other type conversions"
    {"F2F", "", xu, xu, From::guide},
    {"F2I", "", xu, xu, From::profiler},
    {"I2F", "", xu, xu, From::profiler},
    {"I2FP", "", alu, alu, From::assumed},
    {"FRND", "", xu, xu, From::profiler},
    {"F2IP", "", alu, alu, From::assumed},
    {"I2IP", "", alu, alu, From::assumed},
    {"I2I", "", xu, xu, From::profiler},
    // Integers
    {"IMAD", "", fma80, imad90, From::guide},
    {"IDP", "", fma80, imad90, From::assumed},
    {"IADD3", "", alu, alu, From::guide},
    {"VIADD", "", alu, alu, From::guide},
    {"IABS", "", alu, alu, From::profiler},
    {"IMNMX", "", alu, alu, From::guide},
    {"VIMNMX", "", alu, alu, From::guide},
    {"VIMNMX3", "", alu, alu, From::assumed},
    {"VIADDMNMX", "", alu, alu, From::assumed},
    {"ISETP", "", alu, alu, From::guide},
    {"LEA", "", alu, alu, From::guide},
    {"LOP3", "", alu, alu, From::guide},
    {"PLOP3", "", alu, alu, From::profiler},
    {"SHF", "", alu, alu, From::guide},
    {"SGXT", "", alu, alu, From::profiler},
    {"BMSK", "", alu, alu, From::profiler},
    {"PRMT", "", alu, alu, From::profiler},
    {"SEL", "", alu, alu, From::profiler},
    {"MOV", "", alu, alu, From::profiler},
    {"CS2R", "", alu, alu, From::profiler},
    {"P2R", "", alu, alu, From::profiler},
    {"R2P", "", alu, alu, From::profiler},
    {"VOTE", "", alu, alu, From::guide},
    {"POPC", "", xu, xu, From::guide},
    {"FLO", "", xu, xu, From::guide},
    {"BREV", "", xu, xu, From::guide},
    // Memory, and what goes the way of memory. A sub-partition has 8 lanes of 4 bytes: see cost_of.
    {"LDG", "", lsu, lsu, From::profiler},
    {"STG", "", lsu, lsu, From::profiler},
    {"LD", "", lsu, lsu, From::profiler},
    {"ST", "", lsu, lsu, From::profiler},
    {"LDS", "", lsu, lsu, From::profiler},
    {"STS", "", lsu, lsu, From::profiler},
    {"LDL", "", lsu, lsu, From::profiler},
    {"STL", "", lsu, lsu, From::profiler},
    {"STAS", "", lsu, lsu, From::assumed},
    {"ATOM", "", lsu, lsu, From::profiler},
    {"ATOMG", "", lsu, lsu, From::profiler},
    {"ATOMS", "", lsu, lsu, From::profiler},
    {"RED", "", lsu, lsu, From::profiler},
    {"SHFL", "", lsu, lsu, From::guide},
    {"MATCH", "", xu, xu, From::assumed},
    {"REDUX", "", xu, xu, From::guide},  // 16 a cycle
    {"SYNCS", "", lsu, lsu, From::assumed},
    // The address divergence unit, the branch unit, special registers, fences: they wait, but on no pipe
    // above.
    {"LDC", "", slot, slot, From::profiler},
    {"S2R", "", slot, slot, From::assumed},
    {"BAR", "", slot, slot, From::profiler},
    {"BRA", "", slot, slot, From::profiler},
    {"BSSY", "", slot, slot, From::profiler},
    {"BSYNC", "", slot, slot, From::profiler},
    {"BREAK", "", slot, slot, From::profiler},
    {"BMOV", "", slot, slot, From::profiler},
    {"WARPSYNC", "", slot, slot, From::profiler},
    {"CALL", "", slot, slot, From::profiler},
    {"RET", "", slot, slot, From::profiler},
    {"EXIT", "", slot, slot, From::profiler},
    {"NOP", "", slot, slot, From::profiler},
    {"YIELD", "", slot, slot, From::profiler},
    {"NANOSLEEP", "", slot, slot, From::assumed},
    {"DEPBAR", "", slot, slot, From::profiler},
    {"LDGDEPBAR", "", slot, slot, From::profiler},
    {"LEPC", "", slot, slot, From::assumed},
    {"MEMBAR", "", slot, slot, From::assumed},
    {"FENCE", "", slot, slot, From::assumed},
    {"ERRBAR", "", slot, slot, From::assumed},
    {"CGAERRBAR", "", slot, slot, From::assumed},
    {"CCTL", "", slot, slot, From::assumed},
    {"UCGABAR_ARV", "", slot, slot, From::assumed},
    {"UCGABAR_WAIT", "", slot, slot, From::assumed},
    {"ACQBULK", "", slot, slot, From::assumed},
    {"PREEXIT", "", slot, slot, From::assumed},
    // The uniform datapath, once for a warp.
    {"R2UR", "", slot, slot, From::profiler},
    {"S2UR", "", slot, slot, From::profiler},
    {"UMOV", "", slot, slot, From::profiler},
    {"ULDC", "", slot, slot, From::profiler},
    {"UIADD3", "", slot, slot, From::profiler},
    {"UIMAD", "", slot, slot, From::profiler},
    {"ULEA", "", slot, slot, From::profiler},
    {"ULOP3", "", slot, slot, From::profiler},
    {"UPLOP3", "", slot, slot, From::profiler},
    {"USHF", "", slot, slot, From::profiler},
    {"USEL", "", slot, slot, From::profiler},
    {"UISETP", "", slot, slot, From::profiler},
    {"UPRMT", "", slot, slot, From::profiler},
    {"USGXT", "", slot, slot, From::profiler},
    {"UBMSK", "", slot, slot, From::profiler},
    {"UFLO", "", slot, slot, From::profiler},
    {"UPOPC", "", slot, slot, From::profiler},
    {"UP2UR", "", slot, slot, From::profiler},
    {"UR2UP", "", slot, slot, From::profiler},
    {"VOTEU", "", slot, slot, From::profiler},
    {"UMEMSETS", "", slot, slot, From::assumed},
};

constexpr std::string_view pipe_names[pipes] = {"issue", "fma",  "fma heavy", "alu",
                                                "half",  "fp64", "xu",        "lsu"};

}  // namespace

std::string_view to_string(Pipe pipe) { return pipe_names[static_cast<std::size_t>(pipe)]; }

void check_arch(int arch) {
  if (arch != 80 && arch != 90)
    throw std::runtime_error(fmt::format(
        "sm_{} is unknown to the table of instructions (bench/sass_table/sass/opcodes.cpp), which has "
        "sm_80 and sm_90",
        arch));
}

Cost cost_of(const Instruction& instruction, int arch) {
  check_arch(arch);
  const std::string base = instruction.base();
  for (const Row& row : table) {
    if (row.base != base || (!row.modifier.empty() && !instruction.has(row.modifier))) continue;
    Cost cost = arch == 80 ? row.sm80 : row.sm90;
    // 128 bytes a cycle and multiprocessor: wide accesses take longer.
    if (cost.pipe == Pipe::lsu && base != "SHFL") cost.cycles = std::max(4, access_bytes(instruction));
    return cost;
  }
  throw std::runtime_error(fmt::format(
      "the instruction {} of sm_{} is unknown to bench/sass_table/sass/opcodes.cpp: add its pipe and rate",
      instruction.opcode, arch));
}

bool loads_global(const Instruction& instruction) { return instruction.base() == "LDG"; }
bool stores_global(const Instruction& instruction) { return instruction.base() == "STG"; }

int access_bytes(const Instruction& instruction) {
  if (instruction.has("128")) return 16;
  if (instruction.has("64")) return 8;
  if (instruction.has("U16") || instruction.has("S16") || instruction.has("16")) return 2;
  if (instruction.has("U8") || instruction.has("S8") || instruction.has("8")) return 1;
  return 4;
}

}  // namespace fuse::bench::sass
