// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/access.hpp"
#include "base/quoting.hpp"
#include "compile/builds/builds.hpp"
#include "compile/builds/extent_cases.hpp"
#include "ir/graph/attr.hpp"
#include "ir/graph/fixed_values.hpp"
#include "ir/graph/verify.hpp"
#include "os/parallel.hpp"
#include "passes/dead_code.hpp"
#include "schedule/choosers/segment_cost.hpp"
#include "schedule/segments/canonical.hpp"
#include "schedule/versions/axes.hpp"
#include "schedule/versions/excess.hpp"
#include "schedule/versions/narrowed.hpp"
#include "schedule/versions/region_tree.hpp"
#include "schedule/versions/segment_part.hpp"
#include "target/step_cost.hpp"

namespace fuse {
namespace {

using schedule::CellGrid;
using schedule::DimAxis;
using schedule::RegionTree;
using schedule::Segment;
using schedule::SymbolRanges;

/// Each cell is planned, each different cut judged in each cell: a graph of many ops has fewer cells.
constexpr std::size_t most_planned_ops = 12'000;
constexpr std::int64_t steps[] = {4, 16, 64};  // of the extents, from cell to cell
constexpr std::size_t most_cells = 12;

/// A cut of the graph, and what is judged of it: each form of its kernels once.
struct Cut {
  std::set<std::string> fixed{};   ///< symbols whose one value it relies on
  schedule::SymbolValues hints{};  ///< that it was planned for; none: those declared
  Outline outline{};
  struct Part {
    schedule::SegmentPart of{};
    double times = 1;  ///< segments of this form
  };
  std::vector<Part> kernels{};
  std::vector<Segment> others{};  ///< GEMMs and users' kernels
};

/// What is cut, without extents: equal texts, equal cuts.
std::string cut_text(const Outline& outline) {
  std::string text;
  for (const ir::Node& node : outline.graph.nodes)
    text += fmt::format("{}({});", to_string(node.op), fmt::join(node.operands, " "));
  for (const Segment& segment : outline.partition.segments)
    text += fmt::format("\n{} {} [{}]", to_string(segment.kind), static_cast<int>(segment.between),
                        fmt::join(segment.nodes, " "));
  return text;
}

/// Whether a GEMM reads what follows from parameters alone, of which one has symbols in the whole graph: with
/// the facts of the region it would be packed, and packed memory is the same for all dims.
bool packs_symbolic(const ir::Graph& whole, const ir::Graph& of_region) {
  std::set<std::string> symbolic;
  for (const ir::Node& node : whole.nodes) {
    if (node.op == ir::Op::parameter && !product(node.type.dims).is_constant())
      symbolic.insert(ir::attr<ir::NameAttr>(node).name);
  }
  if (symbolic.empty()) return false;
  const std::vector<bool> fixed = ir::fixed_values(of_region);
  std::vector<bool> reads(of_region.nodes.size());
  for (ir::NodeId id = 0; id < of_region.nodes.size(); ++id) {
    const ir::Node& node = of_region[id];
    const auto any_operand = [&](const auto& has) {
      return std::any_of(node.operands.begin(), node.operands.end(), has);
    };
    reads[id] = node.op == ir::Op::parameter
                    ? symbolic.contains(ir::attr<ir::NameAttr>(node).name)
                    : any_operand([&](ir::NodeId operand) { return reads[operand]; });
    const auto is_packed = [&](ir::NodeId operand) {
      return fixed[operand] && reads[operand] && of_region[operand].op != ir::Op::parameter;
    };
    if (ir::info(node.op).relation == ir::Relation::contraction && any_operand(is_packed)) return true;
  }
  return false;
}

class RegionFinder {
 public:
  RegionFinder(const ir::Graph& graph, const Target& target, const PipelineOptions& options)
      : graph_(graph),
        target_(target),
        options_(untimed(options)),
        chooser_(options.chooser ? options.chooser
                                 : schedule::chooser_of(options.partition, options.designs)) {}

