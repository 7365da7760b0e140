// Extents that are 1 or another one, by the dims: each case has a build in which nothing asks.
// SPDX-License-Identifier: Apache-2.0
#include "compile/builds/extent_cases.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fuse/fuse.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "analysis/facts.hpp"
#include "base/access.hpp"
#include "compile/builds/builds.hpp"
#include "fuzz/judge/execute.hpp"
#include "ir/text/print.hpp"
#include "support/catch.hpp"
#include "support/error_info.hpp"
#include "support/examples.hpp"
#include "support/stitch_cases.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// A sum of x, f32[M, K], and y, f32[M, N]; and what x has for itself.
Graph sum_of_two(const char* order = "xy") {
  Graph g("sum_of_two");
  const Dim m = g.dim("M", {.min = 0, .max = 5000}), n = g.dim("N", {.min = 0, .max = 5000});
  const Dim k = g.dim("K", {.min = 0, .max = 5000});
  g.assume(one_or(k, n));
  const Tensor x = g.input("x", f32, {m, k}), y = g.input("y", f32, {m, n});
  g.output("z", std::string(order) == "xy" ? exp(x) + y : y + exp(x));
  g.output("own", sum(x, {1}));
  return g;
}

/// `count` extents, each 1 or N.
Graph many(int count) {
  Graph g("many");
  const Dim n = g.dim("N", {.min = 1, .max = 64});
  Tensor all = g.input("all", f32, {n});
  for (int i = 0; i < count; ++i) {
    const Dim k = g.dim("K" + std::to_string(i), {.min = 1, .max = 64});
    g.assume(one_or(k, n));
    all = all * g.input("x" + std::to_string(i), f32, {k});
  }
  g.output("y", all);
  return g;
}

void judge(const Graph& g, std::vector<DimValues> dims, std::size_t builds, fuzz::RunOptions options) {
  for (const bool saved : {false, true}) {
    options.saved = saved;
    fuzz::Case judged = case_of(g, options);
    judged.program.bindings = dims;
    CHECK(fuzz::compiled(judged, "counted").each.size() == builds);
    const fuzz::Outcome outcome = fuzz::run_alone(judged);
    INFO(outcome.text);
    CHECK(outcome.verdict == fuzz::Verdict::ok);
  }
}

std::size_t count(const ir::Graph& graph, ir::Relation relation) {
  return static_cast<std::size_t>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(),
                    [&](const ir::Node& node) { return info(node.op).relation == relation; }));
}

/// The outputs of a run with simple values.
std::vector<std::vector<std::byte>> outputs(const Executable& made, const DimValues& dims) {
  Session session(made, dims);
  for (std::size_t slot = 0; slot < made.slots().size(); ++slot) {
    if (made.slots()[slot].kind == Slot::Kind::output) continue;
    std::vector<float> value(static_cast<std::size_t>(session.prepared().bytes(slot)) / 4);
    for (std::size_t i = 0; i < value.size(); ++i)
      value[i] = 0.25F * static_cast<float>((i * 7 + slot) % 11) - 1;
    session.set(made.slots()[slot].name, std::as_bytes(std::span(value)));
  }
  session.pack();
  session.run();
  std::vector<std::vector<std::byte>> result;
  for (const Slot& slot : made.slots())
    if (slot.kind == Slot::Kind::output) result.push_back(session.get(slot.name));
  return result;
}

}  // namespace

TEST_CASE("extents that are 1 or another: a case for each", "[versions][builds]") {
  for (const char* order : {"xy", "yx"}) {
    const Graph g = sum_of_two(order);
    const ExtentCases cases = extent_cases(ir_of(g));
    REQUIRE(cases.facts.size() == 2);
    REQUIRE(cases.table.tests.size() == 1);
    CHECK(cases.table.tests[0].relation.to_string() == "K = 1");
    CHECK(cases.facts[0].at(0).to_string() == "K = 1");
    CHECK(cases.facts[1].at(0).to_string() == "K = N");
    const CompiledBuilds made = run_builds(ir_of(g), target_profile("h200"));
    REQUIRE(made.each.size() == 2);
    CHECK_NOTHROW(schedule::verify(made.regions.table));
    for (const Compiled& each : made.each) CHECK(count(each.graph, ir::Relation::expand) == 0);
    CHECK(count(made.each[0].graph, ir::Relation::broadcast) == 1);
    CHECK(count(made.each[1].graph, ir::Relation::broadcast) == 0);
    CHECK(build_text(made.regions, 0).starts_with("build 0 of 2, for K = 1; "));
    CHECK(build_text(made.regions, 1).starts_with("build 1 of 2, for K = N; "));
  }
}

