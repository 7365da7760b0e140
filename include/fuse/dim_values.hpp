// DimValues: the values of a graph's symbols in one run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <fuse/export.hpp>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuse {
inline namespace v0 {

/// Values by name, as in `{{"B", 64}, {"T", 128}}`, sorted by name. It works as a std::map does, and takes
/// less time to include. Where a name is given twice, the first value counts.
class FUSE_COMPILER_API DimValues {
 public:
  /// A name and its value.
  using value_type = std::pair<std::string, std::int64_t>;
  /// Iterators over the values, in the order of the names.
  ///@{
  using iterator = std::vector<value_type>::iterator;
  using const_iterator = std::vector<value_type>::const_iterator;
  ///@}

  /// No values.
  DimValues() = default;
  /// The values of a list.
  DimValues(std::initializer_list<value_type> values) : DimValues(values.begin(), values.end()) {}
  /// The values of a range of pairs.
  template <class Iterator>
  DimValues(Iterator first, Iterator last) {
    insert(first, last);
  }

  /// The value of the first name.
  const_iterator begin() const { return values_.begin(); }
  /// The end, behind the value of the last name.
  const_iterator end() const { return values_.end(); }
  /// The number of names.
  std::size_t size() const { return values_.size(); }
  /// True when no name has a value.
  bool empty() const { return values_.empty(); }
  /// Removes all names.
  void clear() { values_.clear(); }

  /// The value of a name; end() where it has none.
  const_iterator find(std::string_view name) const;
  /// True when the name has a value.
  bool contains(std::string_view name) const { return find(name) != end(); }
  /// 1 when the name has a value, else 0.
  std::size_t count(std::string_view name) const { return contains(name) ? 1 : 0; }
  /// The value of a name. One that has none yet gets 0.
  std::int64_t& operator[](std::string_view name) { return try_emplace(name, 0).first->second; }
  /// The value of a name; throws std::out_of_range for one that has none.
  std::int64_t at(std::string_view name) const;

  /// Gives the name a value where it has none. The result is where the name stands, and whether it is new.
  std::pair<iterator, bool> try_emplace(std::string_view name, std::int64_t value);
  /// As try_emplace.
  std::pair<iterator, bool> emplace(std::string_view name, std::int64_t value) {
    return try_emplace(name, value);
  }
  /// Gives the name this value, whether it had one or not.
  void insert_or_assign(std::string_view name, std::int64_t value);
  /// As try_emplace for each pair of a range.
  template <class Iterator>
  void insert(Iterator first, Iterator last) {
    for (; first != last; ++first) try_emplace(first->first, first->second);
  }
  /// Removes a name; nothing happens where it has no value.
  void erase(std::string_view name);

  /// True when the same names have the same values.
  bool operator==(const DimValues& other) const;
  /// The lexicographic order of the pairs.
  std::strong_ordering operator<=>(const DimValues& other) const;

 private:
  const_iterator place(std::string_view name) const;
  std::vector<value_type> values_;
};

}  // namespace v0
}  // namespace fuse
