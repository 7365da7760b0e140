// SPDX-License-Identifier: Apache-2.0
#include "ir/dims/dim_parser.hpp"

#include <algorithm>
#include <vector>

#include "base/access.hpp"
#include "base/quoting.hpp"
#include "ir/dims/dim_poly.hpp"

namespace fuse::ir {
namespace {

constexpr int max_depth = 256;          // the depth of parentheses
constexpr std::size_t max_size = 1024;  // the size of a canonical form
constexpr std::size_t division_size = 32;
constexpr std::size_t max_work = 4096;  // sizes of two operands multiplied
constexpr int max_divisions = 4;        // divisions one inside the other

std::size_t terms(const Dim& dim) { return poly_of(dim) ? poly_of(dim)->terms.size() + 1 : 1; }

/// Terms and factors, counted as often as they are written out; stops above `budget`. The canonical form of a
/// division asks about the divisions inside it, again for each that encloses it: their depth is bounded too.
std::size_t size(const Dim& dim, std::size_t budget, int divisions = 0) {
  std::size_t total = 1;
  if (!poly_of(dim)) return total;
  for (const detail::DimTerm& term : poly_of(dim)->terms) {
    for (const detail::Atom& factor : term.factors) {
      ++total;
      if (factor->kind == detail::DimAtom::Kind::quotient ||
          factor->kind == detail::DimAtom::Kind::remainder) {
        total += division_size;
        if (total > budget || divisions == max_divisions) return budget + 1;
        total += size(factor->dividend, budget - total, divisions + 1);
        if (total <= budget) total += size(factor->divisor, budget - total, divisions + 1);
      }
      if (total > budget) return budget + 1;
    }
  }
  return total;
}

/// The most terms a divisor inside `dim` has: dividing again multiplies it.
std::size_t divisor_terms(const Dim& dim) {
  std::size_t most = 1;
  if (!poly_of(dim)) return most;
  for (const detail::DimTerm& term : poly_of(dim)->terms) {
    for (const detail::Atom& factor : term.factors) most = std::max(most, terms(factor->divisor));
  }
  return most;
}

class DimParser {
 public:
  DimParser(Lexer& lexer, const SymbolTable& symbols)
      : lexer_(lexer), symbols_(symbols), start_(lexer.offset()) {}

  // Recursion here is over parentheses, which max_depth bounds.
  Dim sum(int depth) {
    Dim first = term(depth);
    if (!lexer_.is("+") && !lexer_.is("-")) return first;
    std::vector<Dim> parts = {std::move(first)};
    std::size_t total = terms(parts[0]);
    for (;;) {
      const bool minus = lexer_.is("-");
      if (!minus && !lexer_.is("+")) break;
      lexer_.take();
      parts.push_back(minus ? Dim(0) - term(depth) : term(depth));
      total += terms(parts.back());
      if (total > 4 * max_size) too_long();
    }
    // Added in pairs: one by one, each addition would copy all terms before it.
    for (; parts.size() > 1; parts.resize((parts.size() + 1) / 2)) {
      for (std::size_t i = 0; i + 1 < parts.size(); i += 2) parts[i / 2] = parts[i] + parts[i + 1];
      if (parts.size() % 2) parts[parts.size() / 2] = parts.back();
    }
    return checked(std::move(parts[0]));
  }

 private:
  [[noreturn]] void too_long() const { lexer_.fail_at(start_, "the extent is too long an expression"); }

  Dim checked(Dim dim) const {
    if (poly_of(dim) && size(dim, max_size) > max_size) too_long();
    return dim;
  }

  /// Called before two operands meet: `expanded` terms of the first each meet those of the second.
  void check_work(const Dim& a, const Dim& b, std::size_t expanded) const {
    if (!poly_of(a) || !poly_of(b)) return;
    if (expanded * terms(b) > max_size || size(a, max_size) * size(b, max_size) > max_work) too_long();
  }

  bool accept_remainder() {
    if (lexer_.accept("%")) return true;
    // "B %T" reads as a value %T elsewhere.
    if (lexer_.peek().kind != Token::Kind::value) return false;
    lexer_.split_value();
    return true;
  }

  Dim term(int depth) {
    Dim result = factor(depth);
    for (;;) {
      if (lexer_.accept("*")) {
        const Dim by = factor(depth);
        check_work(result, by, terms(result));
        result = checked(result * by);
        continue;
      }
      const bool divides = lexer_.accept("/");
      if (!divides && !accept_remainder()) return result;
      const Dim by = factor(depth);
      check_work(result, by, divisor_terms(result));
      result = checked(divides ? result / by : result % by);
    }
  }

  Dim factor(int depth) {
    bool negative = false;
    while (lexer_.accept("-")) negative = !negative;
    const Dim value = primary(depth);
    return negative ? Dim(0) - value : value;
  }

  Dim primary(int depth) {
    if (lexer_.is("(")) {
      if (depth >= max_depth) lexer_.fail("parentheses nest too deeply");
      lexer_.take();
      const Dim inner = sum(depth + 1);
      lexer_.expect(")", "after the expression");
      return inner;
    }
    const Token& token = lexer_.peek();
    if (token.kind == Token::Kind::number) return lexer_.take_integer("an integer");
    if (token.kind != Token::Kind::identifier && token.kind != Token::Kind::string) {
      lexer_.fail_expected("an extent");
    }
    const std::size_t at = lexer_.offset();
    const std::string name = lexer_.take_name("an extent");
    const auto symbol = symbols_.find(name);
    if (symbol != symbols_.end()) return symbol->second;
    lexer_.fail_at(at, "unknown dim " + word(name), ErrorCode::parse,
                   "declare it after the signature: where " + word(name) + " in [0, 2147483647]");
  }

  Lexer& lexer_;
  const SymbolTable& symbols_;
  const std::size_t start_;
};

}  // namespace

Dim parse_dim(Lexer& lexer, const SymbolTable& symbols) {
  const std::size_t start = lexer.offset();
  try {
    return DimParser(lexer, symbols).sum(0);
  } catch (const Error& error) {
    if (!error.info().location.file.empty() || error.info().location.line) throw;
    lexer.fail_at(start, error.info().message, error.code(), "use smaller extents");  // arithmetic on extents
  }
}

}  // namespace fuse::ir
