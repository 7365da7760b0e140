// Builds: graphs that are compiled several times, each for a part of the range of their dims.
// SPDX-License-Identifier: Apache-2.0
#include "compile/builds/builds.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <fuse/fuse.hpp>
#include <memory>
#include <set>
#include <vector>

#include "base/access.hpp"
#include "compile/compile.hpp"
#include "fuzz/judge/execute.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/saved/plan_file.hpp"
#include "support/catch.hpp"
#include "support/examples.hpp"
#include "support/stitch_cases.hpp"
#include "support/tensor_compare.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// Two heads of attention.
Graph attention(std::int64_t most_batches = 64, std::int64_t most_tokens = 256) {
  Graph g("attention");
  const Dim b = g.dim("B", {.min = 1, .max = most_batches, .hint = 8});
  const Dim t = g.dim("T", {.min = 1, .max = most_tokens, .hint = most_tokens / 2});
  const Tensor x = g.input("x", f32, {b, t, 32});
  const auto heads = [&](const char* name) {
    const Tensor all = matmul(reshape(x, {b * t, 32}), g.parameter(name, f32, {32, 32}));
    return transpose(reshape(all, {b, t, 2, 16}), {0, 2, 1, 3});
  };
  const Tensor q = heads("wq"), k = heads("wk"), v = heads("wv");
  const Tensor scores = softmax(matmul(q, k, {.transpose_b = true}) * 0.25F);
  g.output("y", reshape(transpose(matmul(scores, v), {0, 2, 1, 3}), {b, t, 32}));
  return g;
}

/// Two products of one operand, of which a build merges the weights, and another one does not.
Graph two_products() {
  Graph g("two_products");
  const Dim b = g.dim("B", {.min = 1, .max = 64});
  const Tensor x = g.input("x", f32, {b, 4});
  g.output("u", -matmul(x, g.parameter("v", f32, {4, 8})));
  g.output("w", exp(matmul(x, g.parameter("w", f32, {4, 16}))));
  return g;
}

/// Build 1 runs where B is at most 4; `merged`: whether builds merge their GEMMs.
CompiledBuilds two_builds(const Graph& g, const Target& target, std::array<bool, 2> merged) {
  const DimRelation few = at_most(ir_of(g).nodes[0].type.dims[0], 4);
  CompiledBuilds builds;
  builds.regions.table = {.tests = {{few, {true, 1}, {true, 0}}}, .versions = 2};
  builds.regions.each = {{}, {.conditions = {few}}};
  for (std::size_t i = 0; i < 2; ++i) {
    const ir::Graph graph = i == 0 ? ir_of(g) : schedule::graph_of(ir_of(g), builds.regions.each[1]);
    builds.each.push_back(run_pipeline(graph, target, {.merge_gemms = merged[i]}));
  }
  return builds;
}

Executable executable_of(const Graph& g, CompiledBuilds builds, const Device& device) {
  return runtime::make_executable(std::make_shared<const ir::Graph>(ir_of(g)), std::move(builds), device);
}

std::uint32_t build_at(const schedule::Versions& regions, const DimValues& dims) {
  return schedule::version_for(regions.table, [&](const Dim& dim) {
    return dim.evaluate([&](std::string_view name) { return dims.find(name)->second; });
  });
}

}  // namespace

TEST_CASE("builds: rows of one element have a cut of their own", "[versions][builds]") {
  Graph g("rows");
  const Dim m = g.dim("M", {.min = 1, .max = 1 << 20}), n = g.dim("N", {.min = 1, .max = 1 << 16});
  g.output("y", softmax(g.input("x", f32, {m, n})));
  const Target target = target_profile("h200");
  PipelineOptions options;
  CHECK(build_regions(ir_of(g), target, options).each.size() == 1);  // they were not asked for
  options.builds = {.most = 4, .price = 0.3};
  const CompiledBuilds made = run_builds(ir_of(g), target, options);
  REQUIRE(made.each.size() == 2);
  CHECK(made.regions.each[0].conditions.empty());
  CHECK(made.regions.each[0].share + made.regions.each[1].share == 1);
  for (const std::int64_t rows : {1, 77, 1 << 20}) {
    CHECK(build_at(made.regions, {{"M", rows}, {"N", 1}}) == 1);
    CHECK(build_at(made.regions, {{"M", rows}, {"N", 2}}) == 0);
  }
  const auto reduces = [](const Compiled& compiled) {
    return std::any_of(compiled.graph.nodes.begin(), compiled.graph.nodes.end(), [](const ir::Node& node) {
      return ir::info(node.op).relation == ir::Relation::reduce;
    });
  };
  CHECK(reduces(made.each[0]));
  CHECK(!reduces(made.each[1]));
  CHECK(build_text(made.regions, 1).starts_with("build 1 of 2, for N <= 1; "));
  CHECK(build_text(made.regions, 0).starts_with("build 0 of 2, for all other dims; "));
}