TEST_CASE("extents that are 1 or another: each case has regions of its own", "[versions][builds]") {
  Graph g("rows");
  const Dim m = g.dim("M", {.min = 1, .max = 1 << 20}), n = g.dim("N", {.min = 1, .max = 1 << 16});
  const Dim k = g.dim("K", {.min = 1, .max = 1 << 20});
  g.assume(one_or(k, m));
  g.output("y", softmax(g.input("x", f32, {m, n}) + g.input("mask", f32, {k, n})));
  const schedule::Versions regions =
      build_regions(ir_of(g), target_profile("h200"), {.builds = {.most = 4, .price = 0.3}});
  CHECK_NOTHROW(schedule::verify(regions.table));
  CHECK(regions.each.size() == 4);  // rows of one element have a build in each case
  CHECK(regions.table.versions == regions.each.size());
  for (const std::int64_t masks : {std::int64_t{1}, std::int64_t{77}}) {
    for (const std::int64_t length : {std::int64_t{1}, std::int64_t{500}}) {
      const DimValues dims{{"M", 77}, {"K", masks}, {"N", length}};
      const auto value = [&](const Dim& dim) {
        return dim.evaluate([&](std::string_view name) { return dims.find(name)->second; });
      };
      const schedule::Version& taken = regions.each.at(schedule::version_for(regions.table, value));
      CHECK(!taken.conditions.empty());
      for (const DimRelation& condition : taken.conditions)
        CHECK(condition.holds(value(condition.left), value(condition.right)));
    }
  }
}

TEST_CASE("extents that are 1 or another: how many there may be", "[versions][builds]") {
  CHECK(extent_cases(ir_of(many(1))).facts.size() == 2);
  CHECK(extent_cases(ir_of(many(4))).facts.size() == 16);
  const ErrorInfo error = error_info([] { extent_cases(ir_of(many(5))); });
  CHECK(error.code == ErrorCode::unsupported);
  CHECK(error.message.find("more than 16 combinations") != std::string::npos);
}

TEST_CASE("extents that are 1 or another: facts decide what they can", "[versions][builds]") {
  const auto cases = [](DimRange range, bool equal_too, std::int64_t most = 64) {
    Graph g("decided");
    const Dim n = g.dim("N", {.min = 1, .max = most}), k = g.dim("K", range);
    g.assume(one_or(k, n));
    if (equal_too) g.assume(equal(k, n));
    g.output("y", g.input("x", f32, {k}) + g.input("z", f32, {n}));
    const ExtentCases found = extent_cases(ir_of(g));
    CHECK(run_builds(ir_of(g), target_profile("h200")).each.size() == found.facts.size());
    return found.facts.size();
  };
  CHECK(cases({.min = 1, .max = 64}, false) == 2);
  CHECK(cases({.min = 2, .max = 64}, false) == 1);  // K = N
  CHECK(cases({.min = 1, .max = 64}, true) == 1);
  CHECK(cases({.min = 1, .max = 1}, false) == 1);
  Graph g("facts");
  const Dim n = g.dim("N", {.min = 5, .max = 9}), k = g.dim("K", {.min = 0, .max = 4});
  g.assume(one_or(k, n));
  g.output("y", g.input("x", f32, {k}) + g.input("z", f32, {n}));
  CHECK(analysis::facts_of(ir_of(g)).equal(k, 1));  // it cannot be N
}

TEST_CASE("extents that are 1 or another: what the graph says, as text and as errors", "[versions][builds]") {
  const Graph g = sum_of_two();
  const std::string text = ir::print(ir_of(g));
  CHECK(text.find("K = 1 or N") != std::string::npos);
  CHECK(text.find("expand") != std::string::npos);
  CHECK(ir::print(ir::parse(text, "text")) == text);
  const Executable made = compile(g, Device::reference());
  const ErrorInfo error = error_info([&] { made.prepare({{"M", 3}, {"K", 2}, {"N", 5}}); });
  CHECK(error.message.find("K = 1 or N") != std::string::npos);
  Graph never("never");
  const Dim k = never.dim("K", {.min = 2, .max = 4}), n = never.dim("N", {.min = 5, .max = 9});
  CHECK(error_info([&] { never.assume(one_or(k, n)); }).code == ErrorCode::contradiction);
}

TEST_CASE("extents that are 1 or another: a compilation that has one build refuses them",
          "[versions][builds]") {
  PipelineOptions options;
  options.record = true;
  const ErrorInfo error =
      error_info([&] { run_builds(ir_of(sum_of_two()), target_profile("h200"), options); });
  CHECK(error.code == ErrorCode::unsupported);
  CHECK(error.op == "expand");
  CHECK(error.message.find("'K' is 1 or 'N'") != std::string::npos);
  CHECK(error.location.line > 0);
}

