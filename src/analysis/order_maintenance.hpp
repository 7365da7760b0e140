// MaintainedOrder: a list in which "does a stand before b" is a comparison of numbers, and elements move.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace fuse::analysis {

/// Elements are numbers below `size`, at first in their own order. An element has a label; where two
/// neighbours leave no label between them the labels around are spread anew (Bender and others, 2002:
/// logarithmic, amortised).
class MaintainedOrder {
 public:
  using Element = std::uint32_t;

  explicit MaintainedOrder(std::size_t size = 0);

  bool before(Element a, Element b) const { return label_[a] < label_[b]; }
  void move_before(Element element, Element position);
  void move_after(Element element, Element position);
  void remove(Element element);
  /// `element`, wherever it is, takes the position of `old`, which leaves the list.
  void replace(Element old, Element element);
  /// How many labels were spread since the list was made: what moves cost beyond their own step.
  std::size_t relabelled() const { return relabelled_; }

 private:
  void insert_after(Element element, Element position);
  void spread(Element around);

  // The element numbered `size` is the head of the list, which is a ring.
  std::vector<std::uint64_t> label_;
  std::vector<Element> next_, previous_;
  std::size_t relabelled_ = 0;
};

}  // namespace fuse::analysis
