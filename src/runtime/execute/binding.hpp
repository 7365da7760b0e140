// Binding: the values that prepare was given for a graph's symbols, checked against their declarations.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <fuse/executable.hpp>
#include <string>
#include <vector>

#include "ir/dims/guard.hpp"
#include "plan/signature.hpp"
#include "plan/versions/version_table.hpp"

namespace fuse::runtime {

/// One thread at a time may use it.
class Binding {
 public:
  /// Throws unknown_name for a value whose symbol is not declared, unbound for a symbol that outputs or
  /// inputs need, invalid_extent outside of the declared range.
  Binding(const Signature& signature, const DimValues& values);

  const DimValues& values() const { return values_; }
  /// Throws invalid_extent with the expression and the values where it overflows or divides by zero.
  std::int64_t value(const Dim& dim) const;
  std::vector<std::int64_t> shape(const std::vector<Dim>& dims) const;
  /// " at B = 4, T = 16" for the symbols of the dims; empty without symbols.
  std::string at(const std::vector<Dim>& dims) const;

 private:
  DimValues values_;
  /// Values of expressions, by where these are in memory: most are asked for many times. An entry keeps its
  /// expression alive, so that no other one comes to lie there.
  struct Known {
    Dim dim{};
    std::int64_t value = 0;
  };
  mutable std::array<Known, 64> known_{};
};

/// What a table gives for these dims. An extent beyond 63 bits, which no value has, is above all others.
std::uint32_t version_at(const schedule::VersionTable& table, const Binding& binding);

/// Throws invalid_extent with op, line and values where an op makes no sense for this binding: an extent is
/// negative or bytes overflow, a slice leaves its operand, a gather has nothing to gather from.
void check_extents(const Signature& signature, const Binding& binding);
void check_extents(const Signature::Op& op, const Binding& binding);

/// Throws violated_guard with the guard, the values of its two sides and the line that needs it; unbound
/// where one of its symbols has no value.
void check_guards(const std::vector<ir::Guard>& guards, const Binding& binding);

}  // namespace fuse::runtime
