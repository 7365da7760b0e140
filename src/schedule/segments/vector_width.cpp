// SPDX-License-Identifier: Apache-2.0
#include "schedule/segments/vector_width.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/access.hpp"
#include "ir/dims/dim_poly.hpp"
#include "ir/graph/attr.hpp"
#include "schedule/segments/loop_shape.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;
using ir::Relation;

constexpr int most_bytes = 16;      // per access
constexpr int repeated_bytes = 32;  // for what many rows read: two accesses, whose sectors a cache has

/// What neighbours in a value's innermost dim read of its operand.
enum class Neighbours : std::uint8_t { same, side_by_side, apart };

class Walker {
 public:
  /// `walked`: elements that the loops visit. `tested`: a kernel may ask whether symbols are multiples.
  Walker(const ir::Graph& graph, const Phase& phase, std::int64_t walked, bool tested = false)
      : graph_(graph), walked_(walked), tested_(tested), inputs_(phase.inputs) {}

  /// Visits what neighbouring elements of the value are computed from; false where some of it lies apart.
  bool visit(NodeId root) {
    std::vector<NodeId> work = {root};
    while (!work.empty()) {
      const NodeId id = work.back();
      work.pop_back();
      if (!seen_.insert(id).second) continue;
      const ir::Node& node = graph_[id];
      const bool in_memory = std::binary_search(inputs_.begin(), inputs_.end(), id);
      narrow(node, in_memory);
      if (in_memory) continue;
      if (info(node.op).relation == Relation::reduce) return false;
      for (std::size_t i = 0; i < node.operands.size(); ++i) {
        const Neighbours neighbours = of_operand(node, i);
        if (neighbours == Neighbours::apart) return false;
        if (neighbours == Neighbours::side_by_side) work.push_back(node.operands[i]);
      }
    }
    return true;
  }

  /// What it is computed from is visited on its own.
  void stop_at(NodeId id) { seen_.insert(id); }

  /// Narrows to what a thread accesses at a time when the value is stored or read. All must begin at a
  /// multiple.
  void narrow(const ir::Node& node, bool in_memory) {
    const std::vector<Dim>& dims = node.type.dims;
    if (in_memory) {
      const int bytes = product(dims).hint() < walked_ ? repeated_bytes : most_bytes;
      width_ = std::min(width_, bytes / static_cast<int>(size_of(node.type.dtype)));
    }
    const auto inner = innermost(dims);
    while (width_ > 1 && (!inner || !is_multiple(dims[*inner]))) width_ /= 2;
  }

  int width() const { return width_; }

  /// One symbol from each term of what has to be a multiple of `vector` and is not known to be one.
  std::vector<Dim> symbols_to_test(int vector) const {
    std::vector<Dim> open;
    std::copy_if(asked_.begin(), asked_.end(), std::back_inserter(open),
                 [&](const Dim& dim) { return !is_known_multiple(dim, vector); });
    // Terms of few symbols come first: a product of many may contain one of theirs.
    std::stable_sort(open.begin(), open.end(),
                     [](const Dim& a, const Dim& b) { return a.symbols().size() < b.symbols().size(); });
    std::vector<Dim> tested;
    for (const Dim& dim : open) {
      if (!poly_of(dim)) continue;
      for (const detail::DimTerm& term : poly_of(dim)->terms) {
        if (divides(vector, term)) continue;
        const auto is_tested = [&](const detail::Atom& factor) {
          return std::find(tested.begin(), tested.end(), detail::DimPoly::of(factor)) != tested.end();
        };
        if (std::any_of(term.factors.begin(), term.factors.end(), is_tested)) continue;
        const auto last = std::find_if(term.factors.rbegin(), term.factors.rend(),
                                       [&](const detail::Atom& factor) { return is_testable(*factor); });
        if (last != term.factors.rend()) tested.push_back(detail::DimPoly::of(*last));
      }
    }
    return tested;
  }

