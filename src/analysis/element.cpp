// SPDX-License-Identifier: Apache-2.0
#include "analysis/element.hpp"

#include <algorithm>

namespace fuse::analysis {

using ir::Relation;

namespace {

/// Beyond these a relation is widened: sound, and paths of any length cost no more.
constexpr std::size_t max_maps = 8;
constexpr std::size_t max_free = 16;
constexpr std::size_t max_variables = 64;

bool too_long(const IndexMap& map) {
  if (map.free.size() > max_free) return true;
  std::size_t count = 0;
  for (const Dim& at : map.at) count += variables_of(at).size();
  for (const Box& box : map.where) {
    for (const Box::Side& side : box.sides) count += 1 + variables_of(side.value).size();
  }
  return count > max_variables;
}

/// What a dim of the operand or of the result is in one map.
enum class Role : std::uint8_t {
  trivial,  ///< of extent 1
  whole,    ///< operand: all of it is read for each result; result: the same for each of its coordinates
  same,     ///< the coordinate is a variable of the other side
  general,
};

/// Aligns the dims of one map. Dims that hold each other's coordinate are paired in order; between two such
/// pairs the others are paired in order, so that a dim which is reduced and broadcast again is one dim.
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
      const bool same = link_[from[i]] == to[i] && operand_[from[i]] == Role::same;  // and so is result_
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
    for (const Box& box : map_.where) {
      for (const Box::Side& side : box.sides) {
        add_from(side.value);
        add_from(side.low);
        add_from(side.high);
      }
    }
  }
  std::size_t& uses(const Variable& variable) {
    return (variable.free ? free_uses_ : result_uses_)[variable.number];
  }

  void find_roles() {
    for (std::size_t r = 0; r < result_.size(); ++r) {
      if (map_.result[r].is(1)) continue;
      const std::size_t count = result_uses_[r];
      const bool repeats = count == 0 && !map_.positional;
      result_[r] = repeats ? Role::whole : count == 1 ? Role::same : Role::general;
    }
    for (std::size_t d = 0; d < operand_.size(); ++d) {
      const Dim& extent = map_.operand[d];
      if (extent.is(1)) continue;
      operand_[d] = Role::general;
      const std::optional<Variable> variable = as_variable(map_.at[d]);
      if (!variable || uses(*variable) != 1) continue;
      if (!variable->free) {
        if (map_.result[variable->number] == extent) operand_[d] = Role::same;
      } else if (!map_.may && !map_.free[variable->number].chosen &&
                 map_.free[variable->number].extent == extent) {
        operand_[d] = Role::whole;
      }
    }
  }

