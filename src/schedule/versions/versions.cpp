// SPDX-License-Identifier: Apache-2.0
#include "schedule/versions/versions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "analysis/facts.hpp"
#include "base/access.hpp"
#include "schedule/choosers/segment_cost.hpp"
#include "schedule/mapping/schedule.hpp"
#include "schedule/segments/transposed.hpp"
#include "schedule/versions/axes.hpp"
#include "schedule/versions/excess.hpp"
#include "schedule/versions/narrowed.hpp"
#include "schedule/versions/region_tree.hpp"
#include "schedule/versions/segment_part.hpp"

namespace fuse::schedule {
namespace {

ir::Graph with_hints(const ir::Graph& graph, const SymbolValues& values) {
  return with_ranges(graph, [&](const ir::Symbol& symbol) {
    DimRange range = symbol.range;
    if (const auto found = values.find(symbol.name); found != values.end())
      range.hint = std::clamp(found->second, range.min, range.max);
    return range;
  });
}

/// Dims of a cell at which candidates are compared.
struct Point {
  SymbolValues dims{};
  double best = 0;  ///< the seconds of the best candidate
};

/// One cell of both axes that dims can be in.
struct Cell {
  std::size_t number = 0;
  SymbolValues middle{};
  SymbolValues all{};  ///< and the values of all other symbols of the graph, the least they have
  ir::Graph graph{};   ///< the part's, under the cell's ranges
  /// The middle, and the least dims, where rows are shorter than a kernel for the middle expects.
  std::vector<Point> points{};
};

class VersionFinder {
 public:
  VersionFinder(SegmentPart part, std::span<const Dim> sizes, const Chooser& chooser, const Target& target,
                const VersionOptions& options)
      : part_(std::move(part)),
        sizes_(sizes),
        chooser_(chooser),
        target_(target),
        options_(options),
        axes_(axes_of(part_.graph, part_.segment)) {}

  Versions run() {
    Versions single;
    std::optional<Chosen> declared = chosen_by(chooser_, part_.graph, part_.segment, target_);
    if (!declared) return single;
    candidates_.push_back(declared->choices);
    single.each.push_back({.chosen = std::move(*declared)});
    if (axes_[0].cells() * axes_[1].cells() < 2 || options_.most < 2) return single;
    make_cells();
    for (const Cell& cell : cells_) {
      for (const Point& point : cell.points)
        add_candidate(chooser_(with_hints(cell.graph, point.dims), part_.segment, target_));
    }
    const CellGrid grid = this->grid();
    for (const std::vector<DimRelation>& first : {index_relations(), std::vector<DimRelation>()}) {
      if (!take_cells(first)) continue;
      if (std::optional<Versions> found = best_versions(grid, first)) return std::move(*found);
    }
    return single;
  }

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  SymbolValues middle_of(std::size_t i, std::size_t j) const {
    SymbolValues values;
    for (const SymbolRanges* ranges : {&axes_[0].ranges[i], &axes_[1].ranges[j]})
      for (const auto& [name, range] : *ranges) values[name] = range.hint;
    return values;
  }

  SymbolValues least_of(std::size_t i, std::size_t j) const {
    SymbolValues values = axes_[0].least[i];
    values.insert(axes_[1].least[j].begin(), axes_[1].least[j].end());
    return values;
  }

  void make_cells() {
    for (std::size_t i = 0; i < axes_[0].cells(); ++i) {
      for (std::size_t j = 0; j < axes_[1].cells(); ++j) {
        Cell cell{.number = i * axes_[1].cells() + j, .middle = middle_of(i, j)};
        cell.all = cell.middle;
        for (const ir::Symbol& symbol : part_.graph.symbols)
          cell.all.try_emplace(symbol.name, symbol.range.min);
        if (!is_possible(part_.graph, sizes_, cell.middle, cell.all)) continue;
        cell.graph = with_ranges(part_.graph, [&](const ir::Symbol& symbol) {
          for (const SymbolRanges* ranges : {&axes_[0].ranges[i], &axes_[1].ranges[j]}) {
            if (const auto found = ranges->find(symbol.name); found != ranges->end()) return found->second;
          }
          return symbol.range;
        });
        cell.points.push_back({.dims = cell.middle});
        if (SymbolValues least = least_of(i, j); least != cell.middle) {
          SymbolValues all = cell.all;
          for (const auto& [name, value] : least) all[name] = value;
          if (is_possible(part_.graph, sizes_, least, all)) cell.points.push_back({.dims = std::move(least)});
        }
        cells_.push_back(std::move(cell));
      }
    }
  }

