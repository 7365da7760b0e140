// What the analyses say of many graphs and relations is what tests/golden/fingerprints says. Other tests see
// to it that what they say is true; these see to it that they say no less than before.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/element.hpp"
#include "analysis/facts.hpp"
#include "analysis/guards.hpp"
#include "analysis/merge_graph.hpp"
#include "fuzz/fingerprint.hpp"
#include "fuzz/grow/generator.hpp"
#include "fuzz/grow/random.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/sanitized.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::fuzz;  // NOLINT

namespace {

std::string relations(const ir::Graph& graph) {
  std::string text;
  for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
    text += fmt::format("{} {}\n", id, to_string(analysis::op_class(graph, id)));
    for (std::size_t k = 0; k < graph[id].operands.size(); ++k)
      text += to_string(analysis::element_relation(graph, id, k)) + '\n';
  }
  return text;
}

std::string guards(const ir::Graph& graph) {
  std::string text;
  for (const ir::Guard& guard : analysis::guards_of(graph))
    text += fmt::format("{} for {}\n", guard.relation.to_string(), guard.needed_by);
  for (const ir::Symbol& symbol : analysis::facts_of(graph).symbols())
    text += fmt::format("{} in [{}, {}] {}\n", symbol.name, symbol.range.min, symbol.range.max,
                        symbol.range.hint);
  return text;
}

/// What merging along drawn edges leaves, and how many edges the searches looked at.
std::string sets(const ir::Graph& graph, Random& random) {
  analysis::MergeGraph merged(graph);
  for (std::size_t i = 0; i < 2 * graph.nodes.size(); ++i) {
    const auto node = static_cast<ir::NodeId>(random.below(graph.nodes.size()));
    if (graph[node].operands.empty()) continue;
    const ir::NodeId operand = random.pick(graph[node].operands);
    if (!merged.would_cycle(operand, node)) merged.merge(operand, node);
  }
  std::string text = fmt::format("{} edges\n", merged.visited());
  for (const ir::NodeId set : merged.topological())
    text +=
        fmt::format("{}: {}\n", fmt::join(merged.members(set), " "), fmt::join(merged.consumers(set), " "));
  return text;
}

/// Expressions of five dims, some of which have no bound.
class Expressions {
 public:
  explicit Expressions(Random& random) : random_(random) {
    for (const char* name : {"A", "B", "C", "D", "E"}) {
      const std::int64_t low = random_.pick({0, 0, 1, 1, 2, 7, 64});
      const std::int64_t high =
          random_.chance(0.2) ? INT64_MAX : low + random_.pick({0, 1, 5, 12, 100, 4096});
      const std::int64_t hint = random_.chance(0.3) ? std::min(high, low + random_.between(0, 9)) : 0;
      symbols.push_back({name, {low, high, hint}});
      dims.push_back(Dim::symbol(name, symbols.back().range));
    }
  }

  Dim draw(int depth) {
    if (depth == 0 || random_.chance(0.15)) {
      return random_.chance(0.2) ? Dim(random_.pick({0, 1, 2, 3, 4, 8, 12, 96, 1000})) : random_.pick(dims);
    }
    const std::size_t form = random_.below(9);
    const Dim left = draw(depth - 1);
    switch (form) {
      case 0:
      case 1:
        return left * draw(depth - 1);
      case 2:
        return left + draw(depth - 1);
      case 3:
        return left - draw(depth - 1);
      case 4:
        return left / random_.pick({2, 3, 4, 8, 16});
      case 5:
        return left % random_.pick({2, 3, 4, 8, 16});
      case 6:
        return left / random_.pick(dims);
      case 7:
        return left % random_.pick(dims);
      default:
        return left * random_.pick({1, 2, 3, 4, 8, 128});
    }
  }

