// SPDX-License-Identifier: Apache-2.0
#include "analysis/element.hpp"

#include <algorithm>

namespace fuse::analysis {

using ir::Relation;

namespace {

/// What a dim of the operand or of the result is in one map.
enum class Role : std::uint8_t {
  trivial,  ///< of extent 1
  whole,    ///< operand: all of it is read for each result; result: the same for each of its coordinates
  same,     ///< operand: the coordinate is a variable of the result
  general,
};

/// Aligns the dims of a map. Dims that hold each other's coordinate are paired in order; between two such
/// pairs the others are paired in order.
class Aligner {
 public:
  explicit Aligner(const IndexMap& map)
      : map_(map), operand_(map.operand.size()), result_(map.result.size()), link_(operand_.size(), none) {}

  std::vector<AlignedDim> align() {
    count_uses();
    find_roles();
    find_links();
    std::vector<std::size_t> from, to;  // linked dims, each in order
    std::vector<std::size_t> linked(result_.size(), none);
    for (std::size_t d = 0; d < link_.size(); ++d) {
      if (link_[d] == none) continue;
      from.push_back(d);
      linked[link_[d]] = d;
    }
    for (std::size_t r = 0; r < linked.size(); ++r) {
      if (linked[r] != none) to.push_back(r);
    }
    std::size_t d = 0, r = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
      between(d, from[i], r, to[i]);
      const bool same = link_[from[i]] == to[i] && operand_[from[i]] == Role::same;
      add(from[i], to[i], same ? DimMapping::bijective : DimMapping::general);
      d = from[i] + 1;
      r = to[i] + 1;
    }
    between(d, operand_.size(), r, result_.size());
    return std::move(dims_);
  }

 private:
  static constexpr std::size_t none = ~std::size_t{0};

  /// The result's variables in an expression, also those in the extents of its free variables.
  void result_variables(const Dim& dim, std::vector<std::size_t>& out) const {
    std::vector<Variable> work = variables_of(dim);
    std::vector<bool> seen(map_.free.size());
    while (!work.empty()) {
      const Variable variable = work.back();
      work.pop_back();
      if (!variable.free) {
        out.push_back(variable.number);
      } else if (!seen[variable.number]) {
        seen[variable.number] = true;
        for (const Variable& inner : variables_of(map_.free[variable.number].extent)) work.push_back(inner);
      }
    }
  }

  /// How often each variable is named, in coordinates and elsewhere.
  void count_uses() {
    result_uses_.resize(result_.size());
    free_uses_.resize(map_.free.size());
    const auto add_from = [&](const Dim& dim) {
      for (const Variable& variable : variables_of(dim)) ++uses(variable);
    };
    for (const Dim& at : map_.at) add_from(at);
    for (const FreeVariable& free : map_.free) add_from(free.extent);
    if (!map_.where) return;
    for (const Box::Side& side : map_.where->sides) add_from(side.value);
  }
  std::size_t& uses(const Variable& variable) {
    return (variable.free ? free_uses_ : result_uses_)[variable.number];
  }

  Dim dim_of(const Variable& variable) const {
    const std::size_t number = variable.number;
    return variable.free ? free_variable(number, map_.free[number].extent)
                         : result_variable(number, map_.result[number]);
  }

  void find_roles() {
    for (std::size_t r = 0; r < result_.size(); ++r) {
      if (map_.result[r].is(1)) continue;
      result_[r] = result_uses_[r] == 0 && !map_.positional ? Role::whole : Role::general;
    }
    for (std::size_t d = 0; d < operand_.size(); ++d) {
      const Dim& extent = map_.operand[d];
      if (extent.is(1)) continue;
      operand_[d] = Role::general;
      const std::vector<Variable> named = variables_of(map_.at[d]);
      if (named.empty() || !(map_.at[d] == dim_of(named[0])) || uses(named[0]) != 1) continue;
      if (!named[0].free) {
        if (map_.result[named[0].number] == extent) operand_[d] = Role::same;
      } else if (!map_.may && !map_.free[named[0].number].chosen &&
                 map_.free[named[0].number].extent == extent) {
        operand_[d] = Role::whole;
      }
    }
  }

  void find_links() {
    std::vector<bool> taken(result_.size());
    for (std::size_t d = 0; d < link_.size(); ++d) {
      if (operand_[d] == Role::trivial) continue;
      std::vector<std::size_t> candidates;
      result_variables(map_.at[d], candidates);
      std::sort(candidates.begin(), candidates.end());
      for (const std::size_t r : candidates) {
        if (taken[r]) continue;
        taken[r] = true;
        link_[d] = r;
        break;
      }
    }
  }

