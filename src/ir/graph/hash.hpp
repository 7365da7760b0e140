// Hashes of what graphs are made of, and equality of whole graphs. A hash only finds candidates; equality
// decides. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <fuse/dim.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

/// Collects values into one number, the same on every machine and in every run.
class Hasher {
 public:
  /// Symbols count by their names; or, where they were given numbers, by number, range and hint, so that what
  /// they are called does not matter.
  Hasher() = default;
  using SymbolNumbers = std::map<std::string, std::uint64_t, std::less<>>;
  explicit Hasher(const SymbolNumbers& numbers) : numbers_(&numbers) {}

  Hasher& add(std::uint64_t value) {
    state_ = (state_ ^ value) * 0x9e3779b97f4a7c15u;
    state_ ^= state_ >> 32;
    return *this;
  }
  Hasher& add(std::string_view text);
  Hasher& add(const Dim&);  ///< hashes the canonical form
  Hasher& add(const Attr&);
  Hasher& add(const Type&);
  std::uint64_t value() const { return state_; }

 private:
  void add_anonymous(const Dim&);

  std::uint64_t state_ = 0x243f6a8885a308d3u;
  const SymbolNumbers* numbers_ = nullptr;
};

/// The symbols of these nodes' types and attributes, numbered in their order: by the extents that are one
/// symbol first, since within an expression symbols stand in the order of their names.
Hasher::SymbolNumbers number_symbols(const Graph&, const std::vector<NodeId>& nodes);
/// The hash of everything that `identical` compares.
std::uint64_t hash(const Graph&);
/// Whether nothing distinguishes the graphs: also names, scopes, the user's lines and the references of
/// custom calls.
bool identical(const Graph&, const Graph&);

}  // namespace fuse::ir
