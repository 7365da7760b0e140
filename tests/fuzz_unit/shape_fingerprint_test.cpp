// What is decided about the memory-intensive parts of models at sizes from a few elements to more than a
// device holds at once: the thresholds of choosers and costs lie in between. FUSE_UPDATE_GOLDENS=1 rewrites
// the file. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/access.hpp"
#include "fuzz/fingerprint.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/stitch_graphs.hpp"

namespace fuse::test {
namespace {

using Shape = std::pair<std::int64_t, std::int64_t>;
constexpr Shape shapes[] = {{3, 7},       {1, 8192},    {8192, 1},   {512, 32},    {65536, 96},  {40, 1000},
                            {2048, 1000}, {8192, 4096}, {64, 65536}, {4, 1 << 20}, {1 << 20, 12}};

Graph column_sums(DType dtype, std::int64_t rows, std::int64_t columns) {
  Graph g("column_sums");
  g.output("y", sum(stitch::wide(g.input("x", dtype, {rows, columns})), {0}));
  return g;
}

Graph row_statistics(DType dtype, std::int64_t rows, std::int64_t columns) {
  Graph g("row_statistics");
  const Tensor x = stitch::wide(g.input("x", dtype, {rows, columns}));
  g.output("sum", sum(x, {1}));
  g.output("largest", argmax(x, 1));
  return g;
}

Graph rows_and_columns(DType dtype, std::int64_t rows, std::int64_t columns) {
  Graph g("rows_and_columns");
  const Tensor x = tanh(stitch::wide(g.input("x", dtype, {rows, columns})));
  g.output("row", sum(x, {1}));
  g.output("column", sum(x, {0}));
  g.output("all", sum(x * x, {0, 1}));
  return g;
}

Graph running_sums(DType dtype, std::int64_t rows, std::int64_t columns) {
  Graph g("running_sums");
  const Tensor x = stitch::wide(g.input("x", dtype, {rows, columns}));
  g.output("y", convert(cumulative_sum(x, 1) + 1, dtype));
  g.output("z", convert(cumulative_sum(exp(x), 0), dtype));
  return g;
}

Graph turned(DType dtype, std::int64_t rows, std::int64_t columns) {
  Graph g("turned");
  const Tensor x = g.input("x", dtype, {rows, columns});
  g.output("y", transpose(x, {1, 0}) + g.input("z", dtype, {columns, rows}));
  return g;
}

/// What is costly and read by windows of it, in several steps.
Graph windows(DType dtype, std::int64_t rows, std::int64_t columns) {
  Graph g("windows");
  Tensor x = stitch::wide(g.input("x", dtype, {rows, columns + 4}));
  for (int i = 0; i < 2; ++i) {
    const Tensor y = exp(tanh(x));
    const Dim last = y.dim(1);
    x = slice(y, 1, 0, last - 2) + slice(y, 1, 1, last - 1) + slice(y, 1, 2, last);
  }
  g.output("y", convert(x, dtype));
  return g;
}

std::vector<StitchGraph> graphs() {
  std::vector<StitchGraph> all = stitch_graphs();
  all.insert(all.end(), {{"column_sums", column_sums},
                         {"row_statistics", row_statistics},
                         {"rows_and_columns", rows_and_columns},
                         {"running_sums", running_sums},
                         {"turned", turned},
                         {"windows", windows}});
  return all;
}

/// The graph without the lines of the file that built it.
ir::Graph unlocated(const Graph& built) {
  ir::Graph graph = ir_of(built);
  for (ir::Node& node : graph.nodes) node.location = 0;
  for (ir::Scope& scope : graph.scopes) scope.location = 0;
  return graph;
}

TEST_CASE("fingerprints of parts of models in all sizes are as committed", "[golden][fuzz][not-sanitized]") {
  std::vector<std::string> lines;
  for (const StitchGraph& each : graphs()) {
    DType dtype = f32;  // every other one
    for (const char* profile : {"h200", "tiny3", "x86-64-v4"}) {
      for (const auto& [rows, columns] : shapes) {
        const Compiled made =
            run_pipeline(unlocated(each.build(dtype, rows, columns)), target_profile(profile));
        lines.push_back(fmt::format("{}, {}, {}[{}, {}]: {}", each.name, profile, to_string(dtype), rows,
                                    columns, fuzz::fingerprint(made)));
        dtype = dtype == f32 ? bf16 : f32;
      }
    }
  }
  check_golden_lines("fingerprints/shapes.txt", lines);
}

}  // namespace
}  // namespace fuse::test
