// Best-first search (A*, which Dali's 2.1 names): the cheapest design of a problem, by a bound of what every
// completion of a prefix costs at least. It knows nothing of kernels.
//
// A problem has:
//   std::size_t variables() const;                          how many, in a fixed order
//   std::size_t options(const Prefix&) const;               of the next variable; 0: no design begins so
//   double bound(const Prefix&) const;                      no completion costs less; infinite: none is legal
//   std::optional<double> cost(const Prefix&, double) const;  of a complete design; none: it is illegal, or
//                                                           costs that number or more
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

namespace fuse::schedule {

/// The options taken of the first variables, in order. A design is a prefix of all.
using Prefix = std::vector<std::uint16_t>;

struct SearchLimits {
  std::int64_t most_examined = std::numeric_limits<std::int64_t>::max();  ///< designs whose cost is asked for
  std::int64_t most_expanded = std::numeric_limits<std::int64_t>::max();
  /// What is cheaper by no more than this share counts as equal: sums of floating-point numbers that should
  /// be equal differ by their last digits.
  double slack = 0;
};

struct Searched {
  std::optional<Prefix> design{};                         ///< none: nothing is cheaper than what was known
  double cost = std::numeric_limits<double>::infinity();  ///< of the design, or of what was known
  std::int64_t examined = 0;                              ///< complete designs whose cost was asked for
  std::int64_t expanded = 0;                              ///< prefixes whose options were listed
  std::int64_t pruned = 0;                                ///< prefixes whose bound was no better than a cost
  /// No design of the problem is cheaper. Else a limit ended the search.
  bool proven = false;
};

/// A prefix that waits for its turn.
struct OpenPrefix {
  double bound = 0;
  Prefix prefix{};
};

/// Whether `a` comes after `b`: the lower bound is first, then the longer prefix, then the earlier options.
struct ComesAfter {
  bool operator()(const OpenPrefix& a, const OpenPrefix& b) const {
    if (a.bound != b.bound) return a.bound > b.bound;
    if (a.prefix.size() != b.prefix.size()) return a.prefix.size() < b.prefix.size();
    return a.prefix > b.prefix;
  }
};

/// The cheapest design that costs less than `known`; of equal ones, the first that is met. Deterministic.
template <class Problem>
Searched best_first(const Problem& problem, const SearchLimits& limits = {},
                    double known = std::numeric_limits<double>::infinity()) {
  Searched result{.cost = known};
  const auto useless = [&](double bound) { return !(bound < result.cost - result.cost * limits.slack); };
  const auto enough = [&](double bound) {
    return result.cost == std::numeric_limits<double>::infinity()
               ? bound == std::numeric_limits<double>::infinity()
               : useless(bound);
  };
  std::priority_queue<OpenPrefix, std::vector<OpenPrefix>, ComesAfter> open;
  open.push({problem.bound(Prefix()), Prefix()});
  while (!open.empty()) {
    if (enough(open.top().bound)) {  // and so is what lies behind it
      result.pruned += static_cast<std::int64_t>(open.size());
      break;
    }
    if (result.expanded == limits.most_expanded) return result;
    Prefix prefix = open.top().prefix;
    open.pop();
    ++result.expanded;
    const std::size_t options = problem.options(prefix);
    prefix.push_back(0);
    for (std::size_t i = 0; i < options; ++i) {
      prefix.back() = static_cast<std::uint16_t>(i);
      const double bound = problem.bound(prefix);
      if (enough(bound)) {
        ++result.pruned;
      } else if (prefix.size() < problem.variables()) {
        open.push({bound, prefix});
      } else if (result.examined == limits.most_examined) {
        return result;
      } else {
        ++result.examined;
        const double below = result.cost == std::numeric_limits<double>::infinity()
                                 ? result.cost
                                 : result.cost - result.cost * limits.slack;
        if (const std::optional<double> cost = problem.cost(prefix, below)) {
          result.cost = *cost;
          result.design = prefix;
        }
      }
    }
  }
  result.proven = true;
  return result;
}

/// The same by trying all designs: what tests compare with.
template <class Problem>
Searched by_trying_all(const Problem& problem, const SearchLimits& limits = {},
                       double known = std::numeric_limits<double>::infinity()) {
  Searched result{.cost = known};
  std::vector<Prefix> work = {Prefix()};
  while (!work.empty()) {
    Prefix prefix = std::move(work.back());
    work.pop_back();
    if (prefix.size() == problem.variables()) {
      if (result.examined == limits.most_examined) return result;
      ++result.examined;
      if (const std::optional<double> cost = problem.cost(prefix, result.cost)) {
        result.cost = *cost;
        result.design = std::move(prefix);
      }
      continue;
    }
    ++result.expanded;
    prefix.push_back(0);
    for (std::size_t i = problem.options({prefix.begin(), prefix.end() - 1}); i-- > 0;) {
      prefix.back() = static_cast<std::uint16_t>(i);
      work.push_back(prefix);
    }
  }
  result.proven = true;
  return result;
}

/// The designs of a problem, legal or not; `most` where there are more.
template <class Problem>
std::int64_t count_designs(const Problem& problem, std::int64_t most) {
  std::int64_t designs = 0;
  std::vector<Prefix> work = {Prefix()};
  while (!work.empty() && designs < most) {
    Prefix prefix = std::move(work.back());
    work.pop_back();
    const auto options = static_cast<std::uint16_t>(problem.options(prefix));
    if (prefix.size() + 1 == problem.variables()) {
      designs += options;
      continue;
    }
    prefix.push_back(0);
    for (std::uint16_t i = 0; i < options; ++i) {
      prefix.back() = i;
      work.push_back(prefix);
    }
  }
  return std::min(designs, most);
}

}  // namespace fuse::schedule