  /// Only cells count in whose middle the relations hold. False where they say nothing, or of none.
  bool take_cells(const std::vector<DimRelation>& relations) {
    taken_.clear();
    for (const Cell& cell : cells_) {
      const bool holds = std::all_of(relations.begin(), relations.end(), [&](const DimRelation& each) {
        return each.holds(value_of(each.left, cell.all), value_of(each.right, cell.all));
      });
      if (holds) taken_.push_back(&cell);
    }
    return !taken_.empty();
  }

  /// Several versions, with these relations tested first; none where they do not pay, or where no dims can be
  /// in some region: facts together exclude what each of them allows, which some rounds of the solver may
  /// find and others may not.
  std::optional<Versions> best_versions(const CellGrid& grid, const std::vector<DimRelation>& first) const {
    try {
      std::optional<RegionTree> tree = best_tree_of(grid, first);
      if (!tree) return std::nullopt;
      const std::size_t regions = tree->regions.size();
      if (first.empty()) return regions < 2 ? std::nullopt : std::optional(versions(*tree, {}));
      Versions narrow = versions(*tree, first);
      const bool gains = wide_indices(narrow, regions) < wide_indices(versions(*tree, {}), regions);
      return gains ? std::optional(std::move(narrow)) : std::nullopt;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::contradiction) throw;
      return std::nullopt;
    }
  }

  /// None where no candidate can run in some region.
  std::optional<RegionTree> best_tree_of(CellGrid grid, const std::vector<DimRelation>& first) const {
    const int most = options_.most - (first.empty() ? 0 : 1);
    std::vector<bool> counts(grid.cells[0] * grid.cells[1]);
    for (const Cell* cell : taken_) counts[cell->number] = true;
    for (std::vector<double>& excess : grid.excess) {
      for (std::size_t i = 0; i < excess.size(); ++i)
        if (!counts[i]) excess[i] = 0;
    }
    for (;;) {
      RegionTree tree = best_tree(grid, most, options_.price);
      const std::size_t forbidden = choose_again(tree, first, grid);
      if (forbidden == none) return std::nullopt;
      if (forbidden == 0) return tree;
    }
  }

  void add_candidate(std::optional<KernelChoices> choices) {
    if (choices && std::find(candidates_.begin(), candidates_.end(), *choices) == candidates_.end())
      candidates_.push_back(std::move(*choices));
  }

  double seconds_of(const ir::Graph& graph, const KernelChoices& choices) const {
    return seconds_of_any(graph, part_.segment, choices, target_);
  }

  /// Whether the cost model can say what the choices cost in the middle of a cell.
  bool has_cost(const ir::Graph& cell, const KernelChoices& choices) const {
    if (part_.segment.regional()) return misfit(cell, part_.segment, choices, target_).empty();
    for (std::size_t i = 0; i < choices.phases.size(); ++i) {
      if (walks_tiles(choices.phases[i]) && !transposed(cell, part_.segment.phases[i])) return false;
    }
    return true;
  }

  /// What each candidate takes in each cell, beyond the best one there.
  CellGrid grid() {
    CellGrid grid{.cells = {axes_[0].cells(), axes_[1].cells()}};
    grid.excess.assign(candidates_.size(), std::vector<double>(grid.cells[0] * grid.cells[1], 0.0));
    std::vector<double> seconds(candidates_.size());
    for (Cell& cell : cells_) {
      for (Point& point : cell.points) {
        const ir::Graph at = with_hints(cell.graph, point.dims);
        point.best = std::numeric_limits<double>::infinity();
        for (std::size_t c = 0; c < candidates_.size(); ++c) {
          const bool known = has_cost(at, candidates_[c]);
          seconds[c] = known ? seconds_of(at, candidates_[c]) : 0;
          if (known) point.best = std::min(point.best, seconds[c]);
        }
        for (std::size_t c = 0; c < candidates_.size(); ++c) {
          const double excess = seconds[c] == 0 ? unknown_excess : excess_of(seconds[c] / point.best);
          grid.excess[c][cell.number] = std::max(grid.excess[c][cell.number], excess);
        }
      }
    }
    return grid;
  }

