// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/split_at_row_ends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/access.hpp"
#include "ir/dims/dim_poly.hpp"
#include "ir/kernel/visit.hpp"

namespace fuse::kernel {
namespace {

constexpr std::int64_t lanes = 32;

/// Lanes are in one row where first % row + 31 < row; `first` is what the first lane has.
struct RowTest {
  Index first{}, row{};
  bool operator==(const RowTest&) const = default;
};

/// Whether lanes that are in a row of `test` are in one of `other` too.
bool implies(const RowTest& test, const RowTest& other) {
  return test.first == other.first && proven_divisible(other.row, test.row);
}

/// Every index expression of a statement itself, ends of loops and bounds of conditions too.
void for_each_expression(Stmt& stmt, const std::function<void(Index&)>& f) {
  for_each_index(stmt, f);
  if (auto* let = std::get_if<Let>(&stmt.node)) {
    if (auto* less = std::get_if<IndexLess>(&let->rhs)) f(less->bound);
  } else if (auto* data = std::get_if<BindData>(&stmt.node)) {
    f(data->extent);
  } else if (auto* loop = std::get_if<For>(&stmt.node)) {
    f(loop->end);
    f(loop->step);
  } else if (auto* branch = std::get_if<If>(&stmt.node)) {
    for (IndexLess& less : branch->conditions) {
      f(less.index);
      f(less.bound);
    }
  }
}

bool is_copied(const Stmt& stmt) {
  const auto* const loop = std::get_if<For>(&stmt.node);
  if (loop) return loop->parallel == Parallel::serial;
  return std::holds_alternative<Let>(stmt.node) || std::holds_alternative<Store>(stmt.node) ||
         std::holds_alternative<Combine>(stmt.node) || std::holds_alternative<Bind>(stmt.node) ||
         std::holds_alternative<BindData>(stmt.node) || std::holds_alternative<If>(stmt.node);
}

class RowSplitter {
 public:
  explicit RowSplitter(Kernel& kernel) : kernel_(kernel), names_(names_in(kernel)) {}

  void body(std::vector<Stmt>& statements) {
    for (std::size_t i = 0; i < statements.size(); ++i) {
      note(statements[i]);
      const auto* const bind = std::get_if<Bind>(&statements[i].node);
      if (bind && firsts_.contains(bind->name) && split_behind(statements, i)) return;
      if (std::vector<Stmt>* inner = body_of(statements[i])) body(*inner);
    }
  }

 private:
  /// Notes whether the name that a statement gives differs between lanes. No two statements give the same.
  void note(const Stmt& stmt) {
    if (const auto* loop = std::get_if<For>(&stmt.node)) {
      const bool of_lanes = loop->parallel == Parallel::lane || loop->parallel == Parallel::block;
      if (of_lanes || differs(loop->begin)) differ_.insert(loop->name);
      if (!of_lanes) return;
      lane_ = loop->name;
      firsts_[lane_] = 0;
    } else if (const auto* data = std::get_if<BindData>(&stmt.node)) {
      differ_.insert(data->name);
    } else if (const auto* bind = std::get_if<Bind>(&stmt.node); bind && differs(bind->value)) {
      differ_.insert(bind->name);
      if (const std::optional<Run> run = run_of(bind->value)) firsts_[bind->name] = run->first;
    }
  }

  bool differs(const Index& index) const {
    const std::vector<Dim> symbols = index.symbols();
    return std::any_of(symbols.begin(), symbols.end(),
                       [&](const Dim& symbol) { return differ_.contains(std::string(symbol.name())); });
  }

  struct Run {
    Index first{};   ///< what the first lane has
    Index extent{};  ///< of the name that the index is made of: where it is 0, no lane gets here
  };
  /// An index that each lane has one more of.
  std::optional<Run> run_of(const Index& index) const {
    for (const Dim& symbol : index.symbols()) {
      const auto first = firsts_.find(std::string(symbol.name()));
      if (first == firsts_.end()) continue;
      const Index rest = index - symbol;
      if (!differs(rest)) return Run{rest + first->second, poly_of(symbol)->terms[0].factors[0]->extent};
    }
    return std::nullopt;
  }

  /// The expression where all lanes are in one row of each test of `tests`; `found` gets the tests of the
  /// divisions that it has.
  Index in_row(const Index& index, const std::vector<RowTest>& tests, std::vector<RowTest>& found) const {
    if (!poly_of(index) || !differs(index)) return index;
    Index sum = poly_of(index)->constant;
    for (const detail::DimTerm& term : poly_of(index)->terms) {
      Index product = term.coefficient;
      for (const detail::Atom& factor : term.factors) product = product * in_row(factor, tests, found);
      sum = sum + product;
    }
    return sum;
  }

  Index in_row(const detail::Atom& factor, const std::vector<RowTest>& tests,
               std::vector<RowTest>& found) const {
    const bool quotient = factor->kind == detail::DimAtom::Kind::quotient;
    if (!quotient && factor->kind != detail::DimAtom::Kind::remainder) return detail::DimPoly::of(factor);
    const Index dividend = in_row(factor->dividend, tests, found);
    const Index& divisor = factor->divisor;
    const std::optional<Run> run = differs(dividend) ? run_of(dividend) : std::nullopt;
    const bool is_row = !differs(divisor) && divisor.max() >= lanes;
    if (run && is_row && (divisor.min() > 0 || proven_divisible(run->extent, divisor))) {
      const RowTest test{run->first, divisor};
      found.push_back(test);
      if (std::any_of(tests.begin(), tests.end(), [&](const RowTest& each) { return implies(each, test); }))
        return quotient ? run->first / divisor : run->first % divisor + Dim::index(lane_, lanes);
    }
    return quotient ? dividend / divisor : dividend % divisor;
  }

