// The designs of kernels: the search finds the least of all of them, and its bound is no more than what any
// completion costs. SPDX-License-Identifier: Apache-2.0
#include <random>
#include <set>

#include "schedule/choosers/astitch_choices.hpp"
#include "schedule/choosers/chooser.hpp"
#include "schedule/choosers/segment_cost.hpp"
#include "schedule/mapping/legal_nests.hpp"
#include "schedule/mapping/schedule.hpp"
#include "schedule/search/design_problem.hpp"
#include "search/search_segments.hpp"
#include "support/catch.hpp"
#include "support/stitch_graphs.hpp"

using namespace fuse;            // NOLINT
using namespace fuse::test;      // NOLINT
using namespace fuse::schedule;  // NOLINT

namespace {

constexpr const char* search_profiles[] = {"h200", "a100", "v100", "tiny3", "tiny2", "x86-64-v4"};
constexpr std::int64_t most_tried = 100'000;
constexpr double slack = 1e-9;

DesignProblem problem_of(const SearchedKernel& kernel, const SearchOptions& options = {}) {
  return {kernel.graph,  kernel.segment, cost_model()(kernel.graph, kernel.segment, kernel.target).value(), 0,
          kernel.target, options};
}

/// Fewer numbers than usual, with those that make no difference to the cost model.
DesignNumbers all_kinds(const Target& target) {
  return {.warps = is_cpu(target) ? std::vector<int>{1} : std::vector<int>{1, 4},
          .row_lanes = {1, 8},
          .vectors = {4, 1},
          .blocks_per_row = {1, 4},
          .clusters = {2},
          .turns = {0, target.sms, 4 * target.sms},
          .column_turns = {target.sms, 2},
          .waiting = {1, 2},
          .accumulators = {1, 2},
          .row_to_row = true};
}

}  // namespace

TEST_CASE("designs: the search finds the least of all designs of a kernel, and proves it",
          "[search][not-sanitized]") {
  std::int64_t examined = 0, all = 0;
  int kernels = 0;
  for (const char* profile : search_profiles) {
    for (const auto& [rows, columns] : {std::pair{37, 72}, {1000, 1024}}) {
      for (const SearchedKernel& kernel : phase_kernels(rows, columns, profile)) {
        for (const bool kinds : {false, true}) {
          SearchOptions options;
          if (kinds) options.numbers = all_kinds(kernel.target);
          if (!kinds && rows > 100 && std::string(profile) != "h200") continue;  // the usual numbers are many
          const DesignProblem problem = problem_of(kernel, options);
          const std::int64_t designs = count_designs(problem, most_tried + 1);
          INFO(kernel.name << " of " << rows << " x " << columns << ": " << designs << " designs");
          REQUIRE(designs <= most_tried);
          const Searched tried = by_trying_all(problem), found = best_first(problem, {.slack = slack});
          CHECK(found.proven);
          CHECK(found.design.has_value() == tried.design.has_value());
          CHECK(found.cost == Approx(tried.cost).epsilon(2 * slack));
          examined += found.examined;
          all += designs;
          ++kernels;
        }
      }
    }
  }
  INFO(kernels << " spaces, " << all << " designs, " << examined << " examined");
  CHECK(examined < all / 10);
}

TEST_CASE("designs: no completion of 10,000 drawn prefixes costs less than the bound",
          "[search][not-sanitized]") {
  constexpr std::uint32_t seed = 20260;
  std::mt19937 random(seed);
  std::vector<SearchedKernel> kernels;
  for (const char* profile : search_profiles) {
    for (const auto& [rows, columns] : {std::pair{37, 72}, {6, 16384}, {4096, 1024}, {3, 300000}}) {
      for (SearchedKernel& each : phase_kernels(rows, columns, profile)) kernels.push_back(std::move(each));
    }
  }
  REQUIRE(kernels.size() > 100);
  const std::size_t prefixes_each = 10'000 / kernels.size() + 1;
  std::int64_t prefixes = 0, completions = 0, tight = 0;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const SearchedKernel& kernel = kernels[k];
    SearchOptions options;
    if (k % 3 == 0) options.numbers = all_kinds(kernel.target);
    const DesignProblem problem = problem_of(kernel, options);
    const auto draw = [&](Prefix prefix, std::size_t length) {
      while (prefix.size() < length) {
        const std::size_t count = problem.options(prefix);
        if (count == 0) return Prefix();
        prefix.push_back(static_cast<std::uint16_t>(random() % count));
      }
      return prefix;
    };
    for (std::size_t i = 0; i < prefixes_each; ++i) {
      const Prefix prefix = draw({}, random() % (problem.variables() + 1));
      const double bound = problem.bound(prefix);
      ++prefixes;
      for (int drawn = 0; drawn < 20; ++drawn) {
        const Prefix design = draw(prefix, problem.variables());
        if (design.empty()) continue;
        // What the cost model says of illegal designs counts too.
        const KernelChoices choices = problem.choices(design);
        const double seconds = segment_seconds(kernel.graph, kernel.segment, choices, kernel.target);
        INFO(kernel.name << ", seed " << seed << ", " << prefix.size() << " values of "
                         << choices.to_string());
        REQUIRE(bound <= seconds * (1 + slack));
        ++completions;
        tight += bound >= seconds * 0.99;
      }
    }
  }
  INFO(prefixes << " prefixes, " << completions << " completions, " << tight << " with a bound within 1%");
  CHECK(prefixes >= 10'000);
}