TEST_CASE("builds: parameters may have symbols, but not what is packed", "[versions][builds]") {
  const auto made = [](bool packs) {
    Graph g("rows");
    const Dim m = g.dim("M", {.min = 1, .max = 1 << 20}), n = g.dim("N", {.min = 1, .max = 1 << 16});
    g.output("y", softmax(g.input("x", f32, {m, n}) + g.parameter("b", f32, {n})));
    // With N = 1 the negated weights would be made once.
    if (packs) g.output("z", matmul(g.input("u", f32, {m, 8}), -g.parameter("w", f32, {8, n})));
    return run_builds(ir_of(g), target_profile("h200"), {.builds = {.most = 4, .price = 0.3}});
  };
  const CompiledBuilds apart = made(false);
  REQUIRE(apart.each.size() == 2);
  CHECK(build_at(apart.regions, {{"M", 7}, {"N", 1}}) == 1);
  const CompiledBuilds packs = made(true);
  CHECK(build_at(packs.regions, {{"M", 7}, {"N", 1}}) == 0);
  for (const Compiled& build : packs.each) CHECK(build.plan.setup.empty());
}

TEST_CASE("builds: a value that nobody reads excludes no region", "[versions][builds]") {
  Graph g("rows");
  const Dim m = g.dim("M", {.min = 1, .max = 1 << 20}), n = g.dim("N", {.min = 1, .max = 1 << 16});
  const Tensor x = g.input("x", f32, {m, n});
  g.output("y", softmax(x));
  slice(x, 1, 0, 3);  // at least three columns; no output needs it, so it brings no fact
  const CompiledBuilds made =
      run_builds(ir_of(g), target_profile("h200"), {.builds = {.most = 4, .price = 0.3}});
  REQUIRE(made.each.size() == 2);
  CHECK(build_at(made.regions, {{"M", 7}, {"N", 1}}) == 1);
  CHECK(build_at(made.regions, {{"M", 7}, {"N", 2}}) == 0);
}

TEST_CASE("builds: the declared hints have build 0, and other choosers one build", "[versions][builds]") {
  const Graph g = attention();
  const Target target = target_profile("h200");
  PipelineOptions options{.builds = {.most = 4, .price = 0}};
  const schedule::Versions regions = build_regions(ir_of(g), target, options);
  CHECK(regions.each.size() >= 2);
  CHECK(build_at(regions, {{"B", 8}, {"T", 128}}) == 0);
  double share = 0;
  for (const schedule::Version& region : regions.each) share += region.share;
  CHECK(std::abs(share - 1) < 1e-9);
  CHECK(build_regions(ir_of(g), target_profile("x86-64-v3"), options).each.size() == 1);
  options.record = true;
  CHECK(build_regions(ir_of(g), target, options).each.size() == 1);
  options.record = false;
  options.graph_passes = 3;
  CHECK(build_regions(ir_of(g), target, options).each.size() == 1);
}

TEST_CASE("builds: hints in the middle of a range do not cut a region in two", "[versions][builds]") {
  Graph g("declared");
  const Dim b = g.dim("B", {.min = 1, .max = 256}), n = g.dim("N", {.min = 1, .max = 256, .hint = 1});
  g.output("y", softmax(g.input("x", f32, {b, n})));
  const schedule::Versions regions =
      build_regions(ir_of(g), target_profile("h200"), {.builds = {.most = 4, .price = 0}});
  for (const schedule::Version& region : regions.each) {
    for (const DimRelation& condition : region.conditions) {
      CAPTURE(condition.to_string());
      CHECK(condition.to_string().find("17") == std::string::npos);  // B in [5, 16] has the middle
    }
  }
}