  /// `most`: builds.
  schedule::Versions run(int most) {
    schedule::Versions single{.each = {{}}};
    make_axes();
    if (axes_[0].cells() * axes_[1].cells() < 2) return single;
    make_cells();
    make_cuts();
    if (cuts_.size() < 2) return single;
    const auto tree_of = [&](const CellGrid& grid) {
      return schedule::best_tree(grid, most, options_.builds.price);
    };
    // The first cut is made in any case. It runs at the hints that were declared, and somewhere without them.
    CellGrid grid = this->grid();
    if (!has_hints()) {
      const RegionTree free = tree_of(grid);
      const bool has_first = std::any_of(free.regions.begin(), free.regions.end(),
                                         [](const RegionTree::Region& each) { return each.candidate == 0; });
      if (has_first) return versions_of(free);
    }
    for (std::size_t cut = 1; cut < cuts_.size(); ++cut)
      grid.excess[cut][declared_cell()] = schedule::forbidden_excess;
    return versions_of(tree_of(grid));
  }

 private:
  /// Outlines are made on several threads, and none of them is a stage of what is compiled.
  static PipelineOptions untimed(PipelineOptions options) {
    options.timed = {};
    return options;
  }

  struct Cell {
    std::array<std::size_t, 2> at{};
    SymbolRanges ranges{};
    schedule::SymbolValues middle{};
  };

  /// The two symbols that most values have, each along an axis of its own.
  void make_axes() {
    std::map<std::string, std::size_t> uses;
    for (const ir::Node& node : graph_.nodes) {
      for (const Dim& dim : node.type.dims)
        for (const Dim& symbol : dim.symbols()) ++uses[std::string(symbol.name())];
    }
    std::vector<const ir::Symbol*> symbols;
    for (const ir::Symbol& symbol : graph_.symbols) {
      if (symbol.range.min < symbol.range.max && uses.contains(symbol.name)) symbols.push_back(&symbol);
    }
    std::stable_sort(symbols.begin(), symbols.end(),
                     [&](const ir::Symbol* a, const ir::Symbol* b) { return uses[a->name] > uses[b->name]; });
    const std::size_t planned = most_planned_ops / std::max<std::size_t>(1, graph_.nodes.size());
    const auto make = [&](std::int64_t step, std::size_t most) {
      for (std::size_t i = 0; i < 2; ++i)
        axes_[i] = schedule::axis_of_symbol(i < symbols.size() ? symbols[i] : nullptr, step, most);
      return axes_[0].cells() * axes_[1].cells() <= planned;
    };
    for (const std::int64_t step : steps)
      if (make(step, most_cells)) return;
    if (make(steps[0], 2)) return;  // 1, and all others
    symbols.clear();
    make(steps[0], 1);
  }

  void make_cells() {
    const std::vector<Dim> sizes = schedule::value_sizes(graph_);
    for (std::size_t i = 0; i < axes_[0].cells(); ++i) {
      for (std::size_t j = 0; j < axes_[1].cells(); ++j) {
        Cell cell{.at = {i, j}, .ranges = axes_[0].ranges[i]};
        cell.ranges.insert(axes_[1].ranges[j].begin(), axes_[1].ranges[j].end());
        for (const auto& [name, range] : cell.ranges) cell.middle[name] = range.hint;
        schedule::SymbolValues all = cell.middle;
        for (const ir::Symbol& symbol : graph_.symbols) all.try_emplace(symbol.name, symbol.range.min);
        if (schedule::is_possible(graph_, sizes, cell.middle, all)) cells_.push_back(std::move(cell));
      }
    }
    // Of equal cuts the first is kept: that which relies on fewer symbols.
    std::stable_sort(cells_.begin(), cells_.end(),
                     [](const Cell& a, const Cell& b) { return fixed_in(a).size() < fixed_in(b).size(); });
  }

  static std::set<std::string> fixed_in(const Cell& cell) {
    std::set<std::string> fixed;
    for (const auto& [name, range] : cell.ranges)
      if (range.min == range.max) fixed.insert(name);
    return fixed;
  }

