// Versions of the kernels of graphs with symbols: which there are, and when each is taken.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <fuse/fuse.hpp>
#include <set>

#include "analysis/facts.hpp"
#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "schedule/versions/axes.hpp"
#include "schedule/versions/versions.hpp"
#include "support/catch.hpp"
#include "support/examples.hpp"

using namespace fuse;  // NOLINT

namespace {

Graph softmax_of_unknown(std::int64_t most_rows = 1 << 20, std::int64_t most_columns = 1 << 20) {
  Graph g("rows");
  const Dim m = g.dim("M", {.min = 1, .max = most_rows}), n = g.dim("N", {.min = 1, .max = most_columns});
  g.output("y", softmax(g.input("x", f32, {m, n})));
  return g;
}

Compiled compiled_with(const Graph& g, int versions, std::string_view profile = "h200") {
  return run_pipeline(ir_of(g), target_profile(profile), {.versions = {.most = versions}});
}

const schedule::Version& version_at(const schedule::Versions& versions, const DimValues& dims) {
  return versions.each.at(schedule::version_for(versions.table, [&](const Dim& dim) {
    return dim.evaluate([&](std::string_view name) { return dims.find(name)->second; });
  }));
}

/// The graphs of examples/graphs.
std::vector<std::filesystem::path> graph_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_directory() / "examples/graphs"))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_CASE("versions: rows of unknown number and length", "[versions]") {
  const Compiled made = compiled_with(softmax_of_unknown(), 8);
  REQUIRE(made.versions.size() == 1);
  const schedule::Versions& versions = made.versions[0];
  CHECK(versions.each.size() >= 3);
  CHECK(versions.each.size() <= 8);
  CHECK(made.schedules.size() == versions.each.size());
  const auto splits_at = [&](std::int64_t m, std::int64_t n) {
    return version_at(versions, {{"M", m}, {"N", n}}).chosen.choices.phases[0];
  };
  // Few long rows are shared by several blocks; many rows have a block or a warp each.
  CHECK(splits_at(4, 100000).blocks_per_row() * splits_at(4, 100000).cluster() > 1);
  CHECK(splits_at(1 << 20, 1000).blocks_per_row() == 1);
}

TEST_CASE("versions: regions end where cells do", "[versions]") {
  const Compiled made = compiled_with(softmax_of_unknown(), 8);
  REQUIRE(made.versions.size() == 1);
  std::size_t bounds = 0;
  for (const schedule::VersionTable::Test& test : made.versions[0].table.tests) {
    if (test.relation.left.name().empty()) continue;
    std::int64_t end = 1;
    while (end < test.relation.right.constant()) end *= 4;
    CHECK(test.relation.right.is(end));
    ++bounds;
  }
  CHECK(bounds >= 3);
}

TEST_CASE("versions: threads without work, and accesses of one element, count", "[versions]") {
  Graph columns("columns"), elements("elements");
  const DimRange any{.min = 1, .max = 1 << 18};
  for (Graph* g : {&columns, &elements}) {
    const Dim m = g->dim("M", any), n = g->dim("N", any);
    const Tensor x = g->input("x", bf16, {m, n});
    g->output("y", g == &columns ? sum(convert(x, f32), {0}) : gelu(x));
  }
  const Compiled sums = compiled_with(columns, 8), each = compiled_with(elements, 8);
  REQUIRE(sums.versions.size() == 1);
  REQUIRE(each.versions.size() == 1);
  const schedule::Choices narrow =
      version_at(sums.versions[0], {{"M", 148160}, {"N", 22}}).chosen.choices.phases[0];
  CHECK(units_of(narrow.splits, 'c', schedule::Level::warp) *
            units_of(narrow.splits, 'c', schedule::Level::lane) * narrow.vector() <=
        128);
  CHECK(version_at(each.versions[0], {{"M", 8192}, {"N", 8192}}).chosen.choices.phases[0].vector() > 1);
}

TEST_CASE("versions: indices have 32 bits where those suffice", "[versions]") {
  const Compiled made = compiled_with(softmax_of_unknown(), 8);
  REQUIRE(made.versions.size() == 1);
  const schedule::VersionTable& table = made.versions[0].table;
  CHECK(table.tests[0].relation.left.to_string() == "M * N");
  REQUIRE(table.versions == made.schedules.size());
  for (std::size_t i = 0; i < made.schedules.size(); ++i) {
    const bool is_rest = i + 1 == made.schedules.size();  // what the first test excludes
    for (const schedule::KernelSchedule& kernel : made.schedules[i].kernels)
      CHECK(kernel.index_type == (is_rest ? i64 : i32));
  }
  CHECK(made.versions[0].each.back().conditions.empty());
  double share = 0;
  for (const schedule::Version& version : made.versions[0].each) share += version.share;
  CHECK(share == Approx(1));
  // Where the ranges suffice, no test is spent on it.
  const Compiled narrow = compiled_with(softmax_of_unknown(1 << 14, 1 << 14), 8);
  REQUIRE(narrow.versions.size() == 1);
  CHECK(narrow.versions[0].table.tests[0].relation.left.to_string() != "M * N");
}

