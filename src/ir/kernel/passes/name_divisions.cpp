// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/passes/name_divisions.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include "base/access.hpp"
#include "ir/dims/dim_poly.hpp"
#include "ir/kernel/visit.hpp"

namespace fuse::kernel {
namespace {

bool is_division(const detail::Atom& atom) {
  return atom->kind == detail::DimAtom::Kind::quotient || atom->kind == detail::DimAtom::Kind::remainder;
}

/// The divisions of an expression, inner ones first.
void collect(const Index& index, std::vector<Index>& out) {
  if (!poly_of(index)) return;
  for (const detail::DimTerm& term : poly_of(index)->terms) {
    for (const detail::Atom& factor : term.factors) {
      if (!is_division(factor)) continue;
      collect(factor->dividend, out);
      collect(factor->divisor, out);
      out.push_back(detail::DimPoly::of(factor));
    }
  }
}

class Namer {
 public:
  explicit Namer(Kernel& kernel) : names_(names_in(kernel)) {
    for (const Dim& extent : kernel.extents) scope_.push_back(std::string(extent.name()));
  }

  void run(std::vector<Stmt>& body) {
    const std::size_t outer = scope_.size();
    for (std::size_t at = 0; at < body.size(); ++at) {
      at += name_before(body, at);
      if (const auto* loop = std::get_if<For>(&body[at].node)) scope_.push_back(loop->name);
      if (std::vector<Stmt>* inner = body_of(body[at])) run(*inner);
      if (std::holds_alternative<For>(body[at].node)) scope_.pop_back();
      if (const auto* bind = std::get_if<Bind>(&body[at].node)) scope_.push_back(bind->name);
      if (const auto* data = std::get_if<BindData>(&body[at].node)) scope_.push_back(data->name);
    }
    scope_.resize(outer);
  }

 private:
  /// A division by an extent that may be 0 stays where it is: a predicate may guard it. So does what divides
  /// a result of such a division, and one of what may be negative, since a name stands for a number that is
  /// not.
  static bool may_be_named(const Index& division) {
    const detail::DimAtom& atom = *poly_of(division)->terms[0].factors[0];
    return proven_le(0, atom.dividend) && never_divides_by_zero(division);
  }

  static bool never_divides_by_zero(const Index& index) {
    std::vector<Index> divisions;
    collect(index, divisions);
    return std::all_of(divisions.begin(), divisions.end(), [](const Index& each) {
      return poly_of(each)->terms[0].factors[0]->divisor.min() > 0;
    });
  }

  bool in_scope(const Index& index) const {
    const std::vector<Dim> symbols = index.symbols();
    return std::all_of(symbols.begin(), symbols.end(), [&](const Dim& symbol) {
      return std::find(scope_.begin(), scope_.end(), symbol.name()) != scope_.end();
    });
  }

  std::string unique(const Index& division) {
    const detail::DimAtom& atom = *poly_of(division)->terms[0].factors[0];
    const bool quotient = atom.kind == detail::DimAtom::Kind::quotient;
    const std::string_view of = atom.dividend.name();
    std::string base = of.empty() ? "at" : std::string(of) + (quotient ? "_div" : "_mod");
    if (!of.empty() && atom.divisor.is_constant()) base += '_' + std::to_string(atom.divisor.constant());
    if (!of.empty() && !atom.divisor.name().empty()) base += '_' + std::string(atom.divisor.name());
    std::string name = base;
    for (int n = 1; !names_.insert(name).second; ++n) name = base + '_' + std::to_string(n);
    return name;
  }

  /// Binds, before body[at], each division that the rest of the body uses twice and that starts being
  /// computable here. Returns how many statements went in.
  std::size_t name_before(std::vector<Stmt>& body, std::size_t at) {
    std::size_t added = 0;
    for (;;) {
      const Index division = next_division(body, at + added);
      if (division.is_constant()) return added;
      const Dim named = Dim::index(unique(division),
                                   division.max() == INT64_MAX ? Dim(INT64_MAX) : Dim(division.max() + 1));
      for (std::size_t i = at + added; i < body.size(); ++i) replace(body[i], division, named);
      Stmt bind{Bind{std::string(named.name()), division}, body[at + added].origin};
      scope_.push_back(std::string(named.name()));
      body.insert(body.begin() + static_cast<std::ptrdiff_t>(at + added), std::move(bind));
      ++added;
    }
  }

  /// A division in body[at] (or inside it) that is in scope and that body[at..] uses more than once; 0 for
  /// none.
  Index next_division(std::vector<Stmt>& body, std::size_t at) {
    std::vector<Index> here, all;
    const auto gather = [](std::vector<Index>& out) {
      return [&out](Stmt& stmt) { for_each_index(stmt, [&](Index& index) { collect(index, out); }); };
    };
    std::vector<Stmt>* inner = body_of(body[at]);
    gather(here)(body[at]);
    if (inner) for_each_stmt(*inner, gather(here));
    if (here.empty()) return 0;
    for (std::size_t i = at; i < body.size(); ++i) {
      gather(all)(body[i]);
      if (std::vector<Stmt>* nested = body_of(body[i])) for_each_stmt(*nested, gather(all));
    }
    for (const Index& division : here) {
      if (in_scope(division) && may_be_named(division) && std::count(all.begin(), all.end(), division) > 1)
        return division;
    }
    return 0;
  }

  static Index replaced(const Index& index, const Index& division, const Dim& by) {
    if (!poly_of(index)) return index;
    Index sum = poly_of(index)->constant;
    for (const detail::DimTerm& term : poly_of(index)->terms) {
      Index product = term.coefficient;
      for (const detail::Atom& factor : term.factors) {
        Index value = detail::DimPoly::of(factor);
        if (value == division) {
          value = by;
        } else if (is_division(factor)) {
          const Index dividend = replaced(factor->dividend, division, by);
          const Index divisor = replaced(factor->divisor, division, by);
          const bool quotient = factor->kind == detail::DimAtom::Kind::quotient;
          value = quotient ? dividend / divisor : dividend % divisor;
        }
        product = product * value;
      }
      sum = sum + product;
    }
    return sum;
  }

  static void replace(Stmt& stmt, const Index& division, const Dim& by) {
    const auto in_one = [&](Stmt& one) {
      for_each_index(one, [&](Index& index) { index = replaced(index, division, by); });
    };
    in_one(stmt);
    if (std::vector<Stmt>* inner = body_of(stmt)) for_each_stmt(*inner, in_one);
  }

  std::set<std::string> names_;
  std::vector<std::string> scope_;
};

}  // namespace

Kernel name_divisions(Kernel kernel) {
  Namer(kernel).run(kernel.body);
  return kernel;
}

}  // namespace fuse::kernel