  /// The graph for the dims of a cell. What is made of it is right for all dims, but for those symbols that
  /// have one value in the cell: it relies on these.
  ir::Graph planned_in(const Cell& cell, const std::set<std::string>& fixed) const {
    const ir::Graph graph = schedule::with_ranges(graph_, [&](const ir::Symbol& symbol) {
      const auto found = cell.ranges.find(symbol.name);
      if (found == cell.ranges.end()) return symbol.range;
      return DimRange{symbol.range.min, symbol.range.max, found->second.hint};
    });
    std::vector<DimRelation> facts;
    for (const ir::Symbol& symbol : graph.symbols) {
      if (!fixed.contains(symbol.name)) continue;
      const DimRange& range = cell.ranges.at(symbol.name);
      facts.push_back(at_most(Dim::symbol(symbol.name, symbol.range), range.max));
      facts.push_back(at_least(Dim::symbol(symbol.name, symbol.range), range.min));
    }
    return schedule::narrowed(graph, facts);
  }

  /// Of dims for which the graph makes no sense there is none: a slice may leave its operand.
  std::optional<Outline> outline(const std::function<ir::Graph()>& graph) const {
    try {
      const ir::Graph made = graph();
      ir::verify(ir::dead_code(made), ErrorKind::user);
      return outline_of(made, target_, options_);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::user) throw;
      return std::nullopt;
    }
  }

  /// The cut for the declared hints, then those of the cells that differ. Without the first there are none.
  void make_cuts() {
    const std::optional<Outline> declared = outline([&] { return graph_; });
    if (!declared) return;
    add_cut({}, {}, *declared);
    std::vector<std::optional<Outline>> outlines(cells_.size());
    parallel_for(options_.threads, cells_.size(), [&](std::size_t i) {
      outlines[i] = outline([&] { return planned_in(cells_[i], fixed_in(cells_[i])); });
    });
    for (std::size_t i = 0; i < cells_.size(); ++i)
      if (outlines[i]) add_cut(fixed_in(cells_[i]), cells_[i].middle, *outlines[i]);
  }

  void add_cut(std::set<std::string> fixed, schedule::SymbolValues hints, const Outline& outline) {
    if (!texts_.insert(cut_text(outline)).second) return;
    cuts_.push_back(std::make_unique<Cut>(cut_of(std::move(fixed), outline)));
    cuts_.back()->hints = std::move(hints);
  }

  static Cut cut_of(std::set<std::string> fixed, Outline outline) {
    Cut cut{.fixed = std::move(fixed), .outline = std::move(outline)};
    const std::vector<Segment>& segments = cut.outline.partition.segments;
    const schedule::EqualSegments equal =
        schedule::equal_segments(cut.outline.graph, segments, cut.outline.partition.storage);
    const std::vector<bool> once = ir::fixed_values(cut.outline.graph);  // no run computes it
    for (const std::uint32_t first : equal.first)
      cut.kernels.push_back({schedule::part_of(cut.outline.graph, segments[first]), 0});
    for (std::size_t i = 0; i < segments.size(); ++i) {
      if (once[segments[i].root]) continue;
      if (equal.form_of[i] != schedule::EqualSegments::none) ++cut.kernels[equal.form_of[i]].times;
      if (segments[i].kind != Segment::Kind::kernel) cut.others.push_back(segments[i]);
    }
    return cut;
  }

  static ir::Graph in_cell(const ir::Graph& graph, const Cell& cell) {
    return schedule::with_ranges(graph, [&](const ir::Symbol& symbol) {
      const auto found = cell.ranges.find(symbol.name);
      return found == cell.ranges.end() ? symbol.range : found->second;
    });
  }

  /// What a run takes in the middle of the cell, with the kernels that are best there; none where it cannot
  /// be run so.
  std::optional<double> seconds_in(const Cut& cut, const Cell& cell) const {
    for (const std::string& name : cut.fixed) {
      const auto found = cell.ranges.find(name);
      if (found == cell.ranges.end() || found->second.min != found->second.max) return std::nullopt;
    }
    double seconds = 0;
    for (const Cut::Part& part : cut.kernels) {
      if (part.times == 0) continue;
      const ir::Graph graph = in_cell(part.of.graph, cell);
      const Segment& segment = part.of.segment;
      const std::optional<schedule::Chosen> chosen = schedule::chosen_by(chooser_, graph, segment, target_);
      if (!chosen) return std::nullopt;
      seconds += part.times * schedule::seconds_of_any(graph, segment, chosen->choices, target_);
    }
    const ir::Graph graph = in_cell(cut.outline.graph, cell);
    for (const Segment& other : cut.others) {
      seconds += other.kind == Segment::Kind::gemm
                     ? gemm_seconds(cut, graph, other, cell)
                     : schedule::transfer_cost(moved(graph, other), target_).seconds;
    }
    return seconds;
  }

