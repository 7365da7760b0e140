// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/hash.hpp"

#include <algorithm>
#include <bit>

#include "base/access.hpp"
#include "ir/dims/dim_poly.hpp"
#include "ir/graph/attr.hpp"

namespace fuse::ir {
namespace {

std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }

/// Every field of an attribute.
struct AddFields {
  Hasher& to;
  void list(const std::vector<std::int64_t>& values) const {
    to.add(values.size());
    for (const std::int64_t value : values) to.add(bits(value));
  }
  void list(const std::vector<Dim>& dims) const {
    to.add(dims.size());
    for (const Dim& dim : dims) to.add(dim);
  }
  void operator()(const NoAttr&) const {}
  void operator()(const NameAttr& a) const { to.add(std::string_view(a.name)); }
  void operator()(const ConstantAttr& a) const {
    to.add(std::bit_cast<std::uint64_t>(a.real)).add(bits(a.integer));
  }
  void operator()(const DimsAttr& a) const { list(a.dims); }
  void operator()(const AxisAttr& a) const { to.add(bits(a.axis)); }
  void operator()(const SliceAttr& a) const { list(a.starts), list(a.limits), list(a.strides); }
  void operator()(const PadAttr& a) const { list(a.low), list(a.high); }
  void operator()(const SizesAttr& a) const { list(a.sizes); }
  void operator()(const ScanAttr& a) const {
    to.add(bits(a.axis)).add(std::uint64_t{a.exclusive}).add(std::uint64_t{a.reverse});
  }
  void operator()(const MatmulAttr& a) const {
    to.add(std::uint64_t{a.transpose_a}).add(std::uint64_t{a.transpose_b});
  }
  void operator()(const ContractionAttr& a) const {
    list(a.batch_a), list(a.batch_b), list(a.contract_a), list(a.contract_b);
  }
  void operator()(const RandomAttr& a) const { to.add(bits(a.stream)); }
  void operator()(const CustomAttr& a) const {
    to.add(std::string_view(a.name)).add(std::string_view(a.source));
    to.add(bits(a.threads)).add(bits(a.shared_bytes)).add(a.grid).add(std::uint64_t{a.grid_barrier});
    to.add(std::uint64_t{a.parts.size()});
    for (const std::string& part : a.parts) to.add(std::string_view(part));
    list(a.extents);
  }
  void operator()(const DimAttr& a) const { to.add(a.dim); }
};

const CustomReference* reference_of(const Node& node) {
  const auto* custom = std::get_if<CustomAttr>(&node.attr);
  return custom ? custom->reference.get() : nullptr;
}

// Every field is bound, so that one more does not compile until it is compared here.
bool same(const Symbol& a, const Symbol& b) {
  const auto& [name, range, factor] = a;
  return name == b.name && range == b.range && factor == b.factor;
}

bool same(const Assumption& a, const Assumption& b) {
  const auto& [relation, location] = a;
  return relation == b.relation && location == b.location;
}

bool same(const Output& a, const Output& b) {
  const auto& [name, node, donor] = a;
  return name == b.name && node == b.node && donor == b.donor;
}

bool same(const Scope& a, const Scope& b) {
  const auto& [name, parent, location] = a;
  return name == b.name && parent == b.parent && location == b.location;
}

bool same(const Node& a, const Node& b) {
  const auto& [op, attr, operands, type, scope, location] = a;
  return op == b.op && operands == b.operands && scope == b.scope && location == b.location &&
         type == b.type && attr == b.attr && reference_of(a) == reference_of(b);
}

template <class T>
bool all_same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](const T& x, const T& y) { return same(x, y); });
}

bool same(const Graph& a, const Graph& b) {
  const auto& [name, symbols, assumptions, nodes, outputs, scopes, locations] = a;
  return name == b.name && all_same(nodes, b.nodes) && all_same(symbols, b.symbols) &&
         all_same(assumptions, b.assumptions) && all_same(outputs, b.outputs) && all_same(scopes, b.scopes) &&
         locations == b.locations;
}

}  // namespace

Hasher& Hasher::add(std::string_view text) {
  add(text.size());
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    word = word << 8 | static_cast<unsigned char>(text[i]);
    if (i % 8 == 7) add(word);
  }
  return add(word);
}