 private:
  /// What is known to divide a symbol.
  std::int64_t factor_of(std::string_view name) const {
    const auto found = std::find_if(graph_.symbols.begin(), graph_.symbols.end(),
                                    [&](const ir::Symbol& symbol) { return symbol.name == name; });
    return found == graph_.symbols.end() ? 1 : found->factor;
  }
  /// Whether it is a multiple, whatever values symbols have.
  bool is_known_multiple(const Dim& dim, int of) const {
    std::map<std::string, Dim, std::less<>> quotients;  // by symbols with a factor
    for (const Dim& each : dim.symbols()) {
      const ir::Symbol symbol{.name = std::string(each.name()),
                              .range = {each.min(), each.max(), each.hint()},
                              .factor = factor_of(each.name())};
      if (symbol.factor > 1)
        quotients.emplace(symbol.name, symbol.factor * Dim::symbol(symbol.name, quotient_range(symbol)));
    }
    const Dim by_quotients = dim.substitute([&](std::string_view name) {
      const auto found = quotients.find(name);
      return found == quotients.end() ? nullptr : &found->second;
    });
    return (by_quotients % of).is(0);
  }
  /// Whether some value of the symbol is a multiple of every vector.
  bool is_testable(const detail::DimAtom& factor) const {
    if (!tested_ || factor.kind != detail::DimAtom::Kind::symbol) return false;
    const auto [min, max, hint] = factor.range;
    return max / most_vector_elements * most_vector_elements >= std::max<std::int64_t>(min, 1);
  }
  bool divides(int vector, const detail::DimTerm& term) const {
    std::int64_t rest = term.coefficient % vector;
    for (const detail::Atom& factor : term.factors) {
      if (factor->kind != detail::DimAtom::Kind::symbol) continue;
      rest = rest * (factor_of(factor->name) % vector) % vector;
    }
    return rest == 0;
  }
  /// Whether each term that the width does not divide has a symbol that the kernel may test. Quotients and
  /// remainders are not looked into: half of a multiple of 4 need not be one.
  bool is_multiple_where_tested(const Dim& dim) const {
    if (!poly_of(dim) || poly_of(dim)->constant % width_ != 0) return false;
    const std::vector<detail::DimTerm>& terms = poly_of(dim)->terms;
    return std::all_of(terms.begin(), terms.end(), [&](const detail::DimTerm& term) {
      return divides(width_, term) ||
             std::any_of(term.factors.begin(), term.factors.end(),
                         [&](const detail::Atom& factor) { return is_testable(*factor); });
    });
  }
  /// Whether it is a multiple of the width for all values of symbols, except where the kernel tests.
  bool is_multiple(const Dim& dim) {
    asked_.push_back(dim);
    return is_known_multiple(dim, width_) || is_multiple_where_tested(dim);
  }

  Neighbours of_operand(const ir::Node& node, std::size_t operand) {
    const std::vector<Dim>& from = graph_[node.operands[operand]].type.dims;
    const std::size_t inner = innermost(node.type.dims).value_or(0);
    switch (info(node.op).relation) {
      case Relation::identity:
        return Neighbours::side_by_side;
      case Relation::random:  // its operands are scalars
        return Neighbours::same;
      case Relation::broadcast: {
        const std::vector<std::int64_t>& map = ir::attr<ir::DimsAttr>(node).dims;
        for (std::size_t i = 0; i < from.size(); ++i) {
          if (from[i].is(1) || static_cast<std::size_t>(map[i]) != inner) continue;
          return innermost(from) == i ? Neighbours::side_by_side : Neighbours::apart;
        }
        return Neighbours::same;
      }
      case Relation::permute: {
        const std::vector<std::int64_t>& permutation = ir::attr<ir::DimsAttr>(node).dims;
        return innermost(from) == static_cast<std::size_t>(permutation[inner]) ? Neighbours::side_by_side
                                                                               : Neighbours::apart;
      }
      case Relation::reshape:  // neither shape's innermost extent breaks a group
        return Neighbours::side_by_side;
      case Relation::slice: {
        const auto& slice = ir::attr<ir::SliceAttr>(node);
        while (width_ > 1 && !is_multiple(slice.starts[inner])) width_ /= 2;
        return slice.strides[inner] == 1 && innermost(from) == inner ? Neighbours::side_by_side
                                                                     : Neighbours::apart;
      }
      case Relation::gather: {
        // The dims of operand 0 after the axis are the last of the result's; indices are the same for them.
        const auto axis = static_cast<std::size_t>(ir::attr<ir::AxisAttr>(node).axis);
        const auto rank = static_cast<std::size_t>(graph_[node.operands[1]].type.rank());
        if (inner < axis + rank) return Neighbours::apart;
        if (operand == 1) return Neighbours::same;
        return innermost(from) == inner - rank + 1 ? Neighbours::side_by_side : Neighbours::apart;
      }
      default:
        return Neighbours::apart;
    }
  }