TEST_CASE("designs: the bound holds for a phase among others of its kernel", "[search][not-sanitized]") {
  std::vector<SearchedKernel> kernels;
  for (const char* profile : search_profiles) {
    for (const StitchGraph& each : stitch_graphs()) {
      for (SearchedKernel& kernel : kernels_of(each.name, each.build(f16, 16, 65536), profile))
        kernels.push_back(std::move(kernel));
    }
    Graph g("beside");
    g.output("a", softmax(g.input("x", f32, {64, 100})));
    g.output("b", softmax(g.input("y", f32, {32, 3000})));
    g.output("c", sum(g.input("z", f32, {500, 60}), {1}));
    for (SearchedKernel& kernel : kernels_of("beside", g, profile)) kernels.push_back(std::move(kernel));
  }
  std::mt19937 random(11);
  int of_phases = 0, completions = 0;
  for (const SearchedKernel& kernel : kernels) {
    const std::optional<KernelChoices> first = cost_model()(kernel.graph, kernel.segment, kernel.target);
    if (kernel.segment.phases.size() == 1 || !first || !first->tile.empty()) continue;
    ++of_phases;
    for (std::size_t phase = 0; phase < kernel.segment.phases.size(); ++phase) {
      const DesignProblem problem(kernel.graph, kernel.segment, *first, phase, kernel.target, {});
      for (int i = 0; i < 100; ++i) {
        const std::size_t length = random() % (problem.variables() + 1);
        double bound = problem.bound({});
        Prefix design;
        while (design.size() < problem.variables()) {
          const std::size_t count = problem.options(design);
          if (count == 0) break;
          design.push_back(static_cast<std::uint16_t>(random() % count));
          if (design.size() <= length) bound = problem.bound(design);
        }
        if (design.size() < problem.variables()) continue;
        const KernelChoices choices = problem.choices(design);
        INFO(kernel.name << ", phase " << phase << ": " << choices.to_string());
        CHECK(choices.block_threads() == first->block_threads());
        if (!misfit(kernel.graph, kernel.segment, choices, kernel.target).empty()) continue;
        CHECK(bound <= segment_seconds(kernel.graph, kernel.segment, choices, kernel.target) * (1 + slack));
        ++completions;
      }
    }
  }
  INFO(of_phases << " kernels, " << completions << " completions");
  CHECK(of_phases > 8);
  CHECK(completions > 500);
}

TEST_CASE("designs: those that are legal are legal nests", "[search][not-sanitized]") {
  for (const char* profile : {"h200", "tiny3"}) {
    for (const SearchedKernel& kernel : phase_kernels(300, 72, profile)) {
      SearchOptions options;
      options.numbers = all_kinds(kernel.target);
      options.numbers->accumulators = {1};  // the enumeration has several only where nothing is cached
      const DesignProblem problem = problem_of(kernel, options);
      const NestNumbers numbers{.warps = {1, 4},
                                .lanes = {1, 8, 32},
                                .vectors = {1, 4},
                                .blocks_per_row = {1, 2, 4},
                                .turns = {0, 2, kernel.target.sms, 4 * kernel.target.sms},
                                .shared_cache = {16, 48, 512},
                                .row_to_row = true};
      std::set<std::string> known;
      each_legal_nest(kernel.graph, kernel.segment.phases[0], kernel.target, numbers,
                      [&](const Choices& choices) { known.insert(structure_of(choices)); });
      std::mt19937 random(7);
      int legal = 0;
      for (int i = 0; i < 300; ++i) {
        Prefix design;
        while (design.size() < problem.variables()) {
          const std::size_t count = problem.options(design);
          if (count == 0) break;
          design.push_back(static_cast<std::uint16_t>(random() % count));
        }
        if (design.size() < problem.variables()) continue;
        const KernelChoices choices = problem.choices(design);
        if (!misfit(kernel.graph, kernel.segment, choices, kernel.target).empty()) continue;
        ++legal;
        INFO(kernel.name << ": " << choices.to_string());
        CHECK(known.contains(structure_of(choices.phases[0])));
      }
      INFO(kernel.name);
      CHECK(legal > 20);
    }
  }
}
