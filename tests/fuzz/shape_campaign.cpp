// SPDX-License-Identifier: Apache-2.0
#include "fuzz/shape_campaign.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <fuse/fuse.hpp>
#include <map>
#include <optional>
#include <set>

#include "analysis/facts.hpp"
#include "analysis/guards.hpp"
#include "base/access.hpp"
#include "fusec/values/check.hpp"
#include "fusec/values/inputs.hpp"
#include "fuzz/grow/random.hpp"
#include "fuzz/judge/execute.hpp"
#include "fuzz/judge/run_results.hpp"

namespace fuse::fuzz {
namespace {

constexpr int most_versions = 8;

std::int64_t value_of(const Dim& dim, const DimValues& dims) {
  if (dim.is_constant()) return dim.constant();
  return dim.evaluate([&](std::string_view name) { return dims.find(name)->second; });
}

/// Odd numbers, primes, powers of two and their neighbours.
std::int64_t drawn_extent(Random& random, const DimRange& range) {
  const std::int64_t drawn =
      random.chance(0.3)
          ? random.between(0, random.pick({9, 100, 3000}))
          : random.pick<std::int64_t>({0,    1,    1,     1,     2,     3,     5,     7,     13,   16,
                                       31,   32,   33,    64,    97,    127,   128,   129,   255,  256,
                                       257,  500,  509,   1000,  1009,  1024,  1025,  2048,  4093, 4096,
                                       4099, 8191, 10007, 16384, 16387, 40000, 65537, 100003});
  return std::clamp(drawn, range.min, range.max);
}

/// A shape that the graph allows and that is small enough; none where none was found.
std::optional<DimValues> drawn_shape(Random& random, const ir::Graph& graph, const analysis::Facts& facts,
                                     const std::vector<ir::Guard>& guards, std::int64_t most_elements) {
  for (int attempt = 0; attempt < 2000; ++attempt) {
    DimValues dims;
    for (const ir::Symbol& symbol : graph.symbols) dims[symbol.name] = drawn_extent(random, symbol.range);
    try {
      for (const ir::Assumption& assumption : graph.assumptions) {  // what is drawn would hardly be 1 or N
        const auto& [kind, left, right] = assumption.relation;
        if (kind == DimRelation::Kind::one_or && !left.name().empty())
          dims[std::string(left.name())] = random.chance(0.5) ? 1 : value_of(right, dims);
      }
      DimValues fitting = dims;  // symbols that others determine have their values
      for (const ir::Symbol& symbol : graph.symbols)
        fitting[symbol.name] = value_of(facts.canonical(Dim::symbol(symbol.name, symbol.range)), dims);
      std::int64_t elements = 0;
      bool fits = true;
      for (const ir::Symbol& symbol : graph.symbols) {
        const std::int64_t value = fitting[symbol.name];
        fits = fits && symbol.range.min <= value && value <= symbol.range.max;
      }
      for (const ir::Node& node : graph.nodes) {
        for (const Dim& dim : node.type.dims) fits = fits && value_of(dim, fitting) >= 0;
        elements += value_of(product(node.type.dims), fitting);
        if (!fits || elements > most_elements) break;
      }
      if (!fits || elements > most_elements) continue;
      const bool holds = std::all_of(guards.begin(), guards.end(), [&](const ir::Guard& guard) {
        return guard.relation.holds(value_of(guard.relation.left, fitting),
                                    value_of(guard.relation.right, fitting));
      });
      if (holds) return fitting;
    } catch (const Error&) {  // an extent that overflows
    }
  }
  return std::nullopt;
}

/// While it stands there is no compiler.
class NoCompiler {
 public:
  NoCompiler() {
    if (const char* set = std::getenv("FUSE_CXX")) before_ = set;
    setenv("FUSE_CXX", "/nonexistent/c++", 1);
  }
  NoCompiler(const NoCompiler&) = delete;
  NoCompiler& operator=(const NoCompiler&) = delete;
  ~NoCompiler() {
    if (before_)
      setenv("FUSE_CXX", before_->c_str(), 1);
    else
      unsetenv("FUSE_CXX");
  }