  static std::int64_t elements(const ir::Graph& graph, ir::NodeId id) {
    return product(graph[id].type.dims).hint();
  }
  static std::int64_t moved(const ir::Graph& graph, const Segment& segment) {
    std::int64_t bytes = 0;
    for (const std::vector<ir::NodeId>* ids : {&segment.inputs, &segment.results}) {
      for (const ir::NodeId id : *ids)
        bytes += elements(graph, id) * static_cast<std::int64_t>(size_of(graph[id].type.dtype));
    }
    return bytes;
  }

  /// Calls of the library that a GEMM takes: its operands or its result may lie in several groups of
  /// matrices.
  std::int64_t calls_of(const Cut& cut, const Segment& segment, ir::NodeId matmul, const Cell& cell) const {
    const schedule::Views& views = cut.outline.partition.views;
    Dim calls = 1;
    if (const auto found = views.gemms.find(matmul); found != views.gemms.end()) calls = found->second.calls;
    const auto view = views.of.find(segment.root);
    if (view != views.of.end() && view->second.layout) calls = view->second.layout->outer;
    if (calls.is(1)) return 1;
    schedule::SymbolValues values;
    for (const ir::Symbol& symbol : cut.outline.graph.symbols)
      values[symbol.name] = Dim::symbol(symbol.name, symbol.range).hint();
    for (const auto& [name, value] : cell.middle) values[name] = value;
    return schedule::value_of(calls, values);
  }

  double gemm_seconds(const Cut& cut, const ir::Graph& graph, const Segment& segment,
                      const Cell& cell) const {
    const auto found = std::find_if(segment.nodes.begin(), segment.nodes.end(), [&](ir::NodeId id) {
      return info(graph[id].op).relation == ir::Relation::contraction;
    });
    const ir::NodeId matmul = found == segment.nodes.end() ? segment.root : *found;
    const ir::Node& node = graph[matmul];
    const std::vector<Dim>&a = graph[node.operands[0]].type.dims, &c = node.type.dims;
    const bool transposed = ir::attr<ir::MatmulAttr>(node).transpose_a;
    const std::int64_t k = a[a.size() - (transposed ? 2 : 1)].hint();
    const schedule::StepCost cost =
        schedule::gemm_cost(moved(graph, segment), product({c.begin(), c.end() - 2}).hint(),
                            c[c.size() - 2].hint(), c.back().hint(), k, target_);
    const auto more = static_cast<double>(calls_of(cut, segment, matmul, cell) - 1);
    return cost.seconds + more * target_.launch_seconds;
  }

  CellGrid grid() const {
    CellGrid grid{.cells = {axes_[0].cells(), axes_[1].cells()}};
    grid.excess.assign(cuts_.size(), std::vector<double>(grid.cells[0] * grid.cells[1], 0.0));
    parallel_for(options_.threads, cells_.size(), [&](std::size_t at) {
      const Cell& cell = cells_[at];
      std::vector<std::optional<double>> seconds;
      double best = std::numeric_limits<double>::infinity();
      for (const std::unique_ptr<Cut>& cut : cuts_) {
        seconds.push_back(seconds_in(*cut, cell));
        if (seconds.back()) best = std::min(best, *seconds.back());
      }
      const std::size_t number = cell.at[0] * grid.cells[1] + cell.at[1];
      for (std::size_t i = 0; i < cuts_.size(); ++i) {
        const bool known = seconds[i].has_value() && best > 0;
        grid.excess[i][number] = known ? schedule::excess_of(*seconds[i] / best) : schedule::forbidden_excess;
      }
      if (!seconds[0]) grid.excess[0][number] = schedule::unknown_excess;
    });
    return grid;
  }