TEST_CASE("builds: all dims of the example graphs have one, whose conditions hold", "[versions][builds]") {
  std::size_t several = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_directory() / "examples/graphs")) {
    INFO(entry.path());
    const Graph g = Graph::load(entry.path());
    const Target target = target_profile("h200");
    const auto regions_on = [&](int threads) {
      return build_regions(ir_of(g), target, {.builds = {.most = 8, .price = 0}, .threads = threads});
    };
    const schedule::Versions regions = regions_on(1);
    CHECK(schedule::to_string(regions_on(3).table) == schedule::to_string(regions.table));
    CHECK_NOTHROW(schedule::verify(regions.table));
    REQUIRE(regions.table.versions == regions.each.size());
    CHECK(regions.each[0].conditions.empty());
    several += regions.each.size() > 1;
    std::set<std::int64_t> edges{0, 1, 2, 3, 1 << 20};
    for (const schedule::VersionTable::Test& test : regions.table.tests)
      for (const std::int64_t step : {-1, 0, 1}) edges.insert(test.relation.right.constant() + step);
    const std::vector<ir::Symbol>& symbols = ir_of(g).symbols;
    for (const std::int64_t a : edges) {
      for (const std::int64_t b : edges) {
        DimValues dims;
        for (std::size_t i = 0; i < symbols.size(); ++i)
          dims[symbols[i].name] = std::clamp(i % 2 == 0 ? a : b, symbols[i].range.min, symbols[i].range.max);
        for (const DimRelation& condition : regions.each.at(build_at(regions, dims)).conditions) {
          const auto value = [&](const Dim& dim) {
            return dim.evaluate([&](std::string_view name) { return dims.find(name)->second; });
          };
          CHECK(condition.holds(value(condition.left), value(condition.right)));
        }
      }
    }
  }
  CHECK(several > 1);
}

TEST_CASE("builds: attention of any shape", "[versions][builds][emulated]") {
  const Graph g = attention(8, 64);
  for (const bool saved : {false, true}) {
    fuzz::Case judged = case_of(g, {.profile = "h200", .checked = true, .optimization = 0, .saved = saved});
    judged.options.versions = 8;
    judged.program.bindings = {
        {{"B", 1}, {"T", 1}}, {{"B", 1}, {"T", 17}}, {{"B", 3}, {"T", 1}}, {{"B", 5}, {"T", 33}}};
    CHECK(fuzz::compiled(judged, "counted").each.size() >= 2);
    const fuzz::Outcome outcome = fuzz::run_alone(judged);
    INFO(outcome.text);
    CHECK(outcome.verdict == fuzz::Verdict::ok);
  }
}

TEST_CASE("builds: a norm whose parameters have symbols", "[versions][builds][emulated]") {
  Graph g("norm");
  const Dim m = g.dim("M", {.min = 1, .max = 64}), n = g.dim("N", {.min = 1, .max = 64});
  g.output("y", layer_norm(g.input("x", f32, {m, n}), g.parameter("gamma", f32, {n}),
                           g.parameter("beta", f32, {n})));
  fuzz::Case judged = case_of(g, {.profile = "h200", .checked = true, .optimization = 0, .saved = true});
  judged.options.versions = 8;
  judged.program.bindings = {{{"M", 5}, {"N", 1}}, {{"M", 3}, {"N", 2}}, {{"M", 1}, {"N", 63}}};
  CHECK(fuzz::compiled(judged, "counted").each.size() == 2);
  const fuzz::Outcome outcome = fuzz::run_alone(judged);
  INFO(outcome.text);
  CHECK(outcome.verdict == fuzz::Verdict::ok);
}