 private:
  std::optional<std::string> before_;
};

class Progress {
 public:
  explicit Progress(std::string what) : what_(std::move(what)) {}
  void show(std::size_t done, std::size_t all) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::seconds(10)) return;
    last_ = now;
    fmt::print(stderr, "{}: {} of {} shapes\n", what_, done, all);
  }

 private:
  std::string what_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

Case case_of_file(const v0::Graph& graph, const ShapeSettings& settings) {
  Case made{.program = {.graph = ir_of(graph), .inputs = {}, .inputs_seed = settings.seed, .bindings = {}},
            .options = {.profile = settings.profile,
                        .checked = settings.checked,
                        .optimization = 0,
                        .versions = most_versions}};
  for (const ir::Node& node : made.program.graph.nodes) {
    if (const auto* name = std::get_if<ir::NameAttr>(&node.attr))
      made.program.inputs[name->name] = {.low = 0.25, .high = 2};
  }
  return made;
}

/// How often a build was taken, and each of its versions.
struct TakenBuild {
  explicit TakenBuild(const schedule::Plan& plan) : tables(plan.tables), taken(plan.tables.size()) {}

  void note(const std::function<std::int64_t(const Dim&)>& value) {
    ++shapes;
    for (std::size_t i = 0; i < tables.size(); ++i) ++taken[i][version_for(tables[i], value)];
  }
  void print() const {
    for (std::size_t i = 0; i < tables.size(); ++i) {
      fmt::print("    table {}:", i);
      for (std::uint32_t v = 0; v < tables[i].versions; ++v) {
        const auto found = taken[i].find(v);
        fmt::print(" {}", found == taken[i].end() ? 0 : found->second);
      }
      fmt::print(" shapes by version\n");
    }
  }

