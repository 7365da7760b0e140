// SPDX-License-Identifier: Apache-2.0
#include "analysis/facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "analysis/facts_state.hpp"
#include "ir/dims/disproof.hpp"
#include "ir/graph/infer.hpp"

namespace fuse::analysis {
namespace {

constexpr std::size_t max_product = 1024;  // terms and factors of products that are compared
constexpr int proof_depth = 2;

bool can_hold(const std::vector<ir::Symbol>& symbols, std::span<const Constraint> constraints) {
  Facts::State state;
  try {
    solve(state, symbols, constraints);
    return true;
  } catch (const Conflict&) {
    return false;
  }
}

std::vector<std::string> names_of(const Constraint& constraint) {
  std::vector<std::string> names;
  for (const Dim& dim : {constraint.relation.left, constraint.relation.right}) {
    for_each_symbol(dim, [&](const Atom& symbol) { names.push_back(symbol->name); });
  }
  return names;
}

/// The constraints that share symbols with one, or with those that do.
std::vector<Constraint> connected(std::span<const Constraint> constraints, std::size_t to) {
  std::unordered_map<std::string, std::vector<std::size_t>> uses;
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    for (const std::string& name : names_of(constraints[i])) uses[name].push_back(i);
  }
  std::set<std::size_t> taken = {to};
  std::vector<std::size_t> todo = {to};
  while (!todo.empty()) {
    const std::size_t at = todo.back();
    todo.pop_back();
    for (const std::string& name : names_of(constraints[at])) {
      for (const std::size_t other : std::exchange(uses[name], {})) {
        if (taken.insert(other).second) todo.push_back(other);
      }
    }
  }
  std::vector<Constraint> result;
  for (const std::size_t i : taken) result.push_back(constraints[i]);
  return result;
}

/// Leaves out what is not needed for the contradiction, in ever smaller parts.
std::vector<Constraint> smallest_core(const std::vector<ir::Symbol>& symbols, std::vector<Constraint> core) {
  for (std::size_t part = core.size();; part /= 2) {
    for (std::size_t at = 0; at < core.size();) {
      const auto begin = core.begin() + static_cast<std::ptrdiff_t>(at);
      std::vector<Constraint> fewer(core.begin(), begin);
      fewer.insert(fewer.end(), begin + static_cast<std::ptrdiff_t>(std::min(part, core.size() - at)),
                   core.end());
      if (can_hold(symbols, fewer)) {
        at += part;
      } else {
        core = std::move(fewer);
      }
    }
    if (part == 1) return core;
  }
}

std::string describe(const Constraint& constraint) {
  std::string text = constraint.relation.to_string();
  if (!constraint.needed_by.empty()) text += fmt::format(", which {} needs", constraint.needed_by);
  if (constraint.location.line != 0) {
    text += fmt::format(" ({}:{})", constraint.location.file, constraint.location.line);
  }
  return text;
}

[[noreturn]] void fail(const std::vector<ir::Symbol>& symbols, std::span<const Constraint> constraints,
                       std::size_t at) {
  const std::vector<Constraint> core = smallest_core(symbols, connected(constraints, at));
  std::string text;
  std::unordered_set<std::string> names;
  for (const Constraint& constraint : core) {
    text += (text.empty() ? "" : "; ") + describe(constraint);
    for (const std::string& name : names_of(constraint)) names.insert(name);
  }
  for (const ir::Symbol& symbol : symbols) {
    if (!names.contains(symbol.name)) continue;
    text += fmt::format("; {} in [{}, {}]", symbol.name, symbol.range.min, symbol.range.max);
  }
  throw Error({.code = ErrorCode::contradiction,
               .message = "these cannot hold together: " + text,
               .location = core.back().location,
               .hint = "correct one of the assumptions, or the range of a dim"});
}

Dim difference(const Facts::State& state, const Dim& a, const Dim& b) {
  return state.rewrite(state.rewrite(a) - state.rewrite(b));
}

}  // namespace

Facts::Facts() : state_(std::make_shared<State>()) {}

Facts::Facts(const std::vector<ir::Symbol>& symbols, std::span<const Constraint> constraints) {
  auto state = std::make_shared<State>();
  try {
    solve(*state, symbols, constraints);
  } catch (const Conflict& conflict) {
    fail(symbols, constraints, conflict.constraint);
  }
  state_ = std::move(state);
}

Dim Facts::canonical(const Dim& dim) const {
  if (!state_->touches(dim)) return dim;
  try {
    return state_->narrow(state_->rewrite(dim));
  } catch (const Error&) {  // beyond 63 bits, or a division by 0: it stays as it is written
    return dim;
  }
}

