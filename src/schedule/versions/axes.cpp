// SPDX-License-Identifier: Apache-2.0
#include "schedule/versions/axes.hpp"

#include <algorithm>
#include <cmath>
#include <fuse/error.hpp>
#include <limits>
#include <set>

#include "base/divide_up.hpp"
#include "schedule/segments/loop_shape.hpp"

namespace fuse::schedule {
namespace {

constexpr std::size_t most_cells = 13;
/// Of two bytes each, they would fill the memory of the largest devices.
constexpr double most_elements_of_device = 5e10;

using Symbols = std::vector<const ir::Symbol*>;

void add_symbols(const Dim& dim, std::set<std::string>& names) {
  for (const Dim& symbol : dim.symbols()) names.emplace(symbol.name());
}

/// The upper ends of a symbol's cells: powers of `step`, from `first` on.
std::vector<std::int64_t> powers(const ir::Symbol& symbol, std::int64_t first, std::int64_t step,
                                 std::size_t most) {
  std::vector<std::int64_t> ends;
  for (std::int64_t end = first; end < symbol.range.max && end <= std::int64_t{1} << 58; end *= step) {
    if (end >= symbol.range.min) ends.push_back(end);
  }
  // Beyond so many elements, one cell is enough.
  while (ends.size() + 1 > most) ends.pop_back();
  ends.push_back(symbol.range.max);
  return ends;
}

std::vector<std::int64_t> powers_of_4(const ir::Symbol& symbol) { return powers(symbol, 1, 4, most_cells); }

std::vector<std::int64_t> equal_steps(const ir::Symbol& symbol, std::size_t cells) {
  const auto low = static_cast<double>(std::max<std::int64_t>(1, symbol.range.min));
  const auto high = static_cast<double>(symbol.range.max);
  std::vector<std::int64_t> ends;
  for (std::size_t i = 1; i < cells; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(cells);
    const auto end = static_cast<std::int64_t>(low * std::pow(high / low, part));
    ends.push_back(std::max(end, ends.empty() ? symbol.range.min : ends.back()));
  }
  ends.push_back(symbol.range.max);
  return ends;
}

/// What divides the extents that applications have most often. Where vectors do not divide one, kernels test
/// it.
std::int64_t usual_factor(const ir::Symbol& symbol, std::int64_t value) {
  constexpr std::int64_t usual = 16;
  const std::int64_t factor = std::max<std::int64_t>(1, symbol.factor);
  return value >= 4 * usual && usual % factor == 0 ? usual : factor;
}

/// An extent of 1 has loops of another form, and 0 has none.
std::int64_t in_cell(std::int64_t value, std::int64_t least, std::int64_t most) {
  return std::clamp(std::max<std::int64_t>(value, 2), std::max<std::int64_t>(least, 0),
                    std::max<std::int64_t>(most, 0));
}

/// The middle of a cell.
std::int64_t middle(const ir::Symbol& symbol, std::int64_t least, std::int64_t most) {
  const auto low = static_cast<double>(std::max<std::int64_t>(1, least));
  const auto value =
      static_cast<std::int64_t>(std::sqrt(low * static_cast<double>(std::max<std::int64_t>(1, most))));
  const std::int64_t factor = usual_factor(symbol, value);
  return in_cell(value / factor * factor, least, most);
}

std::int64_t usual_least(const ir::Symbol& symbol, std::int64_t least, std::int64_t most) {
  const std::int64_t factor = usual_factor(symbol, least);
  return in_cell(divide_up(std::max<std::int64_t>(least, 1), factor) * factor, least, most);
}

DimAxis without_symbols() {
  DimAxis axis;
  axis.most.push_back(1);
  axis.ranges.emplace_back();
  axis.least.emplace_back();
  return axis;
}

/// Gives the symbol a range in each cell. There is one end for each.
void add_symbol(DimAxis& axis, const ir::Symbol& symbol, const std::vector<std::int64_t>& ends) {
  axis.most.resize(ends.size(), 1);
  axis.ranges.resize(ends.size());
  axis.least.resize(ends.size());
  std::int64_t least = symbol.range.min;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    // A symbol of few values has one end in several cells.
    const std::int64_t from = std::min(least, ends[i]);
    axis.ranges[i][symbol.name] = {from, ends[i], middle(symbol, from, ends[i])};
    axis.least[i][symbol.name] = usual_least(symbol, from, ends[i]);
    if (__builtin_mul_overflow(axis.most[i], ends[i], &axis.most[i]))
      axis.most[i] = std::numeric_limits<std::int64_t>::max();
    least = std::min(ends[i] + 1, symbol.range.max);
  }
  axis.extent = axis.extent * Dim::symbol(symbol.name, symbol.range);
}

DimAxis axis_of(const Symbols& symbols) {
  if (symbols.empty()) return without_symbols();
  std::size_t cells = 1;
  for (const ir::Symbol* symbol : symbols) cells = std::max(cells, powers_of_4(*symbol).size());
  DimAxis axis;
  for (const ir::Symbol* symbol : symbols)
    add_symbol(axis, *symbol, symbols.size() == 1 ? powers_of_4(*symbol) : equal_steps(*symbol, cells));
  return axis;
}

/// What a side of an assumption may be: a number where all its symbols have values, and the range of a symbol
/// that has none. Of other expressions nothing is known.
DimRange possible(const Dim& side, const SymbolValues& values) {
  const std::vector<Dim> symbols = side.symbols();
  const bool known = std::all_of(symbols.begin(), symbols.end(), [&](const Dim& symbol) {
    return values.contains(std::string(symbol.name()));
  });
  if (!known && side.name().empty())
    return {.min = std::numeric_limits<std::int64_t>::min(), .max = std::numeric_limits<std::int64_t>::max()};
  if (!known) return {.min = side.min(), .max = side.max()};
  const std::int64_t value = value_of(side, values);
  return {.min = value, .max = value};
}

bool assumptions_hold(const ir::Graph& graph, const SymbolValues& values) {
  return std::all_of(graph.assumptions.begin(), graph.assumptions.end(), [&](const ir::Assumption& each) {
    const DimRange left = possible(each.relation.left, values), right = possible(each.relation.right, values);
    if (left.min == left.max && right.min == right.max) return each.relation.holds(left.min, right.min);
    if (each.relation.kind == DimRelation::Kind::divides) return true;
    const bool below = left.min <= right.max;
    if (each.relation.kind == DimRelation::Kind::one_or)
      return (left.min <= 1 && 1 <= left.max) || (below && right.min <= left.max);
    return each.relation.kind == DimRelation::Kind::at_most ? below : below && right.min <= left.max;
  });
}

}  // namespace