  /// The test, of names from outside, that makes most divisions of the statements be of one row.
  std::optional<RowTest> best_test(std::vector<Stmt>& statements) const {
    std::set<std::string> inside;
    for_each_stmt(statements, [&](const Stmt& stmt) {
      if (const auto* bind = std::get_if<Bind>(&stmt.node)) inside.insert(bind->name);
      if (const auto* data = std::get_if<BindData>(&stmt.node)) inside.insert(data->name);
      if (const auto* loop = std::get_if<For>(&stmt.node)) inside.insert(loop->name);
    });
    std::vector<RowTest> found;
    for_each_stmt(statements,
                  [&](Stmt& stmt) { for_each_index(stmt, [&](Index& index) { in_row(index, {}, found); }); });
    std::erase_if(found, [&](const RowTest& test) {
      const std::vector<Dim> symbols = (test.first + test.row).symbols();
      return std::any_of(symbols.begin(), symbols.end(),
                         [&](const Dim& symbol) { return inside.contains(std::string(symbol.name())); });
    });
    std::vector<std::pair<RowTest, int>> counts;  // a kernel has many divisions, and few that differ
    for (const RowTest& test : found) {
      const auto same = std::find_if(counts.begin(), counts.end(),
                                     [&](const auto& counted) { return counted.first == test; });
      if (same == counts.end())
        counts.emplace_back(test, 1);
      else
        ++same->second;
    }
    std::optional<RowTest> best;
    int most = 0;
    for (const auto& [test, own] : counts) {
      int implied = 0;
      for (const auto& [other, count] : counts) implied += implies(test, other) ? count : 0;
      if (implied > most) best = test;
      most = std::max(most, implied);
    }
    return best;
  }

  /// Whether the statements behind statements[at] became two bodies.
  bool split_behind(std::vector<Stmt>& statements, std::size_t at) {
    const auto begin = statements.begin() + static_cast<std::ptrdiff_t>(at) + 1;
    std::vector<Stmt> rest(begin, statements.end());
    bool copied = true;
    for_each_stmt(rest, [&](const Stmt& stmt) {
      note(stmt);
      copied = copied && is_copied(stmt);
    });
    const std::optional<RowTest> test = copied ? best_test(rest) : std::nullopt;
    if (!test) return false;
    const Index last = test->first % test->row + (lanes - 1);
    const bool always = proven_less(last, test->row);
    const Origin origin = statements[at].origin;
    statements.erase(begin, statements.end());
    std::vector<Stmt> whole = copy(rest, *test);
    if (always) {
      std::move(whole.begin(), whole.end(), std::back_inserter(statements));
      return true;
    }
    statements.push_back({If{{{last, test->row}}, std::move(whole)}, origin});
    statements.push_back({If{{{test->row, last + 1}}, std::move(rest)}, origin});
    return true;
  }

  /// The statements for lanes in one row, with variables and names of their own.
  std::vector<Stmt> copy(std::vector<Stmt> statements, const RowTest& test) {
    std::map<VarId, VarId> vars;
    std::map<std::string, std::string, std::less<>> renamed;
    const auto rename = [&](std::string& name) {
      const std::string before = name;
      for (int n = 1; !names_.insert(name).second; ++n)
        name = fmt::format("{}_row{}", before, n > 1 ? std::to_string(n) : "");
      renamed[before] = name;
    };
    for_each_stmt(statements, [&](Stmt& stmt) {
      for_each_expression(stmt, [&](Index& index) {
        std::vector<RowTest> found;
        index = with_names(in_row(index, {test}, found), renamed);
      });
      const auto moved = [&](VarId& var) {
        if (const auto to = vars.find(var); to != vars.end()) var = to->second;
      };
      if (auto* let = std::get_if<Let>(&stmt.node)) {
        for_each_operand(let->rhs, moved);
        const VarId before = let->var;
        kernel_.vars.push_back(Var(kernel_.vars[before]));
        let->var = static_cast<VarId>(kernel_.vars.size() - 1);
        vars[before] = let->var;
      } else if (auto* store = std::get_if<Store>(&stmt.node)) {
        moved(store->value);
      } else if (auto* combine = std::get_if<Combine>(&stmt.node)) {
        for (VarId& var : combine->incoming) moved(var);
      } else if (auto* bind = std::get_if<Bind>(&stmt.node)) {
        rename(bind->name);
      } else if (auto* data = std::get_if<BindData>(&stmt.node)) {
        moved(data->value);
        rename(data->name);
      } else if (auto* loop = std::get_if<For>(&stmt.node)) {
        rename(loop->name);
      }
    });
    return statements;
  }

  static Index with_names(const Index& index, const std::map<std::string, std::string, std::less<>>& names) {
    std::map<std::string, Dim, std::less<>> by;
    for (const Dim& symbol : index.symbols()) {
      const auto to = names.find(symbol.name());
      if (to == names.end()) continue;
      by.emplace(to->first, Dim::index(to->second, poly_of(symbol)->terms[0].factors[0]->extent));
    }
    return index.substitute([&](std::string_view name) {
      const auto to = by.find(name);
      return to == by.end() ? nullptr : &to->second;
    });
  }

  Kernel& kernel_;
  std::set<std::string> names_;
  std::string lane_{};
  std::map<std::string, Index> firsts_{};  ///< of the names that each lane has one more of: the first lane's
  std::set<std::string> differ_{};         ///< names that differ between lanes
};

}  // namespace

Kernel split_at_row_ends(Kernel kernel) {
  if (kernel.block_threads == lanes) RowSplitter(kernel).body(kernel.body);
  return kernel;
}

}  // namespace fuse::kernel