TEST_CASE("versions: a symbol that another one determines takes none away", "[versions]") {
  Graph g("equal");
  const Dim m = g.dim("M", {.min = 1, .max = 100000}), n = g.dim("N", {.min = 1, .max = 100000}),
            p = g.dim("P", {.min = 1, .max = 100000});
  g.assume(equal(m, p));
  g.output("y", sum(g.input("x", f32, {m, n}), {1}));
  const Compiled made = compiled_with(g, 8);
  REQUIRE(made.versions.size() == 1);
  CHECK(made.versions[0].each.size() > 2);
  // What it bounds is no cell.
  Graph bounded("bounded");
  const Dim a = bounded.dim("A", {.min = 1, .max = 100000}), b = bounded.dim("B", {.min = 1, .max = 100000}),
            c = bounded.dim("C", {.min = 1, .max = 100000});
  bounded.assume(equal(c, a * b));
  bounded.output("y", sum(bounded.input("x", f32, {a, b}), {1}));
  CHECK(!compiled_with(bounded, 8).schedules.empty());
}

TEST_CASE("versions: none for a region that all facts together exclude", "[versions]") {
  // With T = B * T + 9 only B = 0 is possible, which the solver does not find in one round.
  Graph g("rows");
  const Dim b = g.dim("B", {.min = 0}), t = g.dim("T", {.min = 0, .hint = 4069}),
            s = g.dim("S", {.min = 1, .max = 1 << 20});
  g.assume(equal(t, b * t + 9));
  g.assume(divisible(b, 2));
  g.output("y", sum(g.input("x", f32, {4 * b * s, 4}), {1}));
  const Compiled made = run_pipeline(ir_of(g), target_profile("h200"), {.versions = {.most = 8, .price = 0}});
  CHECK(made.kernels.size() == made.schedules.size());
  for (const schedule::Versions& versions : made.versions)
    for (const schedule::Version& version : versions.each)
      CHECK_NOTHROW(analysis::facts_of(graph_of(made.graph, version)));
}

TEST_CASE("versions: the test for narrow indices bounds symbols before nests are chosen", "[versions]") {
  // From L >= 16385 and B * L * L below 2^31 follows B <= 7, too little to test whether vectors divide it.
  Graph g("bounded");
  const Dim b = g.dim("B", {.min = 1, .max = 256}), l = g.dim("L", {.min = 16385, .max = 1 << 20});
  g.output("y", random_uniform(f32, {l, l, b}, g.input("seed", i64, {}), g.input("offset", i64, {})));
  CHECK(compiled_with(g, 8).schedules.size() == 2);
}

TEST_CASE("versions: rows and columns of one kernel have an axis each", "[versions]") {
  Graph g("both");
  const Dim m = g.dim("M", {.min = 1, .max = 1000000}), n = g.dim("N", {.min = 1, .max = 1000000});
  const Tensor x = g.input("x", f32, {m, n});
  g.output("r", sum(x, {1}));
  g.output("c", sum(x, {0}));
  const Compiled made = compiled_with(g, 1);
  REQUIRE(made.partition.segments.size() == 1);
  const auto axes = schedule::axes_of(made.graph, made.partition.segments[0]);
  CHECK(axes[0].extent.to_string() == "N");
  CHECK(axes[1].extent.to_string() == "M");
}

TEST_CASE("versions: one for all dims without the option, and where nothing is symbolic", "[versions]") {
  CHECK(compiled_with(softmax_of_unknown(), 1).versions.empty());
  Graph fixed("fixed");
  fixed.output("y", softmax(fixed.input("x", f32, {64, 1000})));
  CHECK(compiled_with(fixed, 8).versions.empty());
  CHECK(compiled_with(softmax_of_unknown(3, 3), 8).versions.empty());  // too few shapes to differ
}

TEST_CASE("versions: equal segments have one table each and share kernels", "[versions]") {
  Graph g("twice");
  const Dim m = g.dim("M", {.min = 1, .max = 1 << 20}), n = g.dim("N", {.min = 1, .max = 1 << 20});
  g.output("y", softmax(g.input("x", f32, {m, n})));
  g.output("z", softmax(g.input("w", f32, {m, n})));
  PipelineOptions options{.versions = {.most = 8}};
  options.partition.groups.layers = 3;  // no independent branches in one kernel
  const Compiled made = run_pipeline(ir_of(g), target_profile("h200"), options);
  REQUIRE(made.versions.size() == 2);
  CHECK(made.versions[0].table == made.versions[1].table);
  const std::set<std::uint32_t> kernels(made.first_kernel.begin(), made.first_kernel.end());
  CHECK(kernels.size() == made.versions[0].each.size());
}