std::int64_t value_of(const Dim& dim, const SymbolValues& values) {
  if (dim.is_constant()) return dim.constant();
  return dim.evaluate([&](std::string_view name) { return values.at(std::string(name)); });
}

DimAxis axis_of_symbol(const ir::Symbol* symbol, std::int64_t step, std::size_t most_cells) {
  if (!symbol) return without_symbols();
  DimAxis axis;
  add_symbol(axis, *symbol, powers(*symbol, 1, step, most_cells));
  return axis;
}

std::array<DimAxis, 2> axes_of(const ir::Graph& graph, const Segment& segment) {
  std::set<std::string> in_rows, in_any;
  for (const Phase& phase : segment.phases) {
    const ir::Relation relation = ir::info(graph[dominant(phase)].op).relation;
    if (relation != ir::Relation::reduce && relation != ir::Relation::scan) continue;
    for (const Dim& dim : loop_shape(graph, phase).reduced) add_symbols(dim, in_rows);
  }
  for (const std::vector<ir::NodeId>* ids : {&segment.nodes, &segment.inputs}) {
    for (const ir::NodeId id : *ids) {
      for (const Dim& dim : graph[id].type.dims) add_symbols(dim, in_any);
      for (const Dim& dim : ir::dims_of(graph[id].attr)) add_symbols(dim, in_any);
    }
  }
  Symbols rows, others;
  for (const ir::Symbol& symbol : graph.symbols) {
    if (in_any.contains(symbol.name) && symbol.range.min < symbol.range.max)
      (in_rows.contains(symbol.name) ? rows : others).push_back(&symbol);
  }
  if (others.empty() && rows.size() > 1) {  // rows and columns are reduced: each has an axis of its own
    others.push_back(rows.front());
    rows.erase(rows.begin());
  }
  return {axis_of(rows), axis_of(others)};
}

std::vector<Dim> value_sizes(const ir::Graph& graph) {
  const auto less = [](const Dim& a, const Dim& b) { return compare(a, b) < 0; };
  std::set<Dim, decltype(less)> sizes(less);
  for (const ir::Node& node : graph.nodes) {
    std::vector<Dim> dims =
        node.type.dims;  // an extent of 0 counts as 1, as in the type rules: strides multiply
    std::erase_if(dims, [](const Dim& dim) { return dim.is(0); });
    const Dim size = product(dims);
    if (!size.is_constant()) sizes.insert(size);
  }
  return {sizes.begin(), sizes.end()};
}

bool is_possible(const ir::Graph& graph, std::span<const Dim> sizes, const SymbolValues& values,
                 const SymbolValues& others) {
  SymbolValues all = values;
  all.insert(others.begin(), others.end());
  const auto fits = [&](const Dim& size) {
    return static_cast<double>(value_of(size, all)) <= most_elements_of_device;
  };
  try {
    return assumptions_hold(graph, values) && std::all_of(sizes.begin(), sizes.end(), fits);
  } catch (const Error&) {  // an extent that overflows
    return false;
  }
}

}  // namespace fuse::schedule