  void find_links() {
    std::vector<bool> taken(result_.size());
    for (const bool plain : {true, false}) {
      for (std::size_t d = 0; d < link_.size(); ++d) {
        if ((operand_[d] == Role::same) != plain || operand_[d] == Role::trivial) continue;
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

/// Dims at the same position, general: where maps differ in what they align.
std::vector<AlignedDim> unaligned(const std::vector<Dim>& operand, const std::vector<Dim>& result) {
  std::vector<AlignedDim> dims(std::max(operand.size(), result.size()));
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i < operand.size()) dims[i].operand = static_cast<int>(i), dims[i].operand_extent = operand[i];
    if (i < result.size()) dims[i].result = static_cast<int>(i), dims[i].result_extent = result[i];
    const bool trivial = dims[i].operand_extent.is(1) && dims[i].result_extent.is(1);
    dims[i].relation = trivial ? DimMapping::bijective : DimMapping::general;
  }
  return dims;
}

std::vector<AlignedDim> aligned_by_all(const ElementRelation& relation) {
  std::vector<AlignedDim> dims;
  for (std::size_t m = 0; m < relation.maps.size(); ++m) {
    std::vector<AlignedDim> next = Aligner(relation.maps[m]).align();
    if (m == 0) {
      dims = std::move(next);
      continue;
    }
    bool alike = next.size() == dims.size();
    for (std::size_t i = 0; alike && i < dims.size(); ++i) {
      alike = next[i].operand == dims[i].operand && next[i].result == dims[i].result;
      if (alike && next[i].relation != dims[i].relation) dims[i].relation = DimMapping::general;
    }
    if (!alike) return unaligned(relation.operand, relation.result);
  }
  return dims;
}

Multiplicity multiplicity_of(const std::vector<IndexMap>& maps) {
  if (maps.empty()) return Multiplicity::none;
  if (maps.size() > 1) return Multiplicity::general;
  const IndexMap& map = maps[0];
  const bool reads_one =
      std::all_of(map.free.begin(), map.free.end(), [](const FreeVariable& k) { return k.chosen; });
  if (reads_one) return map.injective ? Multiplicity::one_to_one : Multiplicity::one_to_many;
  return map.injective ? Multiplicity::many_to_one : Multiplicity::general;
}

ElementRelation relation_of(std::vector<Dim> operand, std::vector<Dim> result, std::vector<IndexMap> maps) {
  ElementRelation relation{.operand = std::move(operand), .result = std::move(result)};
  if (maps.size() > max_maps || std::any_of(maps.begin(), maps.end(), too_long)) {
    maps = {unknown_map(relation.operand, relation.result)};
  }
  relation.maps = std::move(maps);
  relation.multiplicity = multiplicity_of(relation.maps);
  relation.dims = aligned_by_all(relation);
  return relation;
}

void add_new(std::vector<IndexMap>& maps, IndexMap map) {
  if (std::find(maps.begin(), maps.end(), map) == maps.end()) maps.push_back(std::move(map));
}

}  // namespace

bool ElementRelation::has(DimMapping relation) const {
  return std::any_of(dims.begin(), dims.end(),
                     [&](const AlignedDim& dim) { return dim.relation == relation; });
}

bool ElementRelation::general() const {
  return has(DimMapping::general) ||
         std::any_of(maps.begin(), maps.end(), [](const IndexMap& map) { return map.may || map.positional; });
}

bool ElementRelation::bijective() const {
  return !general() && !has(DimMapping::injective) && !has(DimMapping::surjective);
}

bool ElementRelation::data_dependent() const {
  return std::any_of(maps.begin(), maps.end(), [](const IndexMap& map) { return map.data_dependent(); });
}

bool ElementRelation::unknown() const {
  return maps.size() == 1 && maps[0].may && maps[0] == unknown_map(operand, result);
}

ElementRelation element_relation(const ir::Graph& graph, ir::NodeId node, std::size_t operand) {
  std::vector<IndexMap> maps;
  if (std::optional<IndexMap> map = index_map(graph, node, operand)) maps.push_back(std::move(*map));
  return relation_of(graph[graph[node].operands[operand]].type.dims, graph[node].type.dims, std::move(maps));
}

ElementRelation identity_relation(const std::vector<Dim>& dims) {
  return relation_of(dims, dims, {identity_map(dims)});
}

ElementRelation no_relation(const std::vector<Dim>& operand, const std::vector<Dim>& result) {
  return relation_of(operand, result, {});
}

ElementRelation compose(const ElementRelation& outer, const ElementRelation& inner) {
  std::vector<IndexMap> maps;
  for (const IndexMap& last : outer.maps) {
    for (const IndexMap& first : inner.maps) {
      try {
        if (std::optional<IndexMap> map = compose(last, first)) add_new(maps, std::move(*map));
      } catch (const Error& error) {  // coordinates beyond 63 bits
        if (error.code() != ErrorCode::invalid_extent) throw;
        maps = {unknown_map(inner.operand, outer.result)};
        return relation_of(inner.operand, outer.result, std::move(maps));
      }
    }
  }
  return relation_of(inner.operand, outer.result, std::move(maps));
}

ElementRelation join(const ElementRelation& a, const ElementRelation& b) {
  if (a.unknown()) return a;
  if (b.unknown()) return b;
  std::vector<IndexMap> maps = a.maps;
  for (const IndexMap& map : b.maps) add_new(maps, map);
  return relation_of(a.operand, a.result, std::move(maps));
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

std::string_view to_string(Multiplicity multiplicity) {
  constexpr std::string_view names[] = {"none", "one_to_one", "one_to_many", "many_to_one", "general"};
  return names[static_cast<std::size_t>(multiplicity)];
}

std::string to_string(const ElementRelation& relation) {
  const auto text_of = [](int dim) { return dim < 0 ? std::string("-") : std::to_string(dim); };
  std::string text;
  for (const AlignedDim& dim : relation.dims) {
    text += (text.empty() ? "" : ", ") + std::string(to_string(dim.relation)) + " (" + text_of(dim.operand) +
            " -> " + text_of(dim.result) + ')';
  }
  text += (text.empty() ? "" : "; ") + std::string(to_string(relation.multiplicity));
  for (const IndexMap& map : relation.maps) text += "; " + to_string(map);
  return text;
}

}  // namespace fuse::analysis