  const ir::Graph& graph_;
  const std::int64_t walked_;
  const bool tested_;
  const std::vector<NodeId>& inputs_;  // in graph order
  std::vector<Dim> asked_;
  std::unordered_set<NodeId> seen_;
  int width_ = most_vector_elements;
};

}  // namespace

namespace {

/// What neighbours in a phase that walks along memory need; none where they lie apart.
std::optional<Walker> walked(const ir::Graph& graph, const Phase& phase) {
  const ir::Node& leader = graph[dominant(phase)];
  const Relation relation = info(leader.op).relation;
  if (phase.in_place || relation == Relation::scan) return std::nullopt;
  const bool reduces = relation == Relation::reduce;
  if (reduces && !loop_shape(graph, phase).inner) return std::nullopt;
  const std::vector<Dim>& dims = (reduces ? graph[leader.operands[0]] : leader).type.dims;
  Walker walker(graph, phase, product(dims).hint(), true);
  const std::vector<NodeId>& results = phase.results;
  for (const Stage& stage : phase.stages) {
    if (!walks(stage.form)) continue;
    const bool stores = stage.form == Stage::Form::element;
    if (stores && std::find(results.begin(), results.end(), stage.root) != results.end())
      walker.narrow(graph[stage.root], true);
    if (!walker.visit(element_of(graph, stage))) return std::nullopt;
  }
  return walker;
}

}  // namespace

int widest_vector(const ir::Graph& graph, const Phase& phase) {
  const std::optional<Walker> walker = walked(graph, phase);
  return walker ? walker->width() : 1;
}

int usual_vector(const ir::Graph& graph, const Phase& phase) {
  const std::optional<Walker> walker = walked(graph, phase);
  if (!walker) return 1;
  const auto holds = [&](int vector) {
    const std::vector<Dim> tested = walker->symbols_to_test(vector);
    return std::all_of(tested.begin(), tested.end(),
                       [&](const Dim& symbol) { return symbol.hint() % vector == 0; });
  };
  int vector = walker->width();
  while (vector > 1 && !holds(vector)) vector /= 2;
  return vector;
}

std::vector<Dim> symbols_to_test(const ir::Graph& graph, const Phase& phase, int vector) {
  const bool late = vector > 1 && !graph.symbols.empty();
  const std::optional<Walker> walker = late ? walked(graph, phase) : std::nullopt;
  return walker ? walker->symbols_to_test(vector) : std::vector<Dim>();
}

int widest_row_vector(const ir::Graph& graph, const Phase& phase) {
  const ir::Node& leader = graph[dominant(phase)];
  if (info(leader.op).relation != Relation::reduce || loop_shape(graph, phase).inner) return 1;
  Walker walker(graph, phase, product(graph[leader.operands[0]].type.dims).hint());
  for (const Stage& stage : phase.stages) {
    if (!walks(stage.form)) continue;
    // What walks the rows again would need the totals of all rows in one loop.
    if (stage.form != Stage::Form::inner_reduce || stage.pass > 0 || stage.maximum) return 1;
    if (!walker.visit(element_of(graph, stage))) return 1;
  }
  return walker.width();
}

int tile_vector(const ir::Graph& graph, const Phase& phase, const Transposed& values) {
  constexpr int bytes_of_lane = 4;  // the lanes of a warp then access a whole line
  Walker walker(graph, phase, product(graph[phase.root].type.dims).hint());
  std::size_t bytes = bytes_of_lane;
  for (const NodeId input : phase.inputs) bytes = std::min(bytes, size_of(graph[input].type.dtype));
  for (const NodeId permute : values.nodes) walker.stop_at(permute);
  for (const NodeId result : phase.results) {
    bytes = std::min(bytes, size_of(graph[result].type.dtype));
    walker.narrow(graph[result], true);
  }
  for (const Stage& stage : phase.stages) {
    if (!walker.visit(stage.root)) return 1;
  }
  for (const NodeId permute : values.nodes) {
    if (!walker.visit(graph[permute].operands[0])) return 1;
  }
  return std::min(walker.width(), bytes_of_lane / static_cast<int>(bytes));
}

}  // namespace fuse::schedule