  /// The number of the cell of the hints, which are in the middle of the range where none are declared.
  std::size_t declared_cell() const {
    std::array<std::size_t, 2> at{};
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const std::int64_t hint = axes_[axis].extent.hint();
      while (at[axis] + 1 < axes_[axis].cells() && hint > axes_[axis].most[at[axis]]) ++at[axis];
    }
    return at[0] * axes_[1].cells() + at[1];
  }

  /// Whether the hints of all symbols along the axes are declared.
  bool has_hints() const {
    return std::all_of(axes_.begin(), axes_.end(), [&](const DimAxis& axis) {
      return std::all_of(axis.ranges[0].begin(), axis.ranges[0].end(), [&](const auto& range) {
        return std::any_of(graph_.symbols.begin(), graph_.symbols.end(), [&](const ir::Symbol& symbol) {
          return symbol.name == range.first && symbol.range.hint != 0;
        });
      });
    });
  }

  schedule::Versions versions_of(const RegionTree& tree) const {
    schedule::VersionTable all{.tests = {}, .versions = static_cast<std::uint32_t>(tree.regions.size())};
    for (const RegionTree::Cut& cut : tree.cuts) {
      const DimAxis& axis = axes_[cut.axis];
      all.tests.push_back({at_most(axis.extent, axis.most[cut.last]), cut.yes, cut.no});
    }
    std::map<std::size_t, std::vector<const Cell*>> cells_of;  // by cut
    for (const RegionTree::Region& region : tree.regions) {
      const std::vector<const Cell*> inside = cells_in(region);
      std::vector<const Cell*>& cells = cells_of[region.candidate];
      cells.insert(cells.end(), inside.begin(), inside.end());
    }
    std::set<std::size_t> kept;
    for (const auto& [cut, cells] : cells_of)
      if (cut > 0) kept.insert(cut);
    // Without a cut, others may have fewer facts.
    for (;;) {
      schedule::Versions made = builds_of(tree, all, kept, cells_of);
      std::size_t lost = 0;
      std::size_t number = 0;
      for (const std::size_t cut : kept)
        if (!gains(made.each[++number], cells_of[cut])) lost = cut;
      if (lost == 0) return kept.empty() ? schedule::Versions{.each = {{}}} : made;
      kept.erase(lost);
    }
  }

  /// A build for each of these cuts, where it is best; the first one elsewhere.
  schedule::Versions builds_of(const RegionTree& tree, const schedule::VersionTable& all,
                               const std::set<std::size_t>& kept,
                               const std::map<std::size_t, std::vector<const Cell*>>& cells_of) const {
    schedule::Versions result{.each = {{}}};
    std::map<std::size_t, std::uint32_t> build_of_cut;
    for (const std::size_t cut : kept) {
      build_of_cut[cut] = static_cast<std::uint32_t>(result.each.size());
      schedule::Version& version = result.each.emplace_back();
      version.hints = cuts_[cut]->hints;
      version.share = static_cast<double>(cells_of.at(cut).size()) / static_cast<double>(cells_.size());
      result.each[0].share -= version.share;
    }
    std::vector<std::uint32_t> build_of;  // for each region
    for (const RegionTree::Region& region : tree.regions) {
      const auto found = build_of_cut.find(region.candidate);
      build_of.push_back(found == build_of_cut.end() ? 0 : found->second);
    }
    result.table = schedule::renamed(all, build_of);
    const std::vector<std::vector<DimRelation>> conditions = schedule::conditions_of(result.table);
    for (std::size_t i = 1; i < result.each.size(); ++i) result.each[i].conditions = conditions[i];
    return result;
  }

  /// Whether what is made for the region is better there than the first cut: under other facts another cut
  /// may be made than was judged.
  bool gains(const schedule::Version& version, const std::vector<const Cell*>& inside) const {
    std::optional<Outline> outline = this->outline([&] { return schedule::graph_of(graph_, version); });
    if (!outline || packs_symbolic(graph_, outline->graph)) return false;
    const Cut cut = cut_of({}, std::move(*outline));
    double gain = 0;
    for (const Cell* cell : inside) {
      const std::optional<double> whole = seconds_in(*cuts_[0], *cell), here = seconds_in(cut, *cell);
      if (!here) return false;
      gain += !whole           ? schedule::unknown_excess
              : *whole > *here ? schedule::excess_of(*whole / *here)
                               : -schedule::excess_of(*here / *whole);
    }
    return gain > options_.builds.price;
  }

