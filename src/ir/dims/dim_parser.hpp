// Extents in the text form: sums of products of integers, symbols, floor divisions and remainders.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/dim.hpp>
#include <string>
#include <unordered_map>

#include "ir/dims/lexer.hpp"

namespace fuse::ir {

using SymbolTable = std::unordered_map<std::string, Dim>;

/// Takes one expression. Its length, depth and canonical form are bounded: a product of sums, written in a
/// line, would expand to more terms than memory holds.
Dim parse_dim(Lexer& lexer, const SymbolTable& symbols);

}  // namespace fuse::ir
