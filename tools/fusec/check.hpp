// Comparing what a device made with the reference. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "ir/graph.hpp"
#include "runtime/host_tensor.hpp"
#include "runtime/reference/evaluate.hpp"

namespace fuse::fusec {

struct Verdict {
  bool ok = false;
  std::string text;       ///< one line
  double over_bound = 0;  ///< largest error over its bound; of integers and bools, 0 where all are equal
};

/// Floats: an element may be off the exact value by 4 times the largest error that op-by-op evaluation in the
/// same types makes anywhere in this output, or by 4 units in the last place of its own. Where that
/// evaluation (or the exact one) is not finite, the element has to be what it is. Integers and bools equal
/// it.
///
/// One evaluation may hit the exact values by chance, a single number most of all. So before a float output
/// is said to be wrong, others are asked, with floats of the inputs and parameters that are off by a unit in
/// the last place: what those err by, each from the exact values of its own inputs, counts as well.
class OutputChecker {
 public:
  using Dims = std::function<std::int64_t(std::string_view)>;

  /// Refers to the graph and the values. `now` is told what goes on.
  OutputChecker(const ir::Graph& graph, const runtime::Values& inputs, Dims dims,
                std::function<void(std::string)> now = {});

  /// Evaluates at the first call. Throws what `runtime::evaluate` throws.
  Verdict check(const std::string& output, const runtime::HostTensor& got);

 private:
  static constexpr int most_samples = 8;

  void tell(std::string what) const;
  void evaluate();
  void take_sample();
  runtime::Values nudged(int sample) const;
  /// What `same_type` errs by, into usual_.
  void take_errors(const runtime::ReferenceResult& exact, const runtime::ReferenceResult& same_type);
  Verdict judge(const std::string& output, const runtime::HostTensor& got) const;

  const ir::Graph& graph_;
  const runtime::Values& inputs_;
  const Dims dims_;
  const std::function<void(std::string)> now_;
  runtime::ReferenceResult exact_, same_type_;
  std::map<std::string, double> usual_;  // by output: the largest error of op-by-op evaluation
  int samples_ = 0;
};

}  // namespace fuse::fusec
