// ValueTable: the values of a `.fuse` text by how they are written. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/quoting.hpp"
#include "ir/dims/lexer.hpp"
#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

/// %x and %"x" are the name x, %12 is a number and %"12" the name 12. Printed graphs number their values, so
/// these lie in a list: a table of strings leaves the processor's cache where graphs are large.
class ValueTable {
 public:
  /// No number above `most` is kept in the list: the length of the text, which bounds the list with it.
  explicit ValueTable(std::size_t most) : most_(most) {}

  static bool is_number(const Token& value) { return !value.quoted && !is_identifier(value.text); }
  /// The same for the same value, and for no other.
  static std::string key(const Token& value) {
    return (is_number(value) ? '%' : 'n') + (value.quoted ? value.name : std::string(value.text));
  }

  std::optional<NodeId> find(const Token& value) const {
    if (const auto at = position(value)) {
      return *at < numbered_.size() && numbered_[*at] != none ? std::optional(numbered_[*at]) : std::nullopt;
    }
    const auto found = others_.find(key(value));
    return found == others_.end() ? std::nullopt : std::optional(found->second);
  }
  /// The value is not in it.
  void insert(const Token& value, NodeId id) {
    const auto at = position(value);
    if (!at) {
      others_.emplace(key(value), id);
      return;
    }
    if (*at >= numbered_.size()) numbered_.resize(std::max(*at + 1, 2 * numbered_.size()), none);
    numbered_[*at] = id;
  }
  /// Whether the name was not in it.
  bool insert_name(const std::string& name, NodeId id) { return others_.emplace('n' + name, id).second; }

 private:
  static constexpr NodeId none = ~NodeId{0};

  /// The value's position in the list; none for a name, a number written with zeros before it, and one that
  /// is too large.
  std::optional<std::size_t> position(const Token& value) const {
    const std::string_view text = value.text;
    if (value.quoted || text.empty() || (text.size() > 1 && text[0] == '0')) return std::nullopt;
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number > most_) return std::nullopt;
    return number;
  }

  std::size_t most_;
  std::vector<NodeId> numbered_;
  std::unordered_map<std::string, NodeId> others_;
};

}  // namespace fuse::ir