  DimRelation relation() {
    const int depth = static_cast<int>(random_.below(3));
    const Dim left = draw(depth), right = draw(static_cast<int>(random_.below(3)));
    switch (random_.below(6)) {
      case 0:
        return divisible(left, random_.pick({2, 4, 6, 8, 64}));
      case 1:
        return divisible(left, random_.pick(dims));
      case 2:
      case 3:
        return at_most(left, right);
      default:
        return equal(left, right);
    }
  }

  std::vector<ir::Symbol> symbols{};
  std::vector<Dim> dims{};

 private:
  Random& random_;
};

/// Drawn relations, and what follows from them; or why they cannot hold together, as about half of the sets.
std::string facts(Random& random, bool& contradicts) {
  Expressions expressions(random);
  std::vector<analysis::Constraint> constraints;
  std::string text;
  const std::size_t wanted = 1 + random.below(4);
  while (constraints.size() < wanted) {
    try {
      constraints.push_back(
          {expressions.relation(), {"f", static_cast<std::uint32_t>(constraints.size() + 1)}, {}});
      text += constraints.back().relation.to_string() + '\n';
    } catch (const Error&) {  // a division by 0, or beyond 63 bits
    }
  }
  std::optional<analysis::Facts> made;
  try {
    made.emplace(expressions.symbols, constraints);
  } catch (const Error& error) {
    contradicts = true;
    return text + error.what();
  }
  for (const ir::Symbol& symbol : made->symbols())
    text += fmt::format("{} in [{}, {}] {}\n", symbol.name, symbol.range.min, symbol.range.max,
                        symbol.range.hint);
  const auto say = [&](const Dim& a, const Dim& b) {
    const analysis::Range range = made->range(a);
    text += fmt::format("{} is {} in [{}, {}], factor {}; to {}: {:d}{:d}{:d}{:d}{:d}\n", a.to_string(),
                        made->canonical(a).to_string(), range.min, range.max, made->factor(a), b.to_string(),
                        made->equal(a, b), made->le(a, b), made->less(a, b), made->divisible(a, b),
                        made->equal_products({a, b}, {b, made->canonical(a)}));
  };
  for (std::size_t i = 0; i < constraints.size(); ++i)
    say(constraints[i].relation.left, constraints[i].relation.right);
  for (std::size_t i = 0; i < expressions.dims.size(); ++i)
    say(expressions.dims[i], expressions.dims[(i + 1) % expressions.dims.size()]);
  for (int query = 0; query < 8; ++query) {
    try {
      const Dim a = expressions.draw(2), b = expressions.draw(2);
      say(a, b);
    } catch (const Error&) {}
  }
  return text;
}

}  // namespace

TEST_CASE("fingerprints of what analyses say of generated programs are as committed",
          "[golden][fuzz][analysis][not-sanitized]") {
  std::vector<std::string> lines;
  for (std::uint64_t index = 0; index < test::fewer<std::uint64_t>(400, 20); ++index) {
    const std::uint64_t seed = seed_of(2, index);
    const ir::Graph graph = generate(seed).program.graph;
    Random random(seed);
    lines.push_back(fmt::format("--seed 2 --index {}: relations {:08x} guards {:08x} sets {:08x}", index,
                                hash_of(relations(graph)), hash_of(guards(graph)),
                                hash_of(sets(graph, random))));
  }
  test::check_golden_lines("fingerprints/analysis.txt", lines);
}

TEST_CASE("fingerprints of what follows from drawn relations are as committed",
          "[golden][facts][not-sanitized]") {
  std::vector<std::string> lines;
  std::size_t contradictions = 0;
  for (std::uint64_t seed = 1; seed <= test::fewer<std::uint64_t>(1000, 50); ++seed) {
    Random random(seed);
    bool contradicts = false;
    const std::string text = facts(random, contradicts);
    contradictions += contradicts;
    lines.push_back(
        fmt::format("seed {}: {} {:08x}", seed, contradicts ? "contradiction" : "facts", hash_of(text)));
  }
  CHECK(3 * contradictions < 2 * lines.size());  // most sets must not contradict, or little is tested
  test::check_golden_lines("fingerprints/facts.txt", lines);
}
