// Plan: the steps of one executable and the values they read and write. Sizes are expressions; prepare()
// binds them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/dim.hpp>
#include <fuse/dtype.hpp>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "plan/epilogue_kind.hpp"
#include "plan/gemm_algorithm.hpp"
#include "plan/gemm_layout.hpp"
#include "plan/versions/version_table.hpp"

namespace fuse::schedule {

using ValueId = std::uint32_t;

/// The bytes that every buffer and every view in one is aligned to.
inline constexpr std::int64_t view_alignment = 16;

/// A location in another value's memory. That value comes before this one, and may itself lie inside another.
struct Inside {
  ValueId whole = 0;
  Dim offset_bytes{};  ///< a multiple of view_alignment
  /// The value is all of the whole from the offset on, of which a GEMM reads elements in strides. The offset
  /// may be past the end where the GEMM reads none.
  bool is_rest = false;
};

/// Memory that steps read and write.
struct PlanValue {
  enum class Kind : std::uint8_t { input, parameter, output, packed, temporary };
  Kind kind = Kind::temporary;
  std::string name{};  ///< input, parameter, output: the caller's name; packed: "p3"; temporary: "t12"
  DType dtype = f32;
  std::vector<Dim> dims{};
  /// The input whose memory it has: of an output, or of a temporary, which a later step writes over. Steps
  /// that write values in one memory run one after another.
  std::optional<ValueId> donor{};
  /// temporary: it has no memory of its own. Where steps write such values, together they write each byte of
  /// the whole once. Where none does, the value is read where the whole was written.
  std::optional<Inside> inside{};
};

/// Launches kernel `kernel` of the source.
struct KernelStep {
  std::uint32_t kernel = 0;
  std::vector<ValueId> buffers{};  ///< in the kernel's parameter order
  std::vector<Dim> extents{};      ///< values of its extent parameters
  Dim grid{};                      ///< blocks
  /// For each buffer, the bytes that the kernel reads or writes of it at most; none: all of each.
  std::vector<Dim> touched{};
  /// The counters of a cooperative kernel's grid barriers, zero before it runs. No other step sees what it
  /// adds, so that they count as read only.
  std::optional<ValueId> counter{};
  /// The fallback launches of a cooperative kernel: they do the same without a grid barrier, one after the
  /// other.
  std::vector<KernelStep> fallback{};
};
/// c = a b through the GEMM library, then the epilogue; see runtime::GemmDesc.
struct GemmStep {
  ValueId a = 0, b = 0, c = 0;
  Dim batch = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  DType operand = f32, result = f32;
  EpilogueKind epilogue = EpilogueKind::none;
  std::optional<ValueId> extra{};  ///< what the epilogue adds
  double scale = 1;                ///< what it multiplies by
  /// How the matrices lie; none: back to back. Those that are there agree in matrices per call and in calls.
  std::optional<GemmLayout> layout{}, layout_a{}, layout_b{};  ///< in c, a and b
  GemmAlgorithm algorithm{};
  std::optional<std::uint32_t> algorithms{};  ///< in Plan::algorithms; none: what `algorithm` says
};
struct CopyStep {
  ValueId from = 0, to = 0;
};
struct MemsetStep {
  ValueId to = 0;
  std::uint8_t byte = 0;
};

/// One of the ways to run a segment, of which a table takes one by the dims.
struct StepVersion {
  std::uint32_t table = 0;  ///< in Plan::tables
  std::uint32_t version = 0;
  bool operator==(const StepVersion&) const = default;
};

struct Step {
  std::variant<KernelStep, GemmStep, CopyStep, MemsetStep> work{};
  std::vector<ValueId> reads{}, writes{};
  bool cooperative = false;         ///< waits for other blocks while it runs
  bool continues = false;           ///< a fallback launch but the first: goes on from the step before it
  std::vector<ir::NodeId> nodes{};  ///< what it computes
  std::uint32_t origin = 0;         ///< its number in Program::origins
  std::string name{};               ///< "ln_layer_norm_0", "gemm.3"
  /// It has work only for dims for which its version is taken; none: for all dims.
  std::optional<StepVersion> version{};
};

struct Plan {
  std::vector<PlanValue>
      values{};  ///< inputs and parameters (graph order), outputs (graph order), packed, temporaries
  std::vector<Step> setup{};  ///< makes the packed values, once after the parameters are bound
  std::vector<Step> steps{};  ///< the steps of each run, in an order that respects dependencies
  /// Which version of a segment runs. The steps of its versions follow each other; all versions write the
  /// same values, but for scratch of their own.
  std::vector<VersionTable> tables{};
  std::vector<GemmAlgorithms> algorithms{};  ///< what was timed; GEMMs of equal extents share one
  /// For each value, the most bytes that it has for any dims that are allowed; `no_bound`: there is no such
  /// number below 2^63. Empty: the dims are numbers.
  std::vector<std::int64_t> most_bytes{};
  static constexpr std::int64_t no_bound = std::numeric_limits<std::int64_t>::max();

  // These are compiled once, in the .cpp: in each file that includes this they take longer than the rest.
  Plan();
  Plan(const Plan&);
  Plan(Plan&&) noexcept;
  Plan& operator=(const Plan&);
  Plan& operator=(Plan&&) noexcept;
  ~Plan();
};

std::string print(const Plan&);
/// As `print` has them: the table, then each algorithm.
std::string algorithms_text(const GemmAlgorithms&, std::size_t number);
/// For each value, the one whose memory it lies in, or itself; an output is its own, donated or not.
std::vector<ValueId> roots(const Plan&);
/// For each value, whether a step writes it.
std::vector<bool> written_values(const Plan&);
/// The plan for dims for which these versions are taken, one per table: without the steps of all others.
Plan with_versions(const Plan&, std::span<const std::uint32_t> taken);
/// For each value, whether the setup reads or writes it, or memory that it lies in.
std::vector<bool> used_by_setup(const Plan&);
/// The plan of the setup alone: what that does not use has no elements.
Plan setup_of(const Plan&);
/// Throws an internal Error unless every value is written before it is read, inputs are never written,
/// every output is written exactly once (itself, or the values inside it that cover it), the setup makes
/// every packed value once from parameters and packed values, and packed extents are constant; whatever
/// versions are taken.
void verify(const Plan&);

}  // namespace fuse::schedule
