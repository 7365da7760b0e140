// UsualErrors: how far the elements of one output err, by which one of them is judged that a device has drawn
// otherwise. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "answers.hpp"

namespace fuse::fusec {

/// An element is judged by what elements like it err by in the evaluations that decide as the exact one does.
/// One expects of it the largest of its own mean error, the median mean error of the output, and the median
/// relative one times its value. Elements are like it whose mean errors are at most some times that, or which
/// err in a few evaluations only, as where a rounding to 16 bits may go either way. So a column that is much
/// larger than the others does not hide what is wrong in them.
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
  /// Of the mean error, without the element's own.
  double expected(std::size_t element) const;
  /// In few evaluations only.
  bool errs_seldom(std::size_t element) const;
  void find_medians();
  /// The largest error of the elements whose mean error is at most this.
  double largest_up_to(double mean_error) const;

  struct Step {
    double mean = 0, largest = 0;
  };

  const Answers& answers_;
  const runtime::ReferenceTensor& exact_;
  bool mostly_exact_ = true;   ///< 9 of 10 elements have no error in any evaluation
  double median_ = 0;          ///< mean error of the elements that err
  double median_part_ = 0;     ///< relative to the value
  double seldom_ = 0;          ///< largest error of the elements that err in few evaluations
  double relative_ = 0;        ///< largest relative error, of elements that err as expected
  std::vector<Step> steps_{};  ///< by mean error: the largest error up to there
};

}  // namespace fuse::fusec
