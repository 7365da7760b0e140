// SPDX-License-Identifier: Apache-2.0
#include "analysis/order_maintenance.hpp"

namespace fuse::analysis {

namespace {
constexpr int label_bits = 62;
/// A range of 2^i labels holds at most (2 / 1.4)^i elements after they are spread.
constexpr double fill = 2 / 1.4;
}  // namespace

MaintainedOrder::MaintainedOrder(std::size_t size) : label_(size + 1), next_(size + 1), previous_(size + 1) {
  const std::uint64_t gap = (std::uint64_t{1} << label_bits) / (size + 1);
  const auto count = static_cast<Element>(size + 1);
  for (Element i = 0; i < count; ++i) {
    label_[i] = i + 1 == count ? 0 : gap * (i + 1);
    next_[i] = (i + 1) % count;
    previous_[i] = (i + count - 1) % count;
  }
}

void MaintainedOrder::remove(Element element) {
  next_[previous_[element]] = next_[element];
  previous_[next_[element]] = previous_[element];
}

void MaintainedOrder::move_after(Element element, Element position) {
  remove(element);
  insert_after(element, position);
}

void MaintainedOrder::move_before(Element element, Element position) {
  remove(element);
  insert_after(element, previous_[position]);
}

void MaintainedOrder::replace(Element old, Element element) {
  remove(element);
  label_[element] = label_[old];
  next_[element] = next_[old];
  previous_[element] = previous_[old];
  next_[previous_[element]] = element;
  previous_[next_[element]] = element;
}

void MaintainedOrder::insert_after(Element element, Element position) {
  const auto end = [&] {
    const Element next = next_[position];
    return next + 1 == label_.size() ? std::uint64_t{1} << label_bits : label_[next];
  };
  if (end() - label_[position] < 2) spread(position);
  label_[element] = label_[position] + (end() - label_[position]) / 2;
  next_[element] = next_[position];
  previous_[element] = position;
  previous_[next_[element]] = element;
  next_[position] = element;
}

void MaintainedOrder::spread(Element around) {
  const auto head = static_cast<Element>(label_.size() - 1);
  Element first = around;
  std::uint64_t count = 1;
  Element last = around;
  double most = 1;
  for (int bits = 1; bits <= label_bits; ++bits) {
    most *= fill;
    const std::uint64_t width = std::uint64_t{1} << bits, low = label_[around] & ~(width - 1);
    while (first != head && label_[previous_[first]] >= low) first = previous_[first], ++count;
    while (next_[last] != head && label_[next_[last]] - low < width) last = next_[last], ++count;
    const std::uint64_t gap = width / count;
    if (gap < 2 || (static_cast<double>(count) > most && bits < label_bits)) continue;
    std::uint64_t label = low;
    for (Element at = first;; at = next_[at], label += gap) {
      label_[at] = label;
      ++relabelled_;
      if (at == last) return;
    }
  }
}

}  // namespace fuse::analysis
