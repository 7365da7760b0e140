// SPDX-License-Identifier: Apache-2.0
#include "analysis/index_map.hpp"

#include <algorithm>
#include <functional>

#include "base/access.hpp"
#include "ir/dims/dim_poly.hpp"

namespace fuse::analysis {

using detail::DimAtom;
using ir::Relation;

namespace {

Dim index_variable(char letter, std::size_t number, const Dim& extent) {
  return extent.is(1) ? Dim(0) : Dim::index(letter + std::to_string(number), extent);
}

Variable variable_of(const DimAtom& atom) {
  return {atom.name[0] == 'k', static_cast<std::size_t>(std::stoul(atom.name.substr(1)))};
}

/// The expression with every variable replaced. Symbols of the graph may have any name, so names do not
/// decide.
Dim replace(const Dim& dim, const std::function<Dim(const Variable&)>& by) {
  if (!poly_of(dim)) return dim;
  Dim sum = poly_of(dim)->constant;
  for (const detail::DimTerm& term : poly_of(dim)->terms) {
    Dim product = term.coefficient;
    for (const detail::Atom& factor : term.factors) {
      switch (factor->kind) {
        case DimAtom::Kind::symbol:
          product = product * detail::DimPoly::of(factor);
          break;
        case DimAtom::Kind::index:
          product = product * by(variable_of(*factor));
          break;
        case DimAtom::Kind::quotient:
          product = product * (replace(factor->dividend, by) / replace(factor->divisor, by));
          break;
        case DimAtom::Kind::remainder:
          product = product * (replace(factor->dividend, by) % replace(factor->divisor, by));
          break;
      }
    }
    sum = sum + product;
  }
  return sum;
}

void collect(const Dim& dim, std::vector<Variable>& out) {
  if (!poly_of(dim)) return;
  for (const detail::DimTerm& term : poly_of(dim)->terms) {
    for (const detail::Atom& factor : term.factors) {
      if (factor->kind == DimAtom::Kind::index) {
        out.push_back(variable_of(*factor));
      } else if (factor->kind != DimAtom::Kind::symbol) {
        collect(factor->dividend, out);
        collect(factor->divisor, out);
      }
    }
  }
}

/// What is not proven does not hold; nor does what cannot be computed in 63 bits.
bool proven(bool (*relation)(const Dim&, const Dim&), const Dim& a, const Dim& b) {
  try {
    return relation(a, b);
  } catch (const Error&) {
    return false;
  }
}
bool le(const Dim& a, const Dim& b) { return proven(proven_le, a, b); }
bool less(const Dim& a, const Dim& b) { return proven(proven_less, a, b); }

/// Drops what holds anyway; false when the boxes leave nothing.
bool simplify(std::vector<Box>& where) {
  std::vector<Box> kept;
  for (Box& box : where) {
    std::vector<Box::Side> sides;
    bool empty = false;
    for (Box::Side& side : box.sides) {
      empty = empty || le(side.high, side.low) || less(side.value, side.low) || le(side.high, side.value);
      if (!le(side.low, side.value) || !less(side.value, side.high)) sides.push_back(std::move(side));
    }
    if (empty != box.outside && (empty || sides.empty())) return false;
    if (empty || sides.empty()) continue;
    box.sides = std::move(sides);
    if (std::find(kept.begin(), kept.end(), box) == kept.end()) kept.push_back(std::move(box));
  }
  where = std::move(kept);
  return true;
}

/// Leaves only free variables that matter, numbered in the order in which the map names them, so that equal
/// maps compare equal. A variable that is not named only repeats.
void number_free_variables(IndexMap& map) {
  constexpr std::size_t unnamed = ~std::size_t{0};
  std::vector<std::size_t> number(map.free.size(), unnamed), order;
  const std::function<void(const Dim&)> name = [&](const Dim& dim) {
    for (const Variable& variable : variables_of(dim)) {
      if (!variable.free || number[variable.number] != unnamed) continue;
      name(map.free[variable.number]
               .extent);  // at most as deep as maps were composed: extents name earlier ones
      number[variable.number] = order.size();
      order.push_back(variable.number);
    }
  };
  for (const Dim& at : map.at) name(at);
  for (const Box& box : map.where) {
    for (const Box::Side& side : box.sides) {
      name(side.value);
      name(side.low);
      name(side.high);
    }
  }
  bool same = order.size() == map.free.size();
  for (std::size_t i = 0; i < order.size(); ++i) same = same && order[i] == i;
  if (same) return;
  std::vector<FreeVariable> free;
  const auto renamed = [&](const Dim& dim) {
    return replace(dim, [&](const Variable& variable) {
      if (!variable.free) return result_variable(variable.number, map.result[variable.number]);
      const std::size_t to = number[variable.number];
      return free_variable(to, free[to].extent);
    });
  };
  for (const std::size_t old : order) {
    Dim extent = renamed(map.free[old].extent);
    free.push_back({std::move(extent), map.free[old].chosen});
  }
  for (Dim& at : map.at) at = renamed(at);
  for (Box& box : map.where) {
    for (Box::Side& side : box.sides) side = {renamed(side.value), renamed(side.low), renamed(side.high)};
  }
  map.free = std::move(free);
}

/// Every dim of the result has its variable as a coordinate, so that the element read gives the result back.
bool recovers_result(const IndexMap& map) {
  for (std::size_t i = 0; i < map.result.size(); ++i) {
    if (map.result[i].is(1)) continue;
    const Dim variable = result_variable(i, map.result[i]);
    if (std::find(map.at.begin(), map.at.end(), variable) == map.at.end()) return false;
  }
  return true;
}

bool is_empty(const std::vector<Dim>& dims) {
  return std::any_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is(0); });
}

