// The chooser that searches: never worse than what it begins with, whatever the kernel; the same every time;
// and faithful to the order in which values are added where that is asked for.
// SPDX-License-Identifier: Apache-2.0
#include "schedule/search/search_chooser.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "compile/cache/design_memo.hpp"
#include "schedule/choosers/segment_cost.hpp"
#include "schedule/mapping/schedule.hpp"
#include "schedule/search/reduction_order.hpp"
#include "search/search_segments.hpp"
#include "support/catch.hpp"
#include "support/stitch_graphs.hpp"

using namespace fuse;            // NOLINT
using namespace fuse::test;      // NOLINT
using namespace fuse::schedule;  // NOLINT

namespace {

/// The kernels of the graphs of tests/cases, and of those that are stitched: some have several phases, of
/// each kind.
std::vector<SearchedKernel> kernels_of_cases(const char* profile) {
  std::vector<SearchedKernel> kernels;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(FUSE_TEST_SOURCE_DIR "/tests/cases"))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& path : files) {
    if (path.extension() != ".fuse") continue;
    std::ifstream file(path);
    try {
      const Graph g = Graph::parse(std::string(std::istreambuf_iterator<char>(file), {}), path.string());
      for (SearchedKernel& each : kernels_of(path.stem().string(), g, profile))
        kernels.push_back(std::move(each));
    } catch (const Error&) {  // some are refused, which other tests look at
    }
  }
  for (const StitchGraph& each : stitch_graphs()) {
    for (const auto& [rows, columns] : {std::pair{64, 4096}, {1024, 1024}, {16, 65536}}) {
      for (SearchedKernel& kernel : kernels_of(each.name, each.build(f32, rows, columns), profile))
        kernels.push_back(std::move(kernel));
    }
  }
  return kernels;
}

struct Counted {
  int kernels = 0, of_phases = 0, waiting = 0, better = 0, better_of_phases = 0, proven = 0;
  std::int64_t examined = 0;
};

void check_kernel(const SearchedKernel& kernel, const Chooser& first, const SearchOptions& options,
                  Counted& counted) {
  const std::optional<KernelChoices> begun = first(kernel.graph, kernel.segment, kernel.target);
  if (!begun) return;
  const SearchResult found = search_designs(kernel.graph, kernel.segment, *begun, kernel.target, options);
  REQUIRE(found.choices);
  INFO(kernel.name << ": " << begun->to_string() << " becomes " << found.choices->to_string());
  const double seconds = segment_seconds(kernel.graph, kernel.segment, *found.choices, kernel.target);
  CHECK(misfit(kernel.graph, kernel.segment, *found.choices, kernel.target) == "");
  CHECK(found.report.default_seconds == segment_seconds(kernel.graph, kernel.segment, *begun, kernel.target));
  CHECK(found.report.seconds == seconds);
  CHECK(seconds <= found.report.default_seconds);
  CHECK((*found.choices == *begun) == (seconds == found.report.default_seconds));
  CHECK(found.report.examined <= options.most_examined);
  CHECK(found.report.expanded <= options.most_expanded);
  CHECK(found.choices->block_threads() % 32 == 0);
  if (options.keep_order)
    CHECK(reduction_order(kernel.graph, kernel.segment, *found.choices) ==
          reduction_order(kernel.graph, kernel.segment, *begun));
  const SearchResult again = search_designs(kernel.graph, kernel.segment, *begun, kernel.target, options);
  CHECK(*again.choices == *found.choices);
  CHECK(again.report.examined == found.report.examined);
  ++counted.kernels;
  counted.of_phases += found.report.of_phases;
  counted.waiting += begun->blocks > 0;
  counted.better += seconds < found.report.default_seconds;
  counted.better_of_phases += found.report.of_phases && seconds < found.report.default_seconds;
  counted.proven += found.report.proven;
  counted.examined += found.report.examined;
}

}  // namespace

TEST_CASE("searched: never costs more than what it began with, whatever the kernel",
          "[search][not-sanitized]") {
  Counted counted;
  for (const char* profile : {"h200", "a100", "tiny3", "x86-64-v3"}) {
    for (const SearchedKernel& kernel : kernels_of_cases(profile)) {
      check_kernel(kernel, cost_model(), {}, counted);
      if (!is_cpu(kernel.target)) check_kernel(kernel, astitch_rules(), {}, counted);
    }
  }
  INFO(counted.kernels << " kernels, " << counted.of_phases << " of several phases, " << counted.waiting
                       << " with barriers, " << counted.better << " and " << counted.better_of_phases
                       << " better, " << counted.proven << " proven, " << counted.examined << " examined");
  CHECK(counted.kernels > 200);
  CHECK(counted.of_phases > 10);
  CHECK(counted.waiting > 4);
  CHECK(counted.better > 20);
}

