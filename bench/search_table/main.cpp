// search_table: what the search of designs finds for each kernel of a few graphs, beside what the cost model
// chooses: how many loops and designs there are, how many of them the search looks at, and in what time of
// the CPU, the first time and the second. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <fuse/fuse.hpp>
#include <iterator>
#include <string>
#include <vector>

#include "base/access.hpp"
#include "compile/cache/design_memo.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "schedule/choosers/chooser.hpp"
#include "schedule/search/design_problem.hpp"
#include "schedule/search/search_chooser.hpp"

namespace fuse::bench {
namespace {

using namespace schedule;  // NOLINT

constexpr std::int64_t most_counted = 10'000'000;  // designs

double seconds_of_cpu() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct TableCase {
  std::string name;
  Graph graph;
};

Graph graph_of_file(const std::string& path) {
  std::ifstream file(path);
  return Graph::parse(std::string(std::istreambuf_iterator<char>(file), {}), path);
}

template <class Fill>
TableCase made(const std::string& name, Fill fill) {
  Graph g("case");
  fill(g);
  return {name, std::move(g)};
}

TableCase column_sums(DType dtype, std::int64_t rows, std::int64_t columns) {
  return made(fmt::format("column sums {} x {} x {}", to_string(dtype), rows, columns), [&](Graph& g) {
    g.output("y", sum(g.input("x", dtype, {rows, columns}), {0}));
  });
}
TableCase row_softmax(DType dtype, std::int64_t rows, std::int64_t columns) {
  return made(fmt::format("softmax {} x {} x {}", to_string(dtype), rows, columns), [&](Graph& g) {
    g.output("y", softmax(g.input("x", dtype, {rows, columns})));
  });
}

std::vector<TableCase> table_cases() {
  std::vector<TableCase> cases;
  for (const char* name : {"softmax", "layernorm", "layer_norm_backward", "bert_layer", "bert_large"})
    cases.push_back({name, graph_of_file(fmt::format("{}/{}.fuse", FUSE_BENCH_GRAPHS, name))});
  cases.push_back(row_softmax(f32, 256, 4096));
  cases.push_back(row_softmax(f32, 4096, 16384));
  cases.push_back(row_softmax(f16, 16, 131072));
  cases.push_back(column_sums(f32, 4096, 1024));
  cases.push_back(column_sums(bf16, 65536, 1024));
  cases.push_back(made("row sums f32 x 32 x 1048576", [](Graph& g) {
    g.output("y", sum(g.input("x", f32, {32, 1 << 20}), {1}));
  }));
  cases.push_back(made("transpose f32 x 2048 x 2048", [](Graph& g) {
    g.output("y", exp(transpose(g.input("x", f32, {2048, 2048}), {1, 0})));
  }));
  return cases;
}

/// Least of a few: other jobs of the machine take turns.
template <class F>
double least_seconds(F action) {
  double least = 1e9;
  for (int i = 0; i < 5; ++i) {
    const double start = seconds_of_cpu();
    action();
    least = std::min(least, seconds_of_cpu() - start);
  }
  return least;
}

/// The designs of the first phase, by the usual numbers.
std::int64_t kernel_designs(const ir::Graph& graph, const Segment& segment, const KernelChoices& first,
                            const Target& target) {
  const DesignProblem problem(graph, segment, first, 0, target, {});
  return count_designs(problem, most_counted);
}

void print_segment(const std::string& name, const ir::Graph& graph, const Segment& segment,
                   const Target& target) {
  const std::optional<KernelChoices> first = cost_model()(graph, segment, target);
  if (!first) return;
  SearchResult result;
  const double search =
      least_seconds([&] { result = search_designs(graph, segment, *first, target, SearchOptions()); });
  DesignMemo memo;
  const Chooser chooser = searched({.store = store_in(memo)}, cost_model());
  chooser(graph, segment, target);
  constexpr int calls = 100;
  const double again = least_seconds([&] {
    for (int i = 0; i < calls; ++i) chooser(graph, segment, target);
  });
  const SearchReport& report = result.report;
  fmt::print("| {} {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.2f} | {:.1f} | {:.3f} | {:.3f} |\n", name,
             graph.value_name(segment.root), segment.phases.size(), report.loops, report.classes,
             report.designs_before, report.designs_after, kernel_designs(graph, segment, *first, target),
             report.examined, report.proven ? "yes" : "no", search * 1e3, again / calls * 1e6,
             report.default_seconds * 1e6, report.seconds * 1e6);
  if (report.seconds < report.default_seconds)
    fmt::print("<!-- {}\n     {} -->\n", first->to_string(), result.choices->to_string());
}

void print_table(const char* profile) {
  const Target target = target_profile(profile);
  fmt::print(
      "\n{}\n\n| kernel | phases | loops | classes | bindings | coupled | designs | examined | proven | ms | "
      "us again | default us | searched us |\n|{}\n",
      profile, " --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
  for (const TableCase& each : table_cases()) {
    const Compiled compiled = run_pipeline(ir_of(each.graph), target, {});
    std::vector<std::uint64_t> seen;
    for (const Segment& segment : compiled.partition.segments) {
      if (segment.kind != Segment::Kind::kernel) continue;
      const std::uint64_t key = segment_key(compiled.graph, segment);
      if (std::find(seen.begin(), seen.end(), key) != seen.end()) continue;
      seen.push_back(key);
      print_segment(each.name, compiled.graph, segment, target);
    }
  }
}

}  // namespace
}  // namespace fuse::bench

int main(int argc, char** argv) {
  const std::vector<const char*> given(argv + 1, argv + argc);
  for (const char* profile : given.empty() ? std::vector<const char*>{"h200", "a100"} : given)
    fuse::bench::print_table(profile);
  return 0;
}
