// What nvdisasm says of a cubin: functions of instructions, each with the lines of the CUDA text that it
// computes. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace fuse::bench::sass {

struct Instruction {
  int address = 0;
  std::string predicate;              ///< "!P1" of `@!P1`; empty: always
  std::string opcode;                 ///< "LDG.E.128.CONSTANT"
  std::vector<std::string> operands;  ///< "R8", "desc[UR4][R8.64]", "`(.L_x_3)"
  std::vector<int> lines;  ///< of the text: where it stands, then where that was inlined; the kernel's last

  /// The kernel's own line; 0 where nothing is known.
  int line() const { return lines.empty() ? 0 : lines.back(); }
  /// "LDG"
  std::string base() const { return opcode.substr(0, opcode.find('.')); }
  bool has(std::string_view modifier) const;  ///< "CONSTANT"
  /// Where a branch, a BSSY or a CALL goes; empty for others.
  std::string target() const;
};

/// A kernel, or what it calls out of line.
struct Function {
  std::string name;
  std::vector<Instruction> code;
  std::map<std::string, std::size_t> labels;  ///< the instruction that each stands before
};

struct Disassembly {
  std::map<std::string, std::vector<Function>> kernels;  ///< by name: itself, then what stands beside it
};

/// Reads `nvdisasm -c -gi`. Throws std::runtime_error for a text that it does not understand.
Disassembly parse_disassembly(const std::string& text);

/// The program nvdisasm.
class Nvdisasm {
 public:
  /// `named`, else FUSE_NVDISASM, else build/tools/nvdisasm of the source tree, else PATH. Throws
  /// std::runtime_error that says what was looked for and what brings it.
  static Nvdisasm find(const std::string& named);

  const std::string& path() const { return path_; }
  const std::string& version() const { return version_; }  ///< "13.1.80"

  /// Throws std::runtime_error with what nvdisasm said where it fails.
  std::string disassemble(const std::vector<char>& cubin) const;

 private:
  Nvdisasm(std::string path, std::string version) : path_(std::move(path)), version_(std::move(version)) {}
  std::string path_, version_;
};

}  // namespace fuse::bench::sass