TEST_CASE("searched: the order of additions stays where that is asked for", "[search][not-sanitized]") {
  Counted counted;
  SearchOptions options;
  options.keep_order = true;
  for (const char* profile : {"h200", "v100", "tiny2"}) {
    for (const auto& [rows, columns] : {std::pair{37, 72}, {6, 16384}, {4096, 1024}}) {
      for (const SearchedKernel& kernel : phase_kernels(rows, columns, profile))
        check_kernel(kernel, cost_model(), options, counted);
    }
    for (const SearchedKernel& kernel : kernels_of_cases(profile))
      check_kernel(kernel, cost_model(), options, counted);
  }
  INFO(counted.kernels << " kernels, " << counted.better << " better, " << counted.proven << " proven");
  CHECK(counted.better > 5);
}

TEST_CASE("searched: extents of nothing, of one, of symbols and of all that there is", "[search]") {
  Counted counted;
  const Dim symbol = Dim::symbol("B", {.min = 1, .max = std::int64_t{1} << 40, .hint = 300});
  for (const char* profile : {"h200", "tiny3", "x86-64-v4"}) {
    for (const auto& [rows, columns] : std::vector<std::pair<Dim, Dim>>{{0, 72},
                                                                        {37, 0},
                                                                        {1, 1},
                                                                        {symbol, 72},
                                                                        {37, symbol},
                                                                        {std::int64_t{1} << 33, 8},
                                                                        {8, std::int64_t{1} << 33}}) {
      Graph g("extents");
      g.dim("B", {.min = 1, .max = std::int64_t{1} << 40, .hint = 300});
      const Tensor x = g.input("x", f32, {rows, columns});
      g.output("exp", exp(x));
      g.output("sum", sum(g.input("y", f32, {rows, columns}), {1}));
      g.output("columns", sum(g.input("z", f32, {rows, columns}), {0}));
      g.output("softmax", softmax(g.input("w", f32, {rows, columns})));
      for (const SearchedKernel& kernel : kernels_of("extents", g, profile)) {
        check_kernel(kernel, cost_model(), {}, counted);
        SearchOptions all;
        all.most_examined = 1000;
        all.most_expanded = 10000;
        check_kernel(kernel, cost_model(), all, counted);
      }
    }
  }
  CHECK(counted.kernels > 60);
}

TEST_CASE("searched: no kernel waits for all of its blocks where none may", "[search]") {
  SearchOptions options;
  options.grid_barriers = false;
  for (const auto& [rows, columns] : {std::pair{6, 16384}, {4096, 1024}, {1, 1 << 20}}) {
    for (const SearchedKernel& kernel : phase_kernels(rows, columns, "h200")) {
      const std::optional<KernelChoices> found =
          searched(options, without_grid_barriers(cost_model()))(kernel.graph, kernel.segment, kernel.target);
      REQUIRE(found);
      INFO(kernel.name << ": " << found->to_string());
      CHECK(found->phases[0].blocks == 0);
    }
  }
}

TEST_CASE("searched: the report tells loops, designs and costs", "[search]") {
  Graph g("softmax");
  g.output("y", softmax(g.input("x", f32, {256, 4096})));
  const SearchedKernel kernel = kernels_of("softmax", g, "h200").at(0);
  std::vector<SearchReport> reports;
  SearchOptions options;
  options.report = [&](const SearchReport& report) { reports.push_back(report); };
  REQUIRE(searched(options, cost_model())(kernel.graph, kernel.segment, kernel.target));
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].loops == 6);
  CHECK(reports[0].classes == 4);
  CHECK(reports[0].designs_before == 512);
  CHECK(reports[0].designs_after == 32);
  CHECK(reports[0].proven);
  CHECK_FALSE(reports[0].of_phases);
  CHECK(reports[0].seconds <= reports[0].default_seconds);
  // Nothing comes of a chooser that has no choices.
  const Chooser none = [](const ir::Graph&, const Segment&, const Target&) { return std::nullopt; };
  CHECK_FALSE(searched(options, none)(kernel.graph, kernel.segment, kernel.target));
  CHECK(reports.size() == 1);
}

