// Runs cases on the emulated device and judges what it answers by the running error analysis.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compile/builds/builds.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "fuzz/forms.hpp"
#include "fuzz/grow/generated_program.hpp"

namespace fuse::fuzz {

enum class Verdict : std::uint8_t {
  ok,
  wasted,    ///< ran, but most of the results are undecided, or there are none
  mismatch,  ///< an element that no right device answers
  unstable,  ///< other bits with blocks, warps and lanes in another order, or with other buffers
  fault,     ///< the device reported one, or refused the run
  build,     ///< the compiler threw, or the system compiler refused the emitted text
  crash,     ///< the process died
  hang,      ///< the process made no progress
};
std::string_view to_string(Verdict);
inline bool is_failure(Verdict verdict) { return verdict != Verdict::ok && verdict != Verdict::wasted; }

struct Outcome {
  Verdict verdict = Verdict::ok;
  std::string text{};
  Shares shares{};
};

using Rewrite = std::function<ir::Graph(const ir::Graph&)>;
/// PipelineOptions::choose, where the case draws none itself.
using Choose = schedule::Chooser;

/// What RunOptions::rules ask of the pipeline.
PipelineOptions pipeline_of(std::string_view rules);

/// What the compiler makes of a case. Its kernels' names begin with `name`. `rewrite` stands before the
/// compiler and is unknown to the oracle: to plant a fault.
CompiledBuilds compiled(const Case&, const std::string& name, const Rewrite& rewrite = {},
                        const Choose& choose = {});

/// One run of a case: what went in, what a right device may answer, and what came out.
struct Observed {
  const DimValues& dims;
  const runtime::Values& inputs;
  const std::map<std::string, Enclosure>& expected;
  const runtime::Values& results;
};
using Observer = std::function<void(const Observed&)>;

/// Cases compiled together: one call of the system compiler builds the kernels of all. What a case is
/// compiled to does not depend on its neighbours.
class Batch {
 public:
  explicit Batch(std::vector<Case> cases, const Rewrite& rewrite = {}, const Choose& choose = {});
  ~Batch();
  std::size_t size() const { return cases_.size(); }
  /// `observe` is called after each run of the case, before it is judged.
  Outcome run(std::size_t i, const Observer& observe = {});
  /// Another order of blocks, warps and lanes for the next run of the case.
  void set_shuffle(std::size_t i, std::uint64_t seed) { cases_[i].options.shuffle_seed = seed; }
  Forms forms(std::size_t i) const;  ///< none of a case that could not be built
  /// The case on the device that it asks for. Throws where it could not be built.
  Executable executable(std::size_t i) const;

 private:
  struct Built;
  void build_modules();
  Executable executable_on(std::size_t i, const Device& device) const;
  void try_run(std::size_t i, const Observer& observe, Outcome& outcome);

  std::vector<Case> cases_;
  std::vector<std::unique_ptr<Built>> built_;
};

Outcome run_alone(const Case&, const Rewrite& rewrite = {});

}  // namespace fuse::fuzz
