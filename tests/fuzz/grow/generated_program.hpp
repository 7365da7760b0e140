// Program: a graph with everything that a run of it depends on, as plain values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "eval/evaluate.hpp"
#include "fuzz/judge/running_error.hpp"
#include "ir/graph/ir_graph.hpp"
#include "target/target.hpp"

namespace fuse::fuzz {

/// How the elements of an input are drawn. Depends on (seed, name, shape) alone.
struct InputStyle {
  enum class Kind : std::uint8_t {
    uniform,  ///< in [low, high]; bools are fair
    whole,    ///< integers in [low, high], in any dtype: sums of them are exact
    spread,   ///< floats: +-2^e for e in [low, high] times a fraction; integers: of any number of bits
    special,  ///< NaN, infinities, -0, subnormals, extremes of integers, between values in [-4, 4]
  };
  Kind kind = Kind::uniform;
  double low = -1, high = 1;
  bool operator==(const InputStyle&) const = default;
};
std::string to_string(const InputStyle&);
/// The inverse of to_string; throws std::runtime_error.
InputStyle parse_style(std::string_view text);

struct Program {
  ir::Graph graph;
  std::map<std::string, InputStyle> inputs;  ///< of each input and parameter
  std::uint64_t inputs_seed = 0;
  std::vector<DimValues> bindings;  ///< values of the symbols: a run each
};

/// The value of every input and parameter for one binding.
runtime::Values make_inputs(const Program&, const DimValues& dims);
runtime::HostTensor make_input(DType, const std::vector<std::int64_t>& shape, std::uint64_t seed,
                               std::string_view name, const InputStyle&);

/// What else a run may vary.
struct RunOptions {
  /// Of the emulated device; "cpu": the cpu device, "cpu x86-64-v3": as a machine of that level.
  std::string profile = "h200";
  bool checked = false;
  int threads = 1;
  std::uint64_t shuffle_seed = 0;  ///< of blocks, warps and lanes; 0: in order
  std::uint64_t choices_seed = 0;  ///< of random Choices for each segment; 0: the scheduler's own
  /// Where choices are random: by loops that no usual nest has, if it can; and what costs decide is random.
  bool nests = false;
  int optimization = 2;     ///< of the emulated device's compiler
  std::string fault{};      ///< planted in the kernels (plant_fault.hpp)
  std::string rules{};      ///< "astitch" (Schemes::astitch), "no-merge" (Stitch::no_merge) or empty
  int runs = 1;             ///< of one workspace, each with buffers elsewhere (run_results.hpp)
  bool graph_mode = false;  ///< the workspace's
  bool together = false;    ///< with a second executable of the program, on the same device
  bool saved = false;       ///< through a saved plan
  int versions = 1;         ///< of a kernel, each for some dims, wherever one is better than another
  bool operator==(const RunOptions&) const = default;
};
/// "profile=tiny3 checked=1 threads=2 shuffle=7 choices=0 optimization=2"; what is left out has its default
std::string to_string(const RunOptions&);
RunOptions parse_options(std::string_view text);

struct Case {
  Program program;
  RunOptions options;
};

/// The program on the cpu device, which has no checks, no order of threads and no other nests.
Case on_cpu(Case, const std::string& device = "cpu");
bool is_on_cpu(const RunOptions&);
/// What the options ask of Device::cpu.
std::string machine_of(const RunOptions&);
/// The device's target: that of the profile, or of the cpu device.
Target target_of(const RunOptions&);

/// A case as `.fuse` text whose first lines are comments with the rest; and back.
std::string to_text(const Case&, const std::string& comment);
Case parse_case(std::string_view text, const std::string& file);

}  // namespace fuse::fuzz
