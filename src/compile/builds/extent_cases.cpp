// SPDX-License-Identifier: Apache-2.0
#include "compile/builds/extent_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "analysis/facts.hpp"
#include "base/quoting.hpp"
#include "passes/dead_code.hpp"
#include "schedule/versions/narrowed.hpp"

namespace fuse {
namespace {

using Branch = schedule::VersionTable::Branch;
using Facts = std::vector<DimRelation>;

constexpr std::size_t most_cases = 16;

bool expands(const ir::Node& node) { return info(node.op).relation == ir::Relation::expand; }

/// An extent that the form of the graph leaves open: it is 1, or another one.
struct Open {
  ir::NodeId node = 0;  ///< the first that has it
  Dim extent{};
  std::vector<Dim> wholes{};  ///< what it is where it is not 1; none: it is always 1
};

std::optional<Open> first_open(const ir::Graph& graph) {
  const analysis::Facts facts = analysis::facts_of(graph);
  std::optional<Open> open;
  for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (!expands(graph[id])) continue;
    const std::vector<Dim>&from = graph[graph[id].operands[0]].type.dims, &to = graph[id].type.dims;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (facts.equal(from[i], to[i]) || facts.canonical(from[i]).is(1)) continue;
      if (!open) open = Open{.node = id, .extent = from[i], .wholes = {}};
      if (open->extent == from[i] && !facts.equal(from[i], 1)) open->wholes.push_back(to[i]);
    }
  }
  return open;
}

/// A test with what follows from it, or a case.
struct Tree {
  std::optional<DimRelation> test{};
  std::unique_ptr<Tree> yes{}, no{};
  Facts facts{};  ///< of a case
};

class CaseFinder {
 public:
  ExtentCases run(const ir::Graph& graph) {
    const std::unique_ptr<Tree> tree = grow(graph, {});
    if (!tree) refuse(graph, first_open(graph).value());
    add(*tree);
    result_.table.versions = static_cast<std::uint32_t>(result_.facts.size());
    return std::move(result_);
  }

 private:
  /// None: there are no such dims.
  static std::optional<ir::Graph> under(const ir::Graph& graph, const Facts& facts) {
    try {
      ir::Graph result = schedule::narrowed(graph, facts);
      static_cast<void>(analysis::facts_of(result));  // refuses extents that fit no dims
      return result;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::user) throw;
      return std::nullopt;
    }
  }

  /// The tests for dims that satisfy the facts, which the graph has; null: there are no such dims.
  std::unique_ptr<Tree> grow(const ir::Graph& graph, const Facts& facts) {
    const std::optional<Open> open = first_open(graph);
    if (!open) {
      if (++cases_ > most_cases) refuse(graph);
      return std::make_unique<Tree>(Tree{.facts = facts});
    }
    const auto with = [&](const Facts& more) -> std::unique_ptr<Tree> {
      const std::optional<ir::Graph> narrowed = under(graph, more);
      if (!narrowed) return nullptr;
      Facts all = facts;
      all.insert(all.end(), more.begin(), more.end());
      return grow(*narrowed, all);
    };
    const Facts one = {equal(open->extent, 1)};
    Facts whole;
    for (const Dim& each : open->wholes) whole.push_back(equal(open->extent, each));
    std::unique_ptr<Tree> if_one = with(one), if_whole = whole.empty() ? nullptr : with(whole);
    if (!if_one || !if_whole) return if_one ? std::move(if_one) : std::move(if_whole);
    return std::make_unique<Tree>(Tree{.test = one[0], .yes = std::move(if_one), .no = std::move(if_whole)});
  }

  Branch add(const Tree& tree) {
    if (!tree.test) {
      result_.facts.push_back(tree.facts);
      return {.ends = true, .to = static_cast<std::uint32_t>(result_.facts.size() - 1)};
    }
    const std::size_t test = result_.table.tests.size();
    result_.table.tests.push_back({.relation = *tree.test});
    const Branch yes = add(*tree.yes), no = add(*tree.no);
    result_.table.tests[test].yes = yes;
    result_.table.tests[test].no = no;
    return {.ends = false, .to = static_cast<std::uint32_t>(test)};
  }

  [[noreturn]] static void refuse(const ir::Graph& graph) {
    throw Error(
        {.code = ErrorCode::unsupported,
         .message = fmt::format("graph {} has more than {} combinations of extents that are 1 or another",
                                in_quotes(graph.name), most_cases),
         .hint = "each is compiled: say of some of these extents that they are equal"});
  }
  [[noreturn]] static void refuse(const ir::Graph& graph, const Open& open) {
    throw Error({.code = ErrorCode::contradiction,
                 .message = fmt::format("{} can be neither 1 nor {}", in_quotes(open.extent.to_string()),
                                        in_quotes(open.wholes.front().to_string())),
                 .op = std::string(to_string(graph[open.node].op)),
                 .location = graph.location(graph[open.node]),
                 .hint = "correct the assumptions or the ranges of its dims"});
  }

  ExtentCases result_;
  std::size_t cases_ = 0;
};

}  // namespace

ExtentCases extent_cases(const ir::Graph& graph) {
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), expands)) return {.table = {}, .facts = {{}}};
  return CaseFinder().run(ir::dead_code(graph));
}

}  // namespace fuse
