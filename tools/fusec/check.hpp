// Comparing what a device made with the reference. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.hpp"
#include "runtime/host_tensor.hpp"
#include "runtime/reference/evaluate.hpp"

namespace fuse::fusec {

struct Verdict {
  bool ok = false;
  std::string text;       ///< one line
  double over_bound = 0;  ///< largest error over its bound; of integers and bools, 0 where all are allowed
  bool bare = false;      ///< all NaN, all infinite, or constant: it tells little about the kernels
};

/// What evaluations in the graph's types answer for one output, and how far they are off the exact values.
struct Answers {
  double abs = 0, rel = 0;  ///< largest error, and largest error over the exact value
  /// Of each element of a float output: bits for NaN, an infinity of either sign, and a finite value.
  std::vector<std::uint8_t> kinds{};
  std::vector<std::int64_t> least{}, greatest{};  ///< of each element of an integer or bool output
};

/// Judges outputs by the evaluations that a right device may make (`runtime::evaluate`, variants), and by how
/// far those are off the exact values. docs/fusec.md says why.
///
/// Floats: an element may be off its exact value e by the larger of min(4 A, 16 R |e|) and 4 units in the
/// last place, where A and R are the largest error and the largest relative error of these evaluations
/// anywhere in the output. Where op-by-op evaluation (or the exact one) is not finite, the element has to be
/// what one of the evaluations has there: NaN, that infinity, or a finite value in the bound. Integers and
/// bools have to lie in the range of what the evaluations have there.
///
/// Variant 0 is asked first; the others once an output is beyond what those before allow.
class OutputChecker {
 public:
  using Dims = std::function<std::int64_t(std::string_view)>;

  /// Refers to the graph and the values. `now` is told what goes on.
  OutputChecker(const ir::Graph& graph, const runtime::Values& inputs, Dims dims,
                std::function<void(std::string)> now = {});

  /// Evaluates at the first call. Throws what `runtime::evaluate` throws.
  Verdict check(const std::string& output, const runtime::HostTensor& got);

 private:
  static constexpr int most_variants = 17;

  void tell(std::string what) const;
  /// Evaluates the next variant, into answers_.
  void ask_variant();
  Verdict judge(const std::string& output, const runtime::HostTensor& got) const;

  const ir::Graph& graph_;
  const runtime::Values& inputs_;
  const Dims dims_;
  const std::function<void(std::string)> now_;
  runtime::ReferenceResult exact_;
  std::map<std::string, Answers> answers_;  // by output
  int variants_ = 0;
};

}  // namespace fuse::fusec