/// The dims that are not of extent 1, and the products of the extents up to each.
struct Prefixes {
  std::vector<std::size_t> dims;
  std::vector<Dim> products;
  explicit Prefixes(const std::vector<Dim>& extents) {
    for (std::size_t i = 0; i < extents.size(); ++i) {
      if (extents[i].is(1)) continue;
      dims.push_back(i);
      products.push_back(products.empty() ? extents[i] : products.back() * extents[i]);
    }
  }
};

/// Coordinates of the operand with the same position in row-major order. Runs of dims with equal products are
/// mapped on their own, so that a dim that stays keeps its variable.
std::vector<Dim> reshaped(const std::vector<Dim>& result, const std::vector<Dim>& operand) {
  std::vector<Dim> at(operand.size(), Dim(0));
  if (is_empty(operand) || is_empty(result)) return at;  // nothing is ever read, and strides divide nothing
  const Prefixes from(result), to(operand);
  std::size_t from_begin = 0, to_begin = 0;
  while (to_begin < to.dims.size() && from_begin < from.dims.size()) {
    std::size_t from_end = from.dims.size(), to_end = to.dims.size();
    for (std::size_t f = from_begin; f < from_end; ++f) {
      const auto match = std::find(to.products.begin() + static_cast<std::ptrdiff_t>(to_begin),
                                   to.products.end(), from.products[f]);
      if (match == to.products.end()) continue;
      from_end = f + 1;
      to_end = static_cast<std::size_t>(match - to.products.begin()) + 1;
    }
    Dim flat = 0;
    for (std::size_t f = from_begin; f < from_end; ++f) {
      const Dim& extent = result[from.dims[f]];
      flat = flat * extent + result_variable(from.dims[f], extent);
    }
    Dim stride = 1;
    for (std::size_t t = to_end; t-- > to_begin;) {
      const Dim& extent = operand[to.dims[t]];
      at[to.dims[t]] = t == to_begin ? flat / stride : flat / stride % extent;
      stride = stride * extent;
    }
    from_begin = from_end;
    to_begin = to_end;
  }
  return at;
}

/// Builds the map of one operand of one node.
class Reader {
 public:
  Reader(const ir::Graph& graph, ir::NodeId id, std::size_t operand)
      : graph_(graph), node_(graph[id]), operand_(operand) {
    map_.result = node_.type.dims;
    map_.operand = dims(operand);
    map_.at.resize(map_.operand.size(), Dim(0));
  }

  std::optional<IndexMap> read() {
    if (!visit()) return std::nullopt;
    map_.injective = map_.injective || recovers_result(map_);
    if (!simplify(map_.where)) return std::nullopt;
    number_free_variables(map_);
    return std::move(map_);
  }