  std::vector<schedule::VersionTable> tables;
  std::vector<std::map<std::uint32_t, std::size_t>> taken;
  std::size_t shapes = 0;
};

/// What became of the shapes of a graph.
struct Ran {
  std::size_t shapes = 0;
  std::string wrong{};  ///< what is wrong with the last one; empty: nothing is
};

/// Of the first shape: whether the running error analysis can tell right from wrong. In deep graphs its
/// bounds grow until any value is in them.
bool is_judged_by_bounds(const Batch& batch, const Case& c) {
  const DimValues& dims = c.program.bindings.front();
  const runtime::Values inputs = make_inputs(c.program, dims);
  const Results results = run_results(batch.executable(0), c.options, inputs, dims).front();
  Shares shares;
  for (const auto& [name, enclosure] : enclose(c.program.graph, inputs, dims)) shares += shares_of(enclosure);
  return shares.undecided * 2 < shares.elements;
}

/// As `fusec run --check` does: by evaluations that each round their own way (docs/fusec.md).
Ran run_by_evaluations(const Batch& batch, const Case& c, const ShapeSettings& settings,
                       const std::function<void(const DimValues&)>& note) {
  const Executable executable = batch.executable(0);
  Ran ran;
  fusec::Inputs inputs;
  for (const DimValues& dims : c.program.bindings) {
    std::vector<std::string> texts;
    for (const auto& [name, value] : dims) texts.push_back(fmt::format("{}={}", name, value));
    inputs = fusec::make_inputs(c.program.graph, {}, texts, settings.seed, std::move(inputs.values));
    RunOptions once = c.options;
    once.runs = 1;
    const Results results = run_results(executable, once, inputs.values, dims).front();
    note(dims);
    ++ran.shapes;
    fusec::OutputChecker checker(c.program.graph, inputs.values,
                                 [&](std::string_view name) { return dims.find(name)->second; });
    for (const auto& [name, result] : results) {
      const fusec::Verdict verdict = checker.check(name, result);
      if (verdict.ok) continue;
      ran.wrong = fmt::format("mismatch: output '{}' with {}: {}", name, fmt::join(texts, " "), verdict.text);
      return ran;
    }
  }
  return ran;
}

Ran run_by_bounds(Batch& batch, const std::function<void(const DimValues&)>& note) {
  Ran ran;
  const Outcome outcome = batch.run(0, [&](const Observed& observed) {
    note(observed.dims);
    ++ran.shapes;
  });
  if (outcome.verdict != Verdict::ok)
    ran.wrong = fmt::format("{}: {}", to_string(outcome.verdict), outcome.text);
  return ran;
}

/// The elements of all values of one shape: some have 12 times as many as most. A graph of many ops has more
/// at its least shape, where each symbol is 1.
std::int64_t most_elements(const ir::Graph& graph, const ShapeSettings& settings) {
  const auto value = [](const Dim& dim) {
    return dim.evaluate([](std::string_view) -> std::int64_t { return 1; });
  };
  std::int64_t least = 0;
  for (const ir::Node& node : graph.nodes) {
    const Dim size = product(node.type.dims);
    if (!size.is_constant()) least += value(size);
  }
  return std::max(settings.most_elements, 8 * least);
}

/// True where all is right.
bool run_file(const std::string& file, const ShapeSettings& settings) {
  const v0::Graph graph = v0::Graph::load(file);
  const std::string name = std::filesystem::path(file).filename().string();
  Case made = case_of_file(graph, settings);
  const analysis::Facts facts = analysis::facts_of(ir_of(graph));
  const std::vector<ir::Guard> guards = analysis::guards_of(ir_of(graph));
  Random random(settings.seed);
  std::int64_t fixed = 0;  // elements of values that are the same for all shapes
  for (const ir::Node& node : ir_of(graph).nodes) {
    const Dim size = product(node.type.dims);
    if (size.is_constant()) fixed += size.constant();
  }
  const std::int64_t usual = most_elements(ir_of(graph), settings);
  const std::int64_t shapes = ir_of(graph).symbols.empty() ? 1 : settings.shapes;
  for (std::int64_t i = 0; i < shapes; ++i) {
    const std::int64_t most = random.chance(0.05) ? std::max(12 * settings.most_elements, usual) : usual;
    const auto shape = drawn_shape(random, ir_of(graph), facts, guards, fixed + most);
    if (!shape) break;
    made.program.bindings.push_back(*shape);
  }
  if (made.program.bindings.empty()) {
    fmt::print("FAILED {}: no shape was found that the graph allows\n", name);
    return false;
  }
  const CompiledBuilds builds = compiled(made, "p");
  std::vector<TakenBuild> taken;
  for (const Compiled& build : builds.each) taken.emplace_back(build.plan);
  Batch batch({made});
  const bool by_bounds = is_judged_by_bounds(batch, made);
  Progress progress(name);
  std::size_t done = 0;
  const auto note = [&](const DimValues& dims) {
    const auto value = [&](const Dim& dim) { return value_of(dim, dims); };
    taken[version_for(builds.regions.table, value)].note(value);
    progress.show(++done, made.program.bindings.size());
  };
  const NoCompiler no_compiler;
  const Ran ran = by_bounds ? run_by_bounds(batch, note) : run_by_evaluations(batch, made, settings, note);
  const bool right = ran.wrong.empty();
  fmt::print("{}{}: {} shapes, {} builds, judged by {}\n", right ? "" : "FAILED ", name, ran.shapes,
             taken.size(), by_bounds ? "error bounds" : "evaluations");
  for (std::size_t i = 0; i < taken.size(); ++i) {
    fmt::print("  {}: {} kernels, {} shapes\n", build_text(builds.regions, i),
               builds.each[i].source.kernels.size(), taken[i].shapes);
    taken[i].print();
  }
  if (!right) fmt::print("  {}\n", ran.wrong);
  std::fflush(stdout);
  return right;
}

}  // namespace

int run_shape_campaign(const ShapeSettings& settings) {
  std::size_t failed = 0;
  for (const std::string& file : settings.files) failed += !run_file(file, settings);
  fmt::print("{} passed, {} failed\n", settings.files.size() - failed, failed);
  return failed == 0 && !settings.files.empty() ? 0 : 1;
}

}  // namespace fuse::fuzz