TEST_CASE("versions: a version's conditions hold wherever it is taken", "[versions]") {
  std::size_t tables = 0;
  for (const std::filesystem::path& file : graph_files()) {
    INFO(file);
    const Compiled made = compiled_with(Graph::load(file), 8);
    for (const schedule::Versions& versions : made.versions) {
      ++tables;
      schedule::verify(versions.table);
      CHECK(versions.each.size() <= 8);
      std::set<std::int64_t> edges{0, 1, 2, 3};
      for (const schedule::VersionTable::Test& test : versions.table.tests) {
        const std::int64_t at = test.relation.right.constant();
        for (const std::int64_t edge : {at - 1, at, at + 1}) edges.insert(edge);
      }
      // Every test is of one product of symbols: the values of all symbols are drawn from its edges.
      const std::vector<ir::Symbol>& symbols = made.graph.symbols;
      for (const std::int64_t a : edges) {
        for (const std::int64_t b : edges) {
          DimValues dims;
          for (std::size_t i = 0; i < symbols.size(); ++i)
            dims[symbols[i].name] =
                std::clamp(i % 2 == 0 ? a : b, symbols[i].range.min, symbols[i].range.max);
          for (const DimRelation& condition : version_at(versions, dims).conditions) {
            const auto value = [&](const Dim& dim) {
              return dim.evaluate([&](std::string_view name) { return dims.find(name)->second; });
            };
            CHECK(condition.holds(value(condition.left), value(condition.right)));
          }
        }
      }
    }
  }
  CHECK(tables > 3);
}

TEST_CASE("versions: plans and texts are the same each time", "[versions]") {
  const Graph g = softmax_of_unknown();
  const Compiled a = compiled_with(g, 8), b = compiled_with(g, 8);
  CHECK(print(a.plan) == print(b.plan));
  CHECK(a.source.text() == b.source.text());
}

TEST_CASE("versions: cells of the range of dims", "[versions]") {
  const Compiled made = compiled_with(softmax_of_unknown(64, 5000), 1);
  const auto axes = schedule::axes_of(made.graph, made.partition.segments[0]);
  CHECK(axes[0].most == std::vector<std::int64_t>{1, 4, 16, 64, 256, 1024, 4096, 5000});
  CHECK(axes[1].most == std::vector<std::int64_t>{1, 4, 16, 64});
  CHECK(axes[0].extent.to_string() == "N");
  CHECK(axes[0].ranges[5].at("N") == DimRange{257, 1024, 512});
  CHECK(axes[0].ranges[1].at("N") == DimRange{2, 4, 2});
}

TEST_CASE("versions: decisions that say nothing of versions give one way to run", "[versions][decisions]") {
  const Graph g = softmax_of_unknown();
  const Target target = target_profile("h200");
  const Compiled all = run_pipeline(ir_of(g), target, {.versions = {.most = 8}, .record = true});
  CHECK(all.versions.size() == 1);
  const Compiled one = run_pipeline(ir_of(g), target, {.versions = {.most = 1}, .record = true});
  CHECK(one.versions.empty());
  PipelineOptions told{.versions = {.most = 8}};
  told.decisions = decisions_of(one, target);
  CHECK(run_pipeline(ir_of(g), target, told).versions.empty());
}

TEST_CASE("versions: a cell has values, also of a symbol that has fewer of them than there are cells",
          "[versions]") {
  Graph g("few");
  const Dim a = g.dim("A", {.min = 0, .max = 2}), b = g.dim("B", {.min = 3, .max = 1 << 20});
  g.output("y", exp(g.input("x", f32, {a, b, 7})));
  const Compiled made = compiled_with(g, 8);
  for (const schedule::DimAxis& axis : schedule::axes_of(made.graph, made.partition.segments.at(0))) {
    for (std::size_t cell = 0; cell < axis.cells(); ++cell) {
      for (const auto& [name, range] : axis.ranges[cell]) {
        INFO(name << " in cell " << cell << ": " << range.min << " to " << range.max << ", hint "
                  << range.hint);
        CHECK(range.min <= range.max);
        CHECK((range.min <= range.hint && range.hint <= range.max));
        CHECK((range.min <= axis.least[cell].at(name) && axis.least[cell].at(name) <= range.max));
      }
    }
  }
}