 private:
  const std::vector<Dim>& dims(std::size_t operand) const {
    return graph_[node_.operands[operand]].type.dims;
  }
  Dim variable(std::size_t dim) const { return result_variable(dim, map_.result[dim]); }
  Dim free(const Dim& extent, bool chosen = false) {
    const Dim variable = free_variable(map_.free.size(), extent);
    if (!extent.is(1)) map_.free.push_back({extent, chosen});
    return variable;
  }
  void same_coordinates() {
    for (std::size_t i = 0; i < map_.at.size(); ++i) map_.at[i] = variable(i);
  }

  /// False where the operand's value is not used. A relation that is new to the table has no case here, which
  /// the compiler reports.
  bool visit() {
    switch (info(node_.op).relation) {
      case Relation::none:
        return false;
      case Relation::identity:
        same_coordinates();
        return true;
      case Relation::broadcast:
        return broadcast();
      case Relation::reduce:
        return reduce();
      case Relation::permute:
        return permute();
      case Relation::reshape:
        map_.at = reshaped(map_.result, map_.operand);
        map_.injective = true;
        return true;
      case Relation::slice:
        return slice();
      case Relation::concat:
        return concat();
      case Relation::reverse:
        return reverse();
      case Relation::pad:
        return pad();
      case Relation::gather:
        return gather();
      case Relation::dynamic_slice:
        return dynamic_slice();
      case Relation::update:
        return update();
      case Relation::scan:
        return scan();
      case Relation::contraction:
        return contraction();
      case Relation::random:
        map_.positional = true;
        return true;
      case Relation::custom:
        map_ = unknown_map(map_.operand, map_.result);
        return true;
    }
    return false;
  }