TEST_CASE("builds: one packed memory serves all of them", "[versions][builds][emulated]") {
  const Graph g = two_products();
  const Device device = Device::emulated({.profile = "h200", .checked = true, .optimization = 0});
  const Target& target = backend_of(device)->target();
  const Executable reference = compile(g, Device::reference());
  for (const std::array<bool, 2> merged : {std::array{true, false}, {false, true}, {true, true}}) {
    const Executable made = executable_of(g, two_builds(g, target, merged), device);
    const Prepared few = made.prepare({{"B", 3}}), many = made.prepare({{"B", 50}});
    REQUIRE(few.packed_bytes() == many.packed_bytes());
    CHECK(few.packed_bytes() > 0);
    if (merged[0] && merged[1]) {  // equal setups share their memory
      const Executable alone = executable_of(g, two_builds(g, target, {true, true}), device);
      CHECK(alone.prepare({{"B", 3}}).packed_bytes() == few.packed_bytes());
      const Executable one =
          runtime::make_executable(ir_of(g), run_pipeline(ir_of(g), target, {.merge_gemms = true}), device);
      CHECK(one.prepare({{"B", 3}}).packed_bytes() == few.packed_bytes());
    }
    // What one build alone reads is not given back after pack.
    for (const Prepared* each : {&few, &many})
      CHECK(each->reads_in_run(made.slot("v")) == !(merged[0] && merged[1]));
    for (const Prepared* packs : {&few, &many}) {
      for (const std::int64_t rows : {std::int64_t{3}, std::int64_t{50}}) {
        const Prepared& runs = rows == 3 ? few : many;
        Stream stream = device.stream();
        std::vector<Buffer> buffers, unused;
        std::vector<BufferView> views;
        std::vector<std::vector<float>> values;
        Session expected(reference, {{"B", rows}});
        for (std::size_t slot = 0; slot < made.slots().size(); ++slot) {
          std::vector<float> value(static_cast<std::size_t>(runs.bytes(slot)) / 4);
          for (std::size_t i = 0; i < value.size(); ++i)
            value[i] = 0.25F * static_cast<float>((i * 7 + slot) % 11) - 1;
          buffers.push_back(device.allocate(static_cast<std::size_t>(runs.bytes(slot))));
          buffers.back().upload(std::as_bytes(std::span(value)));
          if (made.slots()[slot].kind != Slot::Kind::output)
            expected.set(made.slots()[slot].name, std::as_bytes(std::span(value)));
          values.push_back(std::move(value));
        }
        for (const Buffer& buffer : buffers) views.push_back(buffer.view());
        Buffer packed = device.allocate(static_cast<std::size_t>(few.packed_bytes()));
        std::vector<BufferView> parameters = views;  // of the same size for all dims
        for (std::size_t slot = 0; slot < views.size(); ++slot)
          if (made.slots()[slot].kind != Slot::Kind::parameter) parameters[slot] = {};
        REQUIRE(packs->pack(stream, parameters, packed.view()));
        Workspace workspace = runs.workspace();
        REQUIRE(runs.run(stream, views, workspace, packed.view()));
        REQUIRE(stream.synchronize());
        expected.run();
        for (const char* name : {"u", "w"}) {
          const std::size_t slot = made.output_slot(name);
          std::vector<float> got(values[slot].size()), right(got.size());
          buffers[slot].download(std::as_writable_bytes(std::span(got)));
          const std::vector<std::byte> bytes = expected.get(name);
          std::memcpy(right.data(), bytes.data(), bytes.size());
          for (std::size_t i = 0; i < got.size(); ++i) {
            CAPTURE(merged[0], merged[1], rows, name, i);
            CHECK(std::abs(got[i] - right[i]) <= 1e-5F * std::max(1.0F, std::abs(right[i])));
          }
        }
      }
    }
  }
}

TEST_CASE("builds: a saved plan has all of them, and a damaged one is refused",
          "[versions][builds][emulated]") {
  const Graph g = two_products();
  const Device device = Device::emulated({.profile = "h200", .optimization = 0});
  const Executable made =
      executable_of(g, two_builds(g, backend_of(device)->target(), {true, false}), device);
  const std::string text = made.explain();
  CHECK(text.find("one of 2 builds by the dims") != std::string::npos);
  CHECK(text.find("build 1 of 2, for B <= 4") != std::string::npos);
  CHECK(made.source().find("// build 1 of 2") != std::string::npos);
  const std::string path = (std::filesystem::temp_directory_path() / "fuse-builds-test.plan").string();
  made.save(path);
  const Executable loaded = Executable::load(path, device);
  CHECK(loaded.explain() == text);
  for (const std::int64_t rows : {2, 9})
    CHECK(loaded.prepare({{"B", rows}}).gemms() == made.prepare({{"B", rows}}).gemms());
  CHECK(loaded.prepare({{"B", 2}}).gemms() == 2);
  CHECK(loaded.prepare({{"B", 9}}).gemms() == 1);
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove(path);
  std::vector<runtime::SavedTarget> targets = runtime::parse_plan_file(bytes, "plan");
  const auto refused = [&]() -> std::string {
    try {
      runtime::runnable(targets.at(0), "plan");
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK(refused() == "no error");
  const runtime::SavedBuild last = targets[0].builds.back();
  targets[0].builds.pop_back();
  CHECK(refused().find("another number of builds") != std::string::npos);
  compile(attention(), device, {.versions = 1, .builds = 1}).save(path);
  std::ifstream other(path, std::ios::binary);
  const std::string other_bytes{std::istreambuf_iterator<char>(other), {}};
  std::filesystem::remove(path);
  targets[0].builds.push_back(runtime::parse_plan_file(other_bytes, "plan").at(0).builds.at(0));
  CHECK(refused().find("different slots") != std::string::npos);
  targets[0].builds.clear();
  CHECK(refused().find("another number of builds") != std::string::npos);
}