Hasher& Hasher::add(const Dim& dim) {
  if (!poly_of(dim)) return add(bits(dim.constant()));
  if (numbers_) {
    add_anonymous(dim);
    return *this;
  }
  add(poly_of(dim)->terms.size()).add(bits(poly_of(dim)->constant));
  for (const detail::DimTerm& term : poly_of(dim)->terms) {
    add(bits(term.coefficient)).add(term.factors.size());
    for (const detail::Atom& factor : term.factors) {
      add(static_cast<std::uint64_t>(factor->kind));
      if (!factor->name.empty()) add(std::string_view(factor->name));
      if (factor->kind == detail::DimAtom::Kind::quotient || factor->kind == detail::DimAtom::Kind::remainder)
        add(factor->dividend).add(factor->divisor);
    }
  }
  return *this;
}

void Hasher::add_anonymous(const Dim& dim) {
  // Terms and factors stand in the order of their names: their hashes are added up instead.
  std::uint64_t terms = 0;
  for (const detail::DimTerm& term : poly_of(dim)->terms) {
    std::uint64_t factors = 0;
    for (const detail::Atom& factor : term.factors) {
      Hasher own(*numbers_);
      own.add(static_cast<std::uint64_t>(factor->kind));
      if (const auto number = numbers_->find(factor->name); number != numbers_->end()) {
        const auto& [min, max, hint] = factor->range;
        own.add(number->second).add(bits(min)).add(bits(max)).add(bits(hint));
      }
      if (factor->kind == detail::DimAtom::Kind::quotient || factor->kind == detail::DimAtom::Kind::remainder)
        own.add(factor->dividend).add(factor->divisor);
      factors += own.value();
    }
    terms += Hasher().add(bits(term.coefficient)).add(factors).value();
  }
  add(terms).add(bits(poly_of(dim)->constant));
}

Hasher& Hasher::add(const Attr& attr) {
  add(attr.index());
  std::visit(AddFields{*this}, attr);
  return *this;
}

Hasher& Hasher::add(const Type& type) {
  add(static_cast<std::uint64_t>(type.dtype)).add(type.dims.size());
  for (const Dim& dim : type.dims) add(dim);
  return *this;
}

Hasher::SymbolNumbers number_symbols(const Graph& graph, const std::vector<NodeId>& nodes) {
  Hasher::SymbolNumbers numbers;
  const auto number = [&](const Dim& dim, bool alone) {
    const std::vector<Dim> symbols = dim.symbols();
    if (alone && (symbols.size() != 1 || dim != symbols[0])) return;
    for (const Dim& symbol : symbols) numbers.emplace(symbol.name(), numbers.size());
  };
  for (const bool alone : {true, false}) {
    for (const NodeId id : nodes) {
      for (const Dim& dim : graph[id].type.dims) number(dim, alone);
      for (const Dim& dim : dims_of(graph[id].attr)) number(dim, alone);
    }
  }
  return numbers;
}

std::uint64_t hash(const Graph& graph) {
  Hasher hasher;
  hasher.add(std::string_view(graph.name)).add(graph.nodes.size());
  for (const Symbol& symbol : graph.symbols) {
    hasher.add(std::string_view(symbol.name)).add(bits(symbol.range.min)).add(bits(symbol.range.max));
  }
  for (const Node& node : graph.nodes) {
    hasher.add(static_cast<std::uint64_t>(node.op)).add(node.attr).add(node.type);
    hasher.add(node.scope).add(node.location);
    for (const NodeId operand : node.operands) hasher.add(operand);
  }
  for (const Output& output : graph.outputs) {
    hasher.add(std::string_view(output.name)).add(output.node).add(output.donor);
  }
  for (const Scope& scope : graph.scopes) hasher.add(std::string_view(scope.name)).add(scope.parent);
  for (const SourceLocation& at : graph.locations) {
    hasher.add(std::string_view(at.file)).add(static_cast<std::uint64_t>(at.line));
  }
  return hasher.value();
}

bool identical(const Graph& a, const Graph& b) { return same(a, b); }

}  // namespace fuse::ir
