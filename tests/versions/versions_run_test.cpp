// Every version of a kernel, run against the error analysis of the reference.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <functional>
#include <fuse/fuse.hpp>
#include <set>

#include "base/access.hpp"
#include "compile/compile.hpp"
#include "fuzz/judge/execute.hpp"
#include "runtime/device/backend.hpp"
#include "support/catch.hpp"
#include "support/stitch_cases.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

Graph rows(const char* name, const std::function<Tensor(const Tensor&)>& f, std::int64_t most_rows = 5000,
           std::int64_t most_columns = 40000) {
  Graph g(name);
  const Dim m = g.dim("M", {.min = 0, .max = most_rows}), n = g.dim("N", {.min = 1, .max = most_columns});
  g.output("y", f(g.input("x", f32, {m, n})));
  return g;
}

/// Runs the graph for each of the dims, as the options say; gives how many versions of the first table were
/// taken, over all builds.
std::size_t judged(const Graph& graph, const std::vector<DimValues>& dims, fuzz::RunOptions options) {
  options.versions = 8;
  fuzz::Case judged = case_of(graph, options);
  judged.program.bindings = dims;
  const CompiledBuilds builds = fuzz::compiled(judged, "counted");
  std::set<std::pair<std::uint32_t, std::uint32_t>> taken;
  for (const DimValues& each : dims) {
    const auto value = [&](const Dim& dim) {
      return dim.evaluate([&](std::string_view name) { return each.at(std::string(name)); });
    };
    const std::uint32_t build = schedule::version_for(builds.regions.table, value);
    const std::vector<schedule::Versions>& versions = builds.each[build].versions;
    taken.emplace(build, versions.empty() ? 0 : schedule::version_for(versions[0].table, value));
  }
  const fuzz::Outcome outcome = fuzz::run_alone(judged);
  INFO(outcome.text);
  CHECK(outcome.verdict == fuzz::Verdict::ok);
  return taken.size();
}

/// A table that takes the version wherever `dim` is at most 40000, and is whole for all others.
schedule::VersionTable always(std::uint32_t version, std::uint32_t versions, const Dim& dim) {
  schedule::VersionTable table{.tests = {}, .versions = versions};
  std::vector<std::uint32_t> order{version};
  for (std::uint32_t other = 0; other < versions; ++other)
    if (other != version) order.push_back(other);
  for (std::uint32_t i = 0; i + 1 < versions; ++i) {
    const bool is_last = i + 2 == versions;
    table.tests.push_back({at_most(dim, 40000), {true, order[i]}, {is_last, is_last ? order[i + 1] : i + 1}});
  }
  return table;
}

const std::vector<DimValues> shapes = {
    {{"M", 1}, {"N", 1}},      {{"M", 3}, {"N", 33000}}, {{"M", 200}, {"N", 7}},   {{"M", 4999}, {"N", 5}},
    {{"M", 70}, {"N", 1024}},  {{"M", 65}, {"N", 257}},  {{"M", 1}, {"N", 40000}}, {{"M", 5}, {"N", 4096}},
    {{"M", 17}, {"N", 4097}},  {{"M", 0}, {"N", 100}},   {{"M", 2}, {"N", 16385}}, {{"M", 257}, {"N", 64}},
    {{"M", 1000}, {"N", 131}}, {{"M", 64}, {"N", 1025}}};

}  // namespace

TEST_CASE("versions: softmax of any shape", "[versions][emulated]") {
  const Graph g = rows("softmax", [](const Tensor& x) { return softmax(x); });
  CHECK(judged(g, shapes, {.profile = "h200"}) >= 3);
  CHECK(judged(g, shapes, {.profile = "tiny3", .checked = true, .shuffle_seed = 7, .optimization = 0}) >= 2);
  judged(g, shapes, {.profile = "tiny2", .checked = true, .optimization = 0, .saved = true});
}

TEST_CASE("versions: column sums and scans of any shape", "[versions][emulated]") {
  judged(rows("columns", [](const Tensor& x) { return sum(exp(x * 0.1F), {0}); }), shapes,
         {.profile = "h200"});
  judged(rows("mean", [](const Tensor& x) { return x - mean(x, {1}, {.keep_dims = true}); }), shapes,
         {.profile = "a100", .checked = true, .optimization = 0});
}

TEST_CASE("versions: kernels that are taken for other dims than their table says are found",
          "[versions][emulated][not-sanitized]") {
  const Graph g = rows("softmax", [](const Tensor& x) { return softmax(x); });
  const Device device = Device::emulated({.profile = "h200", .checked = true, .optimization = 0});
  const Compiled made = run_pipeline(ir_of(g), backend_of(device)->target(), {.versions = {.most = 8}});
  REQUIRE(made.versions.size() == 1);
  std::size_t wrong_outside = 0;
  for (std::uint32_t version = 0; version < made.versions[0].each.size(); ++version) {
    Compiled forced = made;  // every walk leads there
    forced.plan.tables[0] = always(version, forced.plan.tables[0].versions, ir_of(g).nodes[0].type.dims[1]);
    const Executable executable = runtime::make_executable(ir_of(g), forced, device);
    for (const DimValues& dims : shapes) {
      if (dims.at("M") * dims.at("N") > 25'000 || dims.at("M") == 0) continue;
      const std::uint32_t right = schedule::version_for(made.plan.tables[0], [&](const Dim& dim) {
        return dim.evaluate([&](std::string_view name) { return dims.at(std::string(name)); });
      });
      std::vector<float> x(static_cast<std::size_t>(dims.at("M") * dims.at("N")), 0.5F), y(x.size());
      bool wrong = false;
      try {
        Session session(executable, dims);
        session.set("x", std::as_bytes(std::span(x)));
        session.run();
        const std::vector<std::byte> bytes = session.get("y");
        std::memcpy(y.data(), bytes.data(), bytes.size());
        const float each = 1.0F / static_cast<float>(dims.at("N"));
        for (const float value : y) wrong = wrong || !(std::abs(value - each) <= 1e-3F * each);
      } catch (const Error&) {
        wrong = true;
      }
      CAPTURE(version, dims.at("M"), dims.at("N"));
      if (version == right)
        CHECK(!wrong);
      else
        wrong_outside += wrong;
    }
  }
  CHECK(wrong_outside > 0);
}
