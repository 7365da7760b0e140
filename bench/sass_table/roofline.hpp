// A static roofline: what the kernels of a graph issue for each element, beside what a GPU can issue while it
// copies that element. Nothing of it is measured. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <fuse/graph.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "compile/builds/builds.hpp"
#include "gpus.hpp"
#include "plan/source.hpp"
#include "sass_table/sass/disassembly.hpp"
#include "sass_table/sass/instruction_weights.hpp"
#include "sass_table/sass/opcodes.hpp"

namespace fuse::bench::sass {

/// The accesses of a kernel to one of its global buffers, by one kind of instruction.
struct Access {
  std::string buffer;
  bool stores = false;
  int bytes = 0;                  ///< of each thread
  double issues = 0;              ///< for each element
  std::int64_t extent_bytes = 0;  ///< of the whole buffer
  bool could_be_wide = false;     ///< its innermost extent is a multiple of 16 bytes
};

/// Cycles and issue slots are those of a sub-partition for one element, times 32: an instruction that one
/// thread has for one element is 1.
struct KernelCount {
  std::string name;
  std::int64_t grid = 0, read_bytes = 0, moved_bytes = 0, shared_bytes = 0, spilled_bytes = 0;
  int threads = 0, registers = 0, blocks_per_sm = 0;
  double waves = 0, last_wave = 0;  ///< of blocks; the share of its slots that the last one fills
  double slots = 0;
  std::array<double, pipes> busy{};  ///< cycles of each pipe
  double cycles = 0;                 ///< the most of slots and of any pipe
  Pipe bound = Pipe::none;           ///< by; none: by issue slots
  std::int64_t bytes_in_flight = 0;  ///< of an SM: loads issued before the first of them is used
  bool barriers = false;
  std::vector<Access> accesses;
  std::vector<Unweighted> slow;
  std::vector<std::string> waits;
  double predicted_seconds = 0;
};

struct CaseCount {
  std::string name;
  std::int64_t elements = 0;                ///< of the largest value that kernels read or write
  std::int64_t floor_bytes = 0;             ///< given values read once, results written once
  double budget = 0;                        ///< slots for each element while the GPU copies floor_bytes
  double slots = 0, cycles = 0, share = 0;  ///< of all kernels; share: cycles / budget
  double predicted_share_of_copy = 0;
  std::vector<KernelCount> kernels;

  const KernelCount& longest() const;  ///< kernel, by cycles; there is one
};

/// Sets the environment of the process for counting, before the first compilation: nothing of the user's
/// cache, and line information, which changes no instruction.
void set_up_counting();

/// Compiles and disassembles each text once; thread safe.
class Counter {
 public:
  explicit Counter(Nvdisasm nvdisasm) : nvdisasm_(std::move(nvdisasm)) {}

  /// At the hints of the graph's symbols. All throw std::runtime_error or fuse::Error that say why a count
  /// is impossible.
  CaseCount count(const std::string& name, const Graph&, const Gpu&);
  /// Of what was compiled for the GPU's profile: the build and the versions of kernels that the dims take.
  CaseCount count(const std::string& name, const CompiledBuilds&, const DimValues&, const Gpu&);
  CaseCount count(const std::string& name, const Compiled&, const DimValues&, const Gpu&);
  const Nvdisasm& nvdisasm() const { return nvdisasm_; }
  /// A folder for texts and disassemblies, for reading; empty: none.
  std::string keep;

 private:
  struct Compilation;
  std::shared_ptr<const Compilation> compilation_of(const codegen::Source&, int arch);

  Nvdisasm nvdisasm_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Compilation>> known_;
};

}  // namespace fuse::bench::sass
