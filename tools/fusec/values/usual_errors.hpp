// UsualErrors: how far an element of an output may be off, by what elements like it err by in evaluations.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "fusec/values/answers.hpp"

namespace fuse::fusec {

/// Evaluations are those that decide as the exact one does. The expected error of an element is the largest
/// of its own mean error, the median of the mean errors of elements that err, and the median of the relative
/// ones times its value. An element is like it whose mean error is at most 8 times that (32 times, where
/// there is one evaluation), or at most a sixth of its largest error: it errs in few evaluations, as where a
/// rounding to 16 bits may go either way. So a column that is much larger than the others does not hide what
/// is wrong in them.
class UsualErrors {
 public:
  /// Refers to both.
  UsualErrors(const Answers& answers, const runtime::ReferenceTensor& exact);

  /// How far the element may be off its exact value.
  double bound(std::size_t element) const;
  /// Whether evaluations that decide either way differ by more than that there.
  bool is_beyond(std::size_t element) const;

 private:
  double mean(std::size_t element) const;
  double value(std::size_t element) const;
  /// The expected error, but for the element's own mean.
  double expected(std::size_t element) const;
  /// Whether it errs in few evaluations only.
  bool errs_seldom(std::size_t element) const;
  void find_medians();
  /// The largest error of the elements whose mean error is at most this.
  double largest_up_to(double mean_error) const;

  /// Elements in the order of their mean errors.
  struct Step {
    double mean = 0, largest = 0;
  };

  const Answers& answers_;
  const runtime::ReferenceTensor& exact_;
  bool mostly_exact_ = true;   ///< 9 of 10 elements have no error in any evaluation
  double median_ = 0;          ///< mean error of the elements that err
  double median_part_ = 0;     ///< relative to the value
  double seldom_ = 0;          ///< largest error of the elements that err in few evaluations
  double relative_ = 0;        ///< largest relative error, of elements like the usual one
  std::vector<Step> steps_{};  ///< by mean error: the largest error up to there
};

}  // namespace fuse::fusec