  bool broadcast() {
    const auto& to = ir::attr<ir::DimsAttr>(node_).dims;
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (!map_.operand[i].is(1)) map_.at[i] = variable(static_cast<std::size_t>(to[i]));
    }
    return true;
  }

  bool reduce() {
    const auto& reduced = ir::attr<ir::DimsAttr>(node_).dims;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < map_.at.size(); ++i) {
      const bool is_reduced =
          std::binary_search(reduced.begin(), reduced.end(), static_cast<std::int64_t>(i));
      map_.at[i] = is_reduced ? free(map_.operand[i]) : variable(kept++);
    }
    return true;
  }

  bool permute() {
    const auto& permutation = ir::attr<ir::DimsAttr>(node_).dims;
    for (std::size_t i = 0; i < map_.at.size(); ++i)
      map_.at[static_cast<std::size_t>(permutation[i])] = variable(i);
    return true;
  }

  bool slice() {
    const auto& slice = ir::attr<ir::SliceAttr>(node_);
    for (std::size_t i = 0; i < map_.at.size(); ++i)
      map_.at[i] = slice.starts[i] + variable(i) * slice.strides[i];
    map_.injective = true;
    return true;
  }

  bool reverse() {
    same_coordinates();
    for (const std::int64_t dim : ir::attr<ir::DimsAttr>(node_).dims) {
      const auto i = static_cast<std::size_t>(dim);
      map_.at[i] = map_.operand[i] - 1 - variable(i);
    }
    map_.injective = true;
    return true;
  }

  /// The operand stands in the result from `low` on. Variables of extent 1 are 0, as are then their offsets.
  void placed_from(const std::vector<Dim>& low) {
    Box box;
    for (std::size_t i = 0; i < low.size(); ++i) {
      map_.at[i] = map_.operand[i].is(1) ? Dim(0) : variable(i) - low[i];
      box.sides.push_back({variable(i), low[i], low[i] + map_.operand[i]});
    }
    map_.where.push_back(std::move(box));
    map_.injective = true;
  }

  bool concat() {
    const auto axis = static_cast<std::size_t>(ir::attr<ir::AxisAttr>(node_).axis);
    std::vector<Dim> low(map_.at.size(), Dim(0));
    for (std::size_t p = 0; p < operand_; ++p) low[axis] = low[axis] + dims(p)[axis];
    placed_from(low);
    return true;
  }

  bool pad() {
    const std::vector<Dim>& low = ir::attr<ir::PadAttr>(node_).low;
    if (operand_ == 0) {
      placed_from(low);
      return true;
    }
    Box box{.sides = {}, .outside = true};
    for (std::size_t i = 0; i < low.size(); ++i)
      box.sides.push_back({variable(i), low[i], low[i] + dims(0)[i]});
    map_.where.push_back(std::move(box));
    return true;
  }

  bool gather() {
    const auto axis = static_cast<std::size_t>(ir::attr<ir::AxisAttr>(node_).axis);
    const std::size_t rank = dims(1).size();
    if (operand_ == 1) {
      for (std::size_t i = 0; i < rank; ++i) map_.at[i] = variable(axis + i);
      return !dims(0)[axis].is(1);  // every index is clamped to 0
    }
    for (std::size_t i = 0; i < map_.at.size(); ++i) {
      map_.at[i] = i == axis ? free(map_.operand[i], true) : variable(i < axis ? i : i + rank - 1);
    }
    return true;
  }

  /// Where a part of `size` begins in `extent`, as data says.
  Dim start(const Dim& extent, const Dim& size) {
    return extent == size ? Dim(0) : free(extent - size + 1, true);
  }
  /// The scalar that says so decides nothing where the part is the whole.
  bool start_matters(std::size_t dim, const std::vector<Dim>& sizes) const {
    return !(dims(0)[dim] == sizes[dim]);
  }

  bool dynamic_slice() {
    if (operand_ > 0) return start_matters(operand_ - 1, map_.result);
    for (std::size_t i = 0; i < map_.at.size(); ++i) {
      map_.at[i] = variable(i) + start(map_.operand[i], map_.result[i]);
    }
    map_.injective = true;
    return true;
  }

  bool update() {
    const std::vector<Dim>& sizes = dims(1);
    if (operand_ > 1) {
      map_.may =
          true;  // not for an element that no choice of starts reaches, nor for one that every choice does
      return start_matters(operand_ - 2, sizes) && !is_empty(sizes);
    }
    std::vector<Dim> low;
    for (std::size_t i = 0; i < sizes.size(); ++i) low.push_back(start(map_.result[i], sizes[i]));
    if (operand_ == 1) {
      placed_from(low);
      return true;
    }
    same_coordinates();
    Box box{.sides = {}, .outside = true};
    for (std::size_t i = 0; i < sizes.size(); ++i)
      box.sides.push_back({variable(i), low[i], low[i] + sizes[i]});
    map_.where.push_back(std::move(box));
    return true;
  }

  bool scan() {
    const auto& scan = ir::attr<ir::ScanAttr>(node_);
    same_coordinates();
    const auto axis = static_cast<std::size_t>(scan.axis);
    const Dim here = variable(axis), first = scan.reverse ? here + Dim(scan.exclusive ? 1 : 0) : Dim(0);
    const Dim count = scan.reverse ? map_.operand[axis] - first : here + Dim(scan.exclusive ? 0 : 1);
    map_.at[axis] = first + free(count);
    return !count.is(0);
  }

  bool contraction() {
    ir::ContractionAttr attr;
    if (const auto* matmul = std::get_if<ir::MatmulAttr>(&node_.attr)) {
      const auto batch = static_cast<std::int64_t>(map_.result.size()) - 2;
      for (std::int64_t i = 0; i < batch; ++i) {
        attr.batch_a.push_back(i);
        attr.batch_b.push_back(i);
      }
      attr.contract_a = {matmul->transpose_a ? batch : batch + 1};
      attr.contract_b = {matmul->transpose_b ? batch + 1 : batch};
    } else {
      attr = ir::attr<ir::ContractionAttr>(node_);
    }
    const auto& batch = operand_ == 0 ? attr.batch_a : attr.batch_b;
    const auto& contracted = operand_ == 0 ? attr.contract_a : attr.contract_b;
    std::vector<bool> placed(map_.at.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      map_.at[static_cast<std::size_t>(batch[i])] = variable(i);
      placed[static_cast<std::size_t>(batch[i])] = true;
    }
    for (const std::int64_t dim : contracted) {
      const auto i = static_cast<std::size_t>(dim);
      map_.at[i] = free(map_.operand[i]);
      placed[i] = true;
    }
    std::size_t next = batch.size();
    if (operand_ == 1) next = map_.result.size() - (map_.at.size() - batch.size() - contracted.size());
    for (std::size_t i = 0; i < map_.at.size(); ++i) {
      if (!placed[i]) map_.at[i] = variable(next++);
    }
    return true;
  }

  const ir::Graph& graph_;
  const ir::Node& node_;
  std::size_t operand_;
  IndexMap map_;
};

}  // namespace

bool IndexMap::data_dependent() const {
  return may || std::any_of(free.begin(), free.end(), [](const FreeVariable& k) { return k.chosen; });
}