std::vector<Dim> Facts::canonical(std::span<const Dim> dims) const {
  std::vector<Dim> result;
  for (const Dim& dim : dims) result.push_back(canonical(dim));
  return result;
}

bool Facts::equal(const Dim& a, const Dim& b) const {
  if (a == b) return true;
  if (a.is_constant() && b.is_constant()) return false;
  if (canonical(a) == canonical(b)) return true;
  try {
    if (!ir::can_be_equal(a, b)) return false;
    const Dim form = difference(*state_, a, b);
    return state_->proves_nonnegative(form, proof_depth) &&
           state_->proves_nonnegative(Dim(0) - form, proof_depth);
  } catch (const Error&) {
    return false;
  }
}

bool Facts::equal_products(const std::vector<Dim>& a, const std::vector<Dim>& b) const {
  std::vector<Dim> left = canonical(a), right = canonical(b);
  if (products_match(left, right)) return true;
  // Equal extents cancel, also where they may be 0.
  std::erase_if(left, [&](const Dim& dim) {
    const auto found = std::find(right.begin(), right.end(), dim);
    if (found == right.end()) return false;
    right.erase(found);
    return true;
  });
  return products_match(left, right);
}

bool Facts::products_match(const std::vector<Dim>& a, const std::vector<Dim>& b) const {
  try {
    Dim products[] = {1, 1};
    for (const bool second : {false, true}) {
      for (const Dim& dim : second ? b : a) {
        if (size(products[second], max_product) * size(dim, max_product) > max_product) return false;
        products[second] = products[second] * dim;
      }
    }
    return equal(products[0], products[1]);
  } catch (const Error&) {
    return false;
  }
}

bool Facts::divisible(const Dim& a, const Dim& by) const {
  if (proven_divisible(a, by)) return true;
  try {
    const Dim of = state_->rewrite(a), divisor = state_->rewrite(by);
    if (divisor.is(0)) return false;
    if (divisor.is_constant() && state_->factor(of) % divisor.constant() == 0) return true;
    return state_->rewrite(of % divisor).is(0);
  } catch (const Error&) {
    return false;
  }
}

bool Facts::le(const Dim& a, const Dim& b) const {
  if (a.is_constant() && b.is_constant()) return a.constant() <= b.constant();
  try {
    return state_->proves_nonnegative(difference(*state_, b, a), proof_depth);
  } catch (const Error&) {
    return state_->interval(a).high <= state_->interval(b).low;
  }
}

bool Facts::less(const Dim& a, const Dim& b) const {
  try {
    return le(a + 1, b);
  } catch (const Error&) {
    return false;
  }
}

bool Facts::holds(const DimRelation& relation) const {
  switch (relation.kind) {
    case DimRelation::Kind::equal:
      return equal(relation.left, relation.right);
    case DimRelation::Kind::at_most:
      return le(relation.left, relation.right);
    case DimRelation::Kind::divides:
      return le(1, relation.left) && divisible(relation.right, relation.left);
    case DimRelation::Kind::one_or:
      return equal(relation.left, 1) || equal(relation.left, relation.right);
  }
  return false;
}

Range Facts::range(const Dim& dim) const {
  Interval known = state_->interval(dim);
  try {
    const Dim form = state_->rewrite(dim);
    known = intersect(known, state_->interval(form));
    const Dim narrowed = state_->narrow(form);
    known = intersect(known, {narrowed.min() == INT64_MIN ? -infinite : Wide{narrowed.min()},
                              narrowed.max() == INT64_MAX ? infinite : Wide{narrowed.max()}});
  } catch (const Error&) {  // the interval of what is written still holds
  }
  return {clamp_to_int64(known.low), clamp_to_int64(known.high)};
}

std::int64_t Facts::factor(const Dim& dim) const {
  try {
    return state_->factor(state_->rewrite(dim));
  } catch (const Error&) {
    return 1;
  }
}

std::vector<ir::Symbol> Facts::symbols() const {
  std::vector<ir::Symbol> result;
  for (const SymbolFact& fact : state_->symbols) {
    ir::Symbol symbol = fact.declared;
    symbol.range = {fact.low, fact.high, fact.hint == 0 ? 0 : std::clamp(fact.hint, fact.low, fact.high)};
    result.push_back(std::move(symbol));
  }
  return result;
}

bool EqualExtents::operator()(const Dim& a, const Dim& b) {
  if (a == b) return true;
  if (!facts_) facts_ = facts_of(graph_);
  return facts_->equal(a, b);
}

}  // namespace fuse::analysis
