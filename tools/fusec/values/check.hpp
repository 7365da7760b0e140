// Comparing what a device made with the reference. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "eval/evaluate.hpp"
#include "fusec/values/answers.hpp"
#include "ir/graph/ir_graph.hpp"
#include "tensors/host_tensor.hpp"

namespace fuse::fusec {

struct Verdict {
  bool ok = false;
  std::string text;       ///< one line
  double over_bound = 0;  ///< largest error over its bound; of integers and bools, 0 where all are allowed
  bool bare = false;      ///< all NaN, all infinite, or constant: it tells little about the kernels
};

/// Judges outputs by the evaluations that a right device may make (`runtime::evaluate`, variants), and by how
/// far those are off the exact values. docs/fusec.md says why.
///
/// Floats: an element may be off its exact value e by the largest of min(4 A, 16 R |e|), 8 E, 1.5 D and 4
/// units in the last place. A is the largest error of elements like it, and R the largest relative error in
/// the output (usual_errors.hpp), of the evaluations that decide as the exact one does where errors leave a
/// decision open (a comparison, a rounding). E is the largest of these errors at the element, D that of all
/// evaluations, so that only what follows from an open decision is free (answers.hpp). Where one of them is
/// not finite, the element has to be what one of the evaluations has there: NaN, that infinity, or a finite
/// value in the bound. Integers and bools have to lie in the range of what the evaluations
/// have there, or beyond it by half of it, unless its ends are neighbours.
///
/// Op-by-op evaluation is asked first; 16 others once an output is beyond what it allows; all 47 where a
/// decision is open, or an output that is beyond its bound may be infinite.
class OutputChecker {
 public:
  using Dims = std::function<std::int64_t(std::string_view)>;

  /// Refers to the graph and the values. `now` is told what goes on.
  OutputChecker(const ir::Graph& graph, const runtime::Values& inputs, Dims dims,
                std::function<void(std::string)> now = {});

  /// Evaluates at the first call. Throws what `runtime::evaluate` throws.
  Verdict check(const std::string& output, const runtime::HostTensor& got);

 private:
  enum class Asked : std::uint8_t { nothing, one, steady, all };

  void tell(std::string what) const;
  /// Evaluates into answers_: op by op, also in ways that decide as the exact evaluation does, or in those
  /// and ways that decide either way. Goes on to the last where a decision is open.
  void ask(Asked what);
  Verdict judge(const std::string& output, const runtime::HostTensor& got) const;

  const ir::Graph& graph_;
  const runtime::Values& inputs_;
  const Dims dims_;
  const std::function<void(std::string)> now_;
  runtime::ReferenceResult exact_;
  std::map<std::string, Answers> answers_;  // by output
  Asked asked_ = Asked::nothing;
};

}  // namespace fuse::fusec