Dim result_variable(std::size_t dim, const Dim& extent) { return index_variable('i', dim, extent); }
Dim free_variable(std::size_t number, const Dim& extent) { return index_variable('k', number, extent); }

std::optional<Variable> as_variable(const Dim& dim) {
  const detail::DimPoly* poly = poly_of(dim);
  if (!poly || poly->constant != 0 || poly->terms.size() != 1) return std::nullopt;
  const detail::DimTerm& term = poly->terms[0];
  if (term.coefficient != 1 || term.factors.size() != 1) return std::nullopt;
  if (term.factors[0]->kind != DimAtom::Kind::index) return std::nullopt;
  return variable_of(*term.factors[0]);
}

std::vector<Variable> variables_of(const Dim& dim) {
  std::vector<Variable> result;
  collect(dim, result);
  return result;
}

IndexMap identity_map(const std::vector<Dim>& dims) {
  IndexMap map{.result = dims, .operand = dims, .injective = true};
  for (std::size_t i = 0; i < dims.size(); ++i) map.at.push_back(result_variable(i, dims[i]));
  return map;
}

IndexMap unknown_map(const std::vector<Dim>& operand, const std::vector<Dim>& result) {
  IndexMap map{.result = result, .operand = operand, .may = true, .positional = true};
  for (const Dim& extent : operand) {
    map.at.push_back(free_variable(map.free.size(), extent));
    if (!extent.is(1)) map.free.push_back({extent});
  }
  return map;
}

std::optional<IndexMap> index_map(const ir::Graph& graph, ir::NodeId node, std::size_t operand) {
  return Reader(graph, node, operand).read();
}

std::optional<IndexMap> compose(const IndexMap& outer, const IndexMap& inner) {
  if (outer.operand != inner.result) {
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::internal,
                 .message = "index maps " + to_string(outer) + " and " + to_string(inner) + " do not meet"});
  }
  IndexMap map{.result = outer.result,
               .operand = inner.operand,
               .free = outer.free,
               .where = outer.where,
               .may = outer.may || inner.may,
               .positional = outer.positional || inner.positional,
               .injective = outer.injective && inner.injective};
  std::vector<Dim> free;  // inner's free variables, by their own numbers
  const auto through = [&](const Dim& dim) {
    return replace(dim, [&](const Variable& v) { return v.free ? free[v.number] : outer.at[v.number]; });
  };
  for (const FreeVariable& variable : inner.free) {
    const Dim extent = through(variable.extent);
    free.push_back(free_variable(map.free.size(), extent));
    if (!extent.is(1)) map.free.push_back({extent, variable.chosen});
    if (extent.is(0)) return std::nullopt;
  }
  for (const Dim& at : inner.at) map.at.push_back(through(at));
  for (const Box& box : inner.where) {
    Box moved{.sides = {}, .outside = box.outside};
    for (const Box::Side& side : box.sides)
      moved.sides.push_back({through(side.value), through(side.low), through(side.high)});
    map.where.push_back(std::move(moved));
  }
  if (!simplify(map.where)) return std::nullopt;
  map.injective = map.injective || recovers_result(map);
  number_free_variables(map);
  return map;
}

std::string to_string(const IndexMap& map) {
  std::string text = "(";
  for (std::size_t i = 0; i < map.result.size(); ++i)
    text += (i ? ", " : "") + result_variable(i, map.result[i]).to_string();
  text += ") -> (";
  for (std::size_t i = 0; i < map.at.size(); ++i) text += (i ? ", " : "") + map.at[i].to_string();
  text += ')';
  for (std::size_t k = 0; k < map.free.size(); ++k) {
    text += k ? ", k" : " for k";
    text += std::to_string(k) + (map.free[k].chosen ? " chosen in [0, " : " in [0, ");
    text += map.free[k].extent.to_string() + ')';
  }
  for (std::size_t b = 0; b < map.where.size(); ++b) {
    text += b ? " and " : " where ";
    if (map.where[b].outside) text += "not ";
    for (std::size_t s = 0; s < map.where[b].sides.size(); ++s) {
      const Box::Side& side = map.where[b].sides[s];
      text += (s ? " x " : "") + side.value.to_string();
      text += " in [" + side.low.to_string() + ", " + side.high.to_string() + ')';
    }
  }
  if (map.may) text += " perhaps";
  return text;
}

}  // namespace fuse::analysis