  static bool has(const RegionTree::Region& region, const Cell& cell) {
    return region.first[0] <= cell.at[0] && cell.at[0] <= region.last[0] && region.first[1] <= cell.at[1] &&
           cell.at[1] <= region.last[1];
  }
  std::vector<const Cell*> cells_in(const RegionTree::Region& region) const {
    std::vector<const Cell*> inside;
    for (const Cell& cell : cells_)
      if (has(region, cell)) inside.push_back(&cell);
    return inside;
  }

  const ir::Graph& graph_;
  const Target& target_;
  const PipelineOptions options_;
  const schedule::Chooser chooser_;
  std::array<DimAxis, 2> axes_{};
  std::vector<Cell> cells_;
  std::vector<std::unique_ptr<Cut>> cuts_;
  std::set<std::string> texts_;
};

/// Packed memory is the same for all dims: it cannot have a value whose extents differ from case to case.
void refuse_packed(const ir::Graph& graph, const ir::Graph& of_case) {
  if (!packs_symbolic(graph, of_case)) return;
  throw Error({.code = ErrorCode::unsupported,
               .message = fmt::format("a GEMM of graph {} reads what follows from a parameter whose extents "
                                      "are 1 or another, by the dims",
                                      in_quotes(graph.name)),
               .hint = "make it an input: what follows from parameters is packed once for all dims"});
}

/// The regions of all cases, each under the facts of its case.
schedule::Versions joined(const ExtentCases& cases, std::vector<schedule::Versions> regions) {
  schedule::Versions all{.table = cases.table, .each = {}};
  std::vector<schedule::VersionTable::Branch> starts;  // of each case
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const auto first_test = static_cast<std::uint32_t>(all.table.tests.size());
    const auto first_build = static_cast<std::uint32_t>(all.each.size());
    const auto moved = [&](schedule::VersionTable::Branch branch) {
      branch.to += branch.ends ? first_build : first_test;
      return branch;
    };
    starts.push_back(moved({.ends = regions[i].table.tests.empty(), .to = 0}));
    for (const schedule::VersionTable::Test& test : regions[i].table.tests)
      all.table.tests.push_back({test.relation, moved(test.yes), moved(test.no)});
    for (schedule::Version& version : regions[i].each) {
      version.conditions.insert(version.conditions.begin(), cases.facts[i].begin(), cases.facts[i].end());
      version.share /= static_cast<double>(regions.size());
      all.each.push_back(std::move(version));
    }
  }
  for (std::size_t i = 0; i < cases.table.tests.size(); ++i) {
    for (schedule::VersionTable::Branch* branch : {&all.table.tests[i].yes, &all.table.tests[i].no})
      if (branch->ends) *branch = starts[branch->to];
  }
  all.table.versions = static_cast<std::uint32_t>(all.each.size());
  return all;
}

/// Whether something else than costs says how the graph is compiled.
bool is_told(const PipelineOptions& options) {
  return options.record || options.decisions || options.choose || options.answer || options.insist ||
         options.place || options.fault || options.graph_passes >= 0 || options.kernel_passes >= 0;
}

}  // namespace

schedule::Versions build_regions(const ir::Graph& graph, const Target& target,
                                 const PipelineOptions& options) {
  schedule::Versions single{.each = {{}}};
  if (graph.symbols.empty() || is_told(options)) return single;
  const ExtentCases cases = extent_cases(graph);
  const int most = options.builds.most / static_cast<int>(cases.facts.size());  // for each case
  const auto regions_of = [&](const ir::Graph& of_case) {
    return most < 2 || is_cpu(target) ? single : RegionFinder(of_case, target, options).run(most);
  };
  if (cases.facts.size() == 1 && cases.facts[0].empty()) return regions_of(graph);
  std::vector<schedule::Versions> regions;
  for (const std::vector<DimRelation>& facts : cases.facts) {
    const ir::Graph of_case = schedule::narrowed(graph, facts);
    refuse_packed(graph, of_case);
    regions.push_back(regions_of(of_case));
  }
  return joined(cases, std::move(regions));
}

}  // namespace fuse
