// Lists: many short lists in one piece of memory, where a vector each would be an allocation each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fuse {

template <class T>
class Lists {
 public:
  std::size_t size() const { return ends_.size(); }
  std::span<T> operator[](std::size_t i) { return {items_.data() + first(i), ends_[i] - first(i)}; }
  std::span<const T> operator[](std::size_t i) const {
    return {items_.data() + first(i), ends_[i] - first(i)};
  }

  void reserve(std::size_t lists, std::size_t items) {
    ends_.reserve(lists);
    items_.reserve(items);
  }
  /// Begins another list, which is the last one.
  void begin() { ends_.push_back(static_cast<std::uint32_t>(items_.size())); }
  /// Puts an item at the end of the last list.
  void push_back(const T& item) {
    items_.push_back(item);
    ++ends_.back();
  }

  /// `count` lists. `each` is called twice with a function of (list, item), which it calls for all items;
  /// they keep their order.
  template <class Each>
  static Lists grouped(std::size_t count, Each&& each) {
    Lists lists;
    std::vector<std::uint32_t> next(count + 1);
    each([&](std::size_t list, const T&) { ++next[list + 1]; });
    for (std::size_t i = 0; i < count; ++i) next[i + 1] += next[i];
    lists.ends_.assign(next.begin() + 1, next.end());
    lists.items_.resize(next[count]);
    each([&](std::size_t list, const T& item) { lists.items_[next[list]++] = item; });
    return lists;
  }

 private:
  std::size_t first(std::size_t i) const { return i == 0 ? 0 : ends_[i - 1]; }

  std::vector<std::uint32_t> ends_;
  std::vector<T> items_;
};

}  // namespace fuse