  void between(std::size_t d, std::size_t d_end, std::size_t r, std::size_t r_end) {
    const auto next = [](const std::vector<Role>& roles, std::size_t at, std::size_t end, bool trivial) {
      while (at < end && (roles[at] == Role::trivial) != trivial) ++at;
      return at;
    };
    std::size_t d1 = next(operand_, d, d_end, true), r1 = next(result_, r, r_end, true);  // of extent 1
    d = next(operand_, d, d_end, false);
    r = next(result_, r, r_end, false);
    for (; d < d_end && r < r_end;
         d = next(operand_, d + 1, d_end, false), r = next(result_, r + 1, r_end, false))
      add(d, r, DimMapping::general);
    for (; d < d_end; d = next(operand_, d + 1, d_end, false)) {
      const DimMapping relation = operand_[d] == Role::whole ? DimMapping::surjective : DimMapping::general;
      add(d, r1 < r_end ? r1 : none, relation);
      r1 = next(result_, std::min(r1 + 1, r_end), r_end, true);
    }
    for (; r < r_end; r = next(result_, r + 1, r_end, false)) {
      const DimMapping relation = result_[r] == Role::whole ? DimMapping::injective : DimMapping::general;
      add(d1 < d_end ? d1 : none, r, relation);
      d1 = next(operand_, std::min(d1 + 1, d_end), d_end, true);
    }
    for (; d1 < d_end || r1 < r_end; d1 = next(operand_, std::min(d1 + 1, d_end), d_end, true),
                                     r1 = next(result_, std::min(r1 + 1, r_end), r_end, true))
      add(d1 < d_end ? d1 : none, r1 < r_end ? r1 : none, DimMapping::bijective);
  }

  void add(std::size_t d, std::size_t r, DimMapping relation) {
    AlignedDim dim{.relation = relation};
    if (d != none) {
      dim.operand = static_cast<int>(d);
      dim.operand_extent = map_.operand[d];
    }
    if (r != none) {
      dim.result = static_cast<int>(r);
      dim.result_extent = map_.result[r];
    }
    dims_.push_back(std::move(dim));
  }

  const IndexMap& map_;
  std::vector<Role> operand_, result_;
  std::vector<std::size_t> result_uses_, free_uses_;
  std::vector<std::size_t> link_;  ///< the result's dim that a dim of the operand is paired with
  std::vector<AlignedDim> dims_;
};

}  // namespace

bool ElementRelation::has(DimMapping relation) const {
  return std::any_of(dims.begin(), dims.end(),
                     [&](const AlignedDim& dim) { return dim.relation == relation; });
}

bool ElementRelation::general() const {
  return has(DimMapping::general) || (map && (map->may || map->positional));
}

ElementRelation element_relation(const ir::Graph& graph, ir::NodeId node, std::size_t operand) {
  ElementRelation relation{.map = index_map(graph, node, operand)};
  if (relation.map) relation.dims = Aligner(*relation.map).align();
  return relation;
}

OpClass op_class(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph[id];
  const Relation relation = info(node.op).relation;
  if (node.operands.empty()) return OpClass::source;
  if (relation == Relation::identity) return OpClass::element_wise;  // what the relations below say about it
  if (relation == Relation::contraction) return OpClass::contraction;
  bool reduces = false, repeats = false;
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    const ElementRelation operand = element_relation(graph, id, k);
    if (operand.general()) {
      // Definition 4; a concat of 10,000 parts is not looked at any further.
      return relation == Relation::permute   ? OpClass::transpose
             : relation == Relation::reshape ? OpClass::view
                                             : OpClass::opaque;
    }
    reduces = reduces || operand.has(DimMapping::surjective);
    repeats = repeats || operand.has(DimMapping::injective);
  }
  return reduces ? OpClass::reduction : repeats ? OpClass::broadcast : OpClass::element_wise;
}

std::string_view to_string(DimMapping relation) {
  constexpr std::string_view names[] = {"bijective", "injective", "surjective", "general"};
  return names[static_cast<std::size_t>(relation)];
}

std::string_view to_string(OpClass op_class) {
  constexpr std::string_view names[] = {"source",    "element_wise", "broadcast",   "reduction",
                                        "transpose", "view",         "contraction", "opaque"};
  return names[static_cast<std::size_t>(op_class)];
}

std::string to_string(const ElementRelation& relation) {
  const auto text_of = [](int dim) { return dim < 0 ? std::string("-") : std::to_string(dim); };
  std::string text;
  for (const AlignedDim& dim : relation.dims) {
    text += (text.empty() ? "" : ", ") + std::string(to_string(dim.relation)) + " (" + text_of(dim.operand) +
            " -> " + text_of(dim.result) + ')';
  }
  return relation.map ? text + (text.empty() ? "" : "; ") + to_string(*relation.map) : "none";
}

}  // namespace fuse::analysis