TEST_CASE("design memo: equal kernels of any graph are searched once", "[search]") {
  const auto softmax_of = [](const char* input, std::int64_t columns) {
    Graph g("softmax");
    g.output("y", softmax(g.input(input, f32, {256, columns})));
    return kernels_of("softmax", g, "h200").at(0);
  };
  int asked = 0;
  const Chooser counting = [&](const ir::Graph& graph, const Segment& segment, const Target& target) {
    ++asked;
    return cost_model()(graph, segment, target);
  };
  DesignMemo memo;
  SearchOptions options;
  options.store = store_in(memo);
  const Chooser chooser = searched(options, counting);
  const auto choose = [&](const SearchedKernel& kernel) {
    return chooser(kernel.graph, kernel.segment, kernel.target);
  };
  const SearchedKernel first = softmax_of("x", 4096);
  const std::optional<KernelChoices> found = choose(first);
  CHECK(choose(first) == found);
  CHECK(choose(softmax_of("another", 4096)) == found);
  CHECK(asked == 1);
  choose(softmax_of("x", 4100));
  CHECK(asked == 2);
  SearchedKernel slower = first;
  slower.target.bandwidth /= 2;
  choose(slower);
  CHECK(asked == 3);
  options.keep_order = true;
  CHECK(searched(options, counting)(first.graph, first.segment, first.target));
  CHECK(asked == 4);
  CHECK(memo.size() == 4);
}

TEST_CASE("design memo: what was used least recently leaves", "[search]") {
  DesignMemo memo(2);
  const auto key = [](std::uint64_t number) { return DesignKey{.segment = number}; };
  memo.keep(key(1), {});
  memo.keep(key(2), {});
  CHECK(memo.find(key(1)));
  memo.keep(key(3), {});
  CHECK(memo.size() == 2);
  CHECK(memo.find(key(1)));
  CHECK_FALSE(memo.find(key(2)));
  CHECK(memo.find(key(3)));
  DesignMemo none(0);
  none.keep(key(1), {});
  CHECK(none.size() == 0);
}

TEST_CASE("design memo: threads share it", "[search]") {
  DesignMemo memo(64);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&memo, t] {
      for (std::uint64_t i = 0; i < 2000; ++i) {
        const DesignKey key{.segment = (i * 7 + static_cast<std::uint64_t>(t)) % 100};
        if (!memo.find(key)) memo.keep(key, {});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(memo.size() == 64);
}

TEST_CASE("reduction order: what changes it, and what does not", "[search]") {
  Graph g("softmax");
  g.output("y", softmax(g.input("x", f32, {256, 4096})));
  const SearchedKernel kernel = kernels_of("softmax", g, "h200").at(0);
  const auto order = [&](const char* splits, auto change) {
    Choices choices{.splits = parse_splits(splits).value()};
    change(choices);
    return reduction_order(kernel.graph, kernel.segment, {{choices}});
  };
  const auto as_is = [](Choices&) {};
  const std::string first = order("r:grid c:serial c:warp8 c:lane32 c:vector4", as_is);
  CHECK(first == "row 1 blocks 8 warps 32 lanes 4 elements 1 accumulators; | ");
  // Which blocks have which rows, and what is kept where, is no part of it.
  CHECK(order("r:serial r:grid132 c:serial c:warp8 c:lane32 c:vector4", as_is) == first);
  CHECK(order("r:grid r:warp2 c:serial c:warp8 c:lane32 c:vector4", as_is) == first);
  CHECK(order("r:grid c:serial c:warp8 c:lane32 c:vector4", [](Choices& c) { c.register_cache = 32; }) ==
        first);
  CHECK(order("r:grid c:serial c:warp8 c:lane32 c:vector4", [](Choices& c) { c.shared_cache = 512; }) ==
        first);
  CHECK(order("r:grid c:serial c:warp4 c:lane32 c:vector4", as_is) != first);
  CHECK(order("r:grid c:serial c:warp8 c:lane32 c:vector2", as_is) != first);
  CHECK(order("r:grid c:serial c:warp8 c:lane32 c:vector4", [](Choices& c) { c.accumulators = 2; }) != first);
  CHECK(order("r:grid c:serial c:warp8 c:lane32 c:vector4", [](Choices& c) { c.online_softmax = true; }) !=
        first);
  // Lanes of a row that lie apart take the results of warps in another order than neighbours do.
  CHECK(order("r:grid c:serial c:warp8 c:lane4 r:lane8", as_is) !=
        order("r:grid c:serial c:warp8 r:lane8 c:lane4", as_is));
  // Launches, a kernel whose blocks wait, and a cluster take partial results in one order.
  const std::string shared = order("r:grid c:serial c:grid4 c:warp8 c:lane32 c:vector4", as_is);
  CHECK(shared != first);
  CHECK(order("r:grid c:serial c:cluster4 c:warp8 c:lane32 c:vector4", as_is) == shared);
  CHECK(order("r:grid c:serial c:grid4 c:warp8 c:lane32 c:vector4", [](Choices& c) { c.blocks = 132; }) ==
        shared);
}