  /// What makes indices of 32 bits suffice, where the ranges do not: bounds of symbols, and of elements. What
  /// a block walks beyond an end is left free.
  std::vector<DimRelation> index_relations() const {
    constexpr std::int64_t most = (std::int64_t{1} << 31) - (std::int64_t{1} << 22),
                           most_of_symbol = most / 2;
    constexpr std::size_t most_relations = 6;
    std::vector<DimRelation> relations;
    const auto add = [&](const Dim& dim, std::int64_t bound) {
      if (dim.max() <= bound) return;
      const DimRelation relation = at_most(dim, bound);
      if (std::find(relations.begin(), relations.end(), relation) == relations.end())
        relations.push_back(relation);
    };
    std::vector<ir::NodeId> ids = part_.segment.nodes;
    ids.insert(ids.end(), part_.segment.inputs.begin(), part_.segment.inputs.end());
    for (const ir::NodeId id : ids) {
      for (const Dim& dim : part_.graph[id].type.dims)
        for (const Dim& symbol : dim.symbols()) add(symbol, most_of_symbol);
    }
    for (const ir::NodeId id : ids) {
      const Dim size = product(part_.graph[id].type.dims);
      if (size.name().empty()) add(size, most);  // a symbol alone has its bound
    }
    if (relations.size() > most_relations) relations.clear();
    return relations;
  }

  /// The kernels of the first so many versions whose indices need more than 32 bits.
  std::size_t wide_indices(const Versions& versions, std::size_t count) const {
    std::size_t wide = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Version& version = versions.each[i];
      const ir::Graph graph = graph_of(part_.graph, version);
      for (const KernelSchedule& kernel :
           make_schedule(graph, part_.segment, version.chosen.choices, target_, analysis::facts_of(graph))
               .kernels)
        wide += kernel.index_type == i64;
    }
    return wide;
  }

  /// A region has longer rows than each of its cells: what registers held there, they may not hold here. And
  /// the relations that are tested first bound symbols further. So the best candidates of each region are
  /// compared once more, under all facts of its version. Where none of them can run,
  /// they are forbidden in the cells that are too much for them; gives the number of these, and `none` where
  /// there are no others.
  std::size_t choose_again(RegionTree& tree, const std::vector<DimRelation>& first, CellGrid& grid) const {
    for (const RegionTree::Region& region : tree.regions) {
      const bool occurs =
          std::any_of(taken_.begin(), taken_.end(), [&](const Cell* cell) { return has(region, *cell); });
      if (!occurs) return none;
    }
    const Versions made = versions(tree, first);
    std::size_t forbidden = 0;
    for (std::size_t i = 0; i < tree.regions.size(); ++i) {
      RegionTree::Region& region = tree.regions[i];
      const ir::Graph graph = narrowed(part_.graph, made.each[i].conditions);
      double least = std::numeric_limits<double>::infinity();
      const std::vector<std::size_t> tried = best_of(region, grid);
      for (const std::size_t candidate : tried) {
        const ir::Graph middle =
            with_hints(graph, candidate > 0 ? middle_cell(region).middle : SymbolValues());
        if (!misfit(middle, part_.segment, candidates_[candidate], target_).empty()) continue;
        const double sum = excess_in(region, graph, candidate);
        if (sum < least) least = sum, region.candidate = candidate;
      }
      if (least < std::numeric_limits<double>::infinity()) continue;
      std::size_t here = 0;
      for (const std::size_t candidate : tried) here += forbid(region, candidate, grid);
      if (here == 0) return none;
      forbidden += here;
    }
    return forbidden;
  }

  /// The candidates with the least excess in a region, the best first.
  std::vector<std::size_t> best_of(const RegionTree::Region& region, const CellGrid& grid) const {
    constexpr std::size_t most = 6;
    std::vector<std::pair<double, std::size_t>> sums;
    for (std::size_t candidate = 0; candidate < candidates_.size(); ++candidate) {
      double sum = 0;
      for (const Cell* cell : taken_)
        if (has(region, *cell)) sum += grid.excess[candidate][cell->number];
      sums.emplace_back(sum, candidate);
    }
    std::sort(sums.begin(), sums.end());
    if (sums.size() > most) sums.resize(most);
    std::vector<std::size_t> best;
    for (const auto& [sum, candidate] : sums) best.push_back(candidate);
    return best;
  }

  /// What the candidate takes in the cells of a region, by kernels that are made for the whole region.
  double excess_in(const RegionTree::Region& region, const ir::Graph& graph, std::size_t candidate) const {
    double sum = 0;
    for (const Cell* cell : taken_) {
      if (!has(region, *cell)) continue;
      double worst = 0;
      for (const Point& point : cell->points) {
        const ir::Graph at = with_hints(graph, point.dims);
        worst = std::max(worst,
                         has_cost(at, candidates_[candidate])
                             ? excess_of(std::max(1.0, seconds_of(at, candidates_[candidate]) / point.best))
                             : unknown_excess);
      }
      sum += worst;
    }
    return sum;
  }

