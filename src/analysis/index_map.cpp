// SPDX-License-Identifier: Apache-2.0
#include "analysis/index_map.hpp"

#include <algorithm>

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

void collect(const Dim& dim, std::vector<Variable>& out) {
  if (!poly_of(dim)) return;
  for (const detail::DimTerm& term : poly_of(dim)->terms) {
    for (const detail::Atom& factor : term.factors) {
      if (factor->kind == DimAtom::Kind::index) {
        out.push_back(variable_of(*factor));
      } else if (factor->kind != DimAtom::Kind::symbol) {
        collect(factor->dividend, out);  // what it is divided by are extents
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

/// Drops what holds anyway; false where it never holds.
bool simplify(std::optional<Box>& where) {
  if (!where) return true;
  std::vector<Box::Side> sides;
  bool empty = false;
  for (Box::Side& side : where->sides) {
    empty = empty || le(side.high, side.low) || less(side.value, side.low) || le(side.high, side.value);
    if (!le(side.low, side.value) || !less(side.value, side.high)) sides.push_back(std::move(side));
  }
  if (empty || sides.empty()) {  // it holds nowhere, or everywhere
    const bool holds = empty == where->outside;
    where.reset();
    return holds;
  }
  where->sides = std::move(sides);
  return true;
}

bool is_empty(const std::vector<Dim>& dims) {
  return std::any_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is(0); });
}

/// The product of the extents up to each.
std::vector<Dim> prefixes(const std::vector<Dim>& extents) {
  std::vector<Dim> products;
  for (const Dim& extent : extents) products.push_back(products.empty() ? extent : products.back() * extent);
  return products;
}

/// Coordinates of the operand with the same position in row-major order. Runs of dims with equal products are
/// mapped on their own, so that a dim that stays keeps its variable.
std::vector<Dim> reshaped(const std::vector<Dim>& result, const std::vector<Dim>& operand) {
  std::vector<Dim> at(operand.size(), Dim(0));
  if (is_empty(operand)) return at;  // nothing is ever read, and strides divide nothing
  const std::vector<Dim> from = prefixes(result), to = prefixes(operand);
  std::size_t from_begin = 0, to_begin = 0;
  while (to_begin < to.size()) {
    std::size_t from_end = from.size(), to_end = to.size();
    for (std::size_t f = from_begin; f < from_end; ++f) {
      const auto match = std::find(to.begin() + static_cast<std::ptrdiff_t>(to_begin), to.end(), from[f]);
      if (match == to.end()) continue;
      from_end = f + 1;
      to_end = static_cast<std::size_t>(match - to.begin()) + 1;
    }
    Dim flat = 0;
    for (std::size_t f = from_begin; f < from_end; ++f)
      flat = flat * result[f] + result_variable(f, result[f]);
    Dim stride = 1;
    for (std::size_t t = to_end; t-- > to_begin;) {
      at[t] = t == to_begin ? flat / stride : flat / stride % operand[t];
      stride = stride * operand[t];
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
    if (!visit() || !simplify(map_.where)) return std::nullopt;
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
      case Relation::expand:
        expand();
        return true;
      case Relation::reduce:
        return reduce();
      case Relation::permute:
        return permute();
      case Relation::reshape:
        map_.at = reshaped(map_.result, map_.operand);
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

  /// An extent that is 1 repeats; one that is the result's does not.
  void expand() {
    for (std::size_t i = 0; i < map_.at.size(); ++i) {
      const bool same = map_.operand[i] == map_.result[i];
      if (!map_.operand[i].is(1)) map_.at[i] = same ? variable(i) : variable(i) % map_.operand[i];
    }
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
    return true;
  }

  bool reverse() {
    same_coordinates();
    for (const std::int64_t dim : ir::attr<ir::DimsAttr>(node_).dims) {
      const auto i = static_cast<std::size_t>(dim);
      map_.at[i] = map_.operand[i] - 1 - variable(i);
    }
    return true;
  }

  /// The operand stands in the result from `low` on. Variables of extent 1 are 0, as are then their offsets.
  void placed_from(const std::vector<Dim>& low) {
    Box box;
    for (std::size_t i = 0; i < low.size(); ++i) {
      map_.at[i] = map_.operand[i].is(1) ? Dim(0) : variable(i) - low[i];
      box.sides.push_back({variable(i), low[i], low[i] + map_.operand[i]});
    }
    map_.where = std::move(box);
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
    map_.where = std::move(box);
    return true;
  }

  bool gather() {
    const auto axis = static_cast<std::size_t>(ir::attr<ir::AxisAttr>(node_).axis);
    const std::size_t rank = dims(1).size();
    if (operand_ == 1) {
      for (std::size_t i = 0; i < rank; ++i) map_.at[i] = variable(axis + i);
      return !dims(0)[axis].is(1);  // every index is clamped to 0
    }
    std::size_t next = 0;
    for (std::size_t i = 0; i < map_.at.size(); ++i) {
      map_.at[i] = i == axis ? free(map_.operand[i], true) : variable(next);
      next += i == axis ? rank : 1;
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
    map_.where = std::move(box);
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

Dim result_variable(std::size_t dim, const Dim& extent) { return index_variable('i', dim, extent); }
Dim free_variable(std::size_t number, const Dim& extent) { return index_variable('k', number, extent); }

std::vector<Variable> variables_of(const Dim& dim) {
  std::vector<Variable> result;
  collect(dim, result);
  return result;
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
  if (map.where) text += map.where->outside ? " where not " : " where ";
  for (std::size_t i = 0; map.where && i < map.where->sides.size(); ++i) {
    const Box::Side& side = map.where->sides[i];
    text += (i ? " x " : "") + side.value.to_string();
    text += " in [" + side.low.to_string() + ", " + side.high.to_string() + ')';
  }
  if (map.may) text += " perhaps";
  return text;
}

}  // namespace fuse::analysis