TEST_CASE("extents that are 1 or another: not where a GEMM reads packed values", "[versions][builds]") {
  const auto compiled = [](bool is_parameter) {
    Graph g("packed");
    const Dim k = g.dim("K", {.min = 1, .max = 64}), n = 64;
    g.assume(one_or(k, n));
    const Tensor w = is_parameter ? g.parameter("w", f32, {4, k}) : g.input("w", f32, {4, k});
    g.output("y", matmul(g.input("x", f32, {8, 4}), exp(broadcast_to(w, {4, n}))));
    run_builds(ir_of(g), target_profile("h200"));
  };
  CHECK_NOTHROW(compiled(false));
  CHECK(error_info([&] { compiled(true); }).code == ErrorCode::unsupported);
}

TEST_CASE("extents that are 1 or another: sums of any shapes", "[versions][builds][emulated]") {
  for (const char* order : {"xy", "yx"}) {
    judge(sum_of_two(order),
          {{{"M", 3}, {"K", 1}, {"N", 5}},
           {{"M", 3}, {"K", 5}, {"N", 5}},
           {{"M", 37}, {"K", 1}, {"N", 300}},
           {{"M", 37}, {"K", 300}, {"N", 300}},
           {{"M", 2}, {"K", 1}, {"N", 1}},
           {{"M", 2}, {"K", 1}, {"N", 0}},
           {{"M", 2}, {"K", 0}, {"N", 0}},
           {{"M", 0}, {"K", 1}, {"N", 7}}},
          2, {.profile = "h200", .checked = true, .optimization = 0});
  }
}

TEST_CASE("extents that are 1 or another: a mask of attention", "[versions][builds][emulated]") {
  Graph g("masked");
  const Dim b = g.dim("B", {.min = 1, .max = 8}), s = g.dim("S", {.min = 1, .max = 64});
  const Dim masks = g.dim("BM", {.min = 1, .max = 8}), rows = g.dim("SM", {.min = 1, .max = 64});
  g.assume(one_or(masks, b));
  g.assume(one_or(rows, s));
  const Tensor scores =
      matmul(g.input("q", f32, {b, 2, s, 8}), g.input("k", f32, {b, 2, s, 8}), {.transpose_b = true});
  g.output("y", softmax(scores + g.input("mask", f32, {masks, 1, rows, s})));
  std::vector<DimValues> dims;
  for (const std::int64_t bm : {1, 3})
    for (const std::int64_t sm : {1, 17}) dims.push_back({{"B", 3}, {"S", 17}, {"BM", bm}, {"SM", sm}});
  dims.push_back({{"B", 1}, {"S", 1}, {"BM", 1}, {"SM", 1}});
  judge(g, dims, 4, {.profile = "a100", .checked = true, .optimization = 0});
}

TEST_CASE("extents that are 1 or another: on the cpu, and from a file", "[versions][builds][emulated]") {
  Graph g("layer");
  const Dim m = g.dim("M", {.min = 1, .max = 64}), k = g.dim("K", {.min = 1, .max = 64});
  g.assume(one_or(k, m));
  const Tensor x = g.input("x", f32, {m, 16}), bias = g.input("bias", f32, {k, 32});
  g.output("y", matmul(x, g.parameter("w", f32, {16, 32})) + bias);
  const Executable expected = compile(g, Device::reference());
  const std::string path = (std::filesystem::temp_directory_path() / "fuse-extent-cases.plan").string();
  for (const Device& device : {Device::cpu(), Device::emulated({.profile = "h200", .optimization = 0})}) {
    const Executable made = compile(g, device);
    made.save(path);
    const Executable loaded = Executable::load(path, device);
    std::filesystem::remove(path);
    for (const std::int64_t rows : {1, 5, 64}) {
      for (const std::int64_t biases : {std::int64_t{1}, rows}) {
        const DimValues dims{{"M", rows}, {"K", biases}};
        const auto right = outputs(expected, dims), got = outputs(made, dims);
        CHECK(got == outputs(loaded, dims));
        std::vector<float> a(right[0].size() / 4), b(a.size());
        REQUIRE(got[0].size() == right[0].size());
        std::memcpy(a.data(), right[0].data(), right[0].size());
        std::memcpy(b.data(), got[0].data(), got[0].size());
        for (std::size_t i = 0; i < a.size(); ++i) {
          CAPTURE(rows, biases, i);
          CHECK(std::abs(a[i] - b[i]) <= 1e-4F);
        }
      }
    }
  }
}

TEST_CASE("extents that are 1 or another: values that nobody reads need not fit a case",
          "[versions][builds][emulated]") {
  Graph g("dead");
  const Dim k = g.dim("K", {.min = 1, .max = 64}), n = g.dim("N", {.min = 1, .max = 64});
  g.assume(one_or(k, n));
  const Tensor x = g.input("x", f32, {2, k});
  matmul(x, g.input("w", f32, {6, 3}));
  slice(x, 1, 2, 5);
  g.output("y", x + g.input("z", f32, {2, n}));
  judge(g, {{{"K", 1}, {"N", 7}}, {{"K", 7}, {"N", 7}}}, 2,
        {.profile = "h200", .checked = true, .optimization = 0});
}