  /// Gives the number of cells out of which the candidate is taken.
  std::size_t forbid(const RegionTree::Region& region, std::size_t candidate, CellGrid& grid) const {
    const std::size_t columns = axes_[1].cells();
    std::vector<std::size_t> alone, edge;  // cells that are too much alone, and the largest of the region
    for (const Cell* cell : taken_) {
      if (!has(region, *cell) || grid.excess[candidate][cell->number] == forbidden_excess) continue;
      if (!misfit(cell->graph, part_.segment, candidates_[candidate], target_).empty())
        alone.push_back(cell->number);
      if (cell->number / columns == region.last[0] || cell->number % columns == region.last[1])
        edge.push_back(cell->number);
    }
    const std::vector<std::size_t>& cells = alone.empty() ? edge : alone;
    for (const std::size_t cell : cells) grid.excess[candidate][cell] = forbidden_excess;
    return cells.size();
  }

  /// A version for each region of the tree. With relations, these are tested first; where one does not hold,
  /// the last version is taken, that of the declared hints.
  Versions versions(const RegionTree& tree, const std::vector<DimRelation>& first) const {
    Versions result;
    const auto before = static_cast<std::uint32_t>(first.size());
    const auto regions = static_cast<std::uint32_t>(tree.regions.size());
    result.table.versions = regions + (first.empty() ? 0 : 1);
    for (std::uint32_t i = 0; i < before; ++i) {
      const bool is_last = i + 1 == before && tree.cuts.empty();
      result.table.tests.push_back({first[i], {is_last, is_last ? 0 : i + 1}, {true, regions}});
    }
    const auto moved = [&](VersionTable::Branch branch) {
      return VersionTable::Branch{branch.ends, branch.to + (branch.ends ? 0 : before)};
    };
    for (const RegionTree::Cut& cut : tree.cuts) {
      const DimAxis& axis = axes_[cut.axis];
      result.table.tests.push_back(
          {at_most(axis.extent, axis.most[cut.last]), moved(cut.yes), moved(cut.no)});
    }
    std::vector<std::vector<DimRelation>> conditions = conditions_of(result.table);
    for (std::size_t i = 0; i < tree.regions.size(); ++i) {
      const RegionTree::Region& region = tree.regions[i];
      Version& version = result.each.emplace_back();
      version.conditions = std::move(conditions[i]);
      if (region.candidate > 0) version.hints = middle_cell(region).middle;  // else the declared ones
      const ir::Graph graph = graph_of(part_.graph, version);
      const auto inside =
          std::count_if(taken_.begin(), taken_.end(), [&](const Cell* cell) { return has(region, *cell); });
      version.share = static_cast<double>(inside) / static_cast<double>(cells_.size());
      version.chosen.choices = candidates_[region.candidate];
      version.chosen.seconds = segment_seconds(graph, part_.segment, version.chosen.choices, target_);
    }
    if (!first.empty()) {
      Version& rest = result.each.emplace_back();
      rest.share = 1 - static_cast<double>(taken_.size()) / static_cast<double>(cells_.size());
      rest.chosen.choices = candidates_[0];
      rest.chosen.seconds = segment_seconds(part_.graph, part_.segment, candidates_[0], target_);
    }
    return result;
  }

  bool has(const RegionTree::Region& region, const Cell& cell) const {
    const std::size_t columns = axes_[1].cells(), i = cell.number / columns, j = cell.number % columns;
    return region.first[0] <= i && i <= region.last[0] && region.first[1] <= j && j <= region.last[1];
  }

  /// The cell in the middle of those that dims of the region can be in.
  const Cell& middle_cell(const RegionTree::Region& region) const {
    std::vector<const Cell*> inside;
    for (const Cell* cell : taken_) {
      if (has(region, *cell)) inside.push_back(cell);
    }
    return *inside.at(inside.size() / 2);
  }

  const SegmentPart part_;
  const std::span<const Dim> sizes_;
  const Chooser& chooser_;
  const Target& target_;
  const VersionOptions& options_;
  const std::array<DimAxis, 2> axes_;
  std::vector<Cell> cells_;
  std::vector<const Cell*> taken_;  // those that count
  std::vector<KernelChoices> candidates_;
};

}  // namespace

ir::Graph graph_of(const ir::Graph& graph, const Version& version) {
  if (version.conditions.empty() && version.hints.empty()) return graph;
  return with_hints(narrowed(graph, version.conditions), version.hints);
}

std::string facts_text(const Version& version) {
  std::string text;
  for (const DimRelation& relation : version.conditions) text += relation.to_string() + ';';
  for (const auto& [name, value] : version.hints) text += fmt::format(" {} {}", name, value);
  return text;
}

Versions versions_of(const ir::Graph& graph, const Segment& segment, std::span<const Dim> sizes,
                     const Chooser& chooser, const Target& target, const VersionOptions& options) {
  return VersionFinder(part_of(graph, segment), sizes, chooser, target, options).run();
}

}  // namespace fuse::schedule
