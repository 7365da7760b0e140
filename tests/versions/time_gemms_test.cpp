// GEMM algorithms by buckets of extents, timed on a device whose times are planted.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "explore/explorer_support.hpp"
#include "os/temporary_folder.hpp"
#include "runtime/device/host_gemm.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "runtime/prepare/gemm_buckets.hpp"
#include "schedule/decisions/gemm_decisions.hpp"
#include "support/catch.hpp"
#include "support/error_info.hpp"

namespace fuse::test {
namespace {

using runtime::algorithms_by_bucket;
using runtime::bucket_of;
using schedule::GemmAlgorithms;

std::uint32_t version_of(const GemmAlgorithms& algorithms, const std::map<std::string, std::int64_t>& dims) {
  return version_for(algorithms.table, [&](const Dim& dim) {
    return dim.evaluate([&](std::string_view name) { return dims.at(std::string(name)); });
  });
}

TEST_CASE("extents up to a power of two are one bucket", "[versions][gemm]") {
  for (const auto& [extent, bucket] : std::map<std::int64_t, int>{
           {0, 0}, {1, 0}, {2, 1}, {3, 2}, {4, 2}, {5, 3}, {8, 3}, {9, 4}, {1024, 10}, {1025, 11}})
    CHECK(bucket_of(extent) == bucket);
}

TEST_CASE("buckets of one algorithm are one version, without a test between them", "[versions][gemm]") {
  const Dim s = Dim::symbol("S", {.min = 1, .max = 4096});
  const GemmAlgorithms made =
      algorithms_by_bucket({s}, {{{512}, "a"}, {{8}, "b"}, {{64}, "b"}, {{2048}, "a"}});
  CHECK(schedule::to_string(made.table) == "test 0: S <= 64  yes: version 0  no: version 1\n");
  CHECK(made.recorded == std::vector<std::string>{"b", "a"});
  const GemmAlgorithms one = algorithms_by_bucket({s}, {{{8}, "a"}, {{64}, "a"}});
  CHECK(one.table.tests.empty());
  CHECK(one.recorded == std::vector<std::string>{"a"});
}

TEST_CASE("a table of buckets has no hole, and each extent takes the next larger bucket that was timed",
          "[versions][gemm]") {
  const Dim m = Dim::symbol("M", {.min = 0, .max = 4096}), n = Dim::symbol("N", {.min = 0, .max = 4096});
  std::vector<runtime::TimedExtents> timed;
  std::map<std::pair<int, int>, std::string> fastest;  // by buckets
  for (const std::int64_t rows : {1, 7, 100, 1000}) {
    for (const std::int64_t columns : {3, 64, 513}) {
      const int a = bucket_of(rows), b = bucket_of(columns);
      fastest[{a, b}] = fmt::format("algorithm {}", (a * 5 + b * 3) % 4);
      timed.push_back({{rows, columns}, fastest[{a, b}]});
    }
  }
  const GemmAlgorithms made = algorithms_by_bucket({m, n}, timed);
  schedule::verify(made.table);
  CHECK(made.recorded.size() == made.table.versions);
  const auto wanted = [](int bucket, std::initializer_list<int> those_timed) {
    for (const int each : those_timed)
      if (bucket <= each) return each;
    return *(those_timed.end() - 1);
  };
  for (std::int64_t rows = 0; rows < 1100; rows += 1 + rows / 40) {
    for (std::int64_t columns = 0; columns < 600; columns += 1 + columns / 40) {
      const int a = wanted(bucket_of(rows), {0, 3, 7, 10}), b = wanted(bucket_of(columns), {2, 6, 10});
      const std::uint32_t version = version_of(made, {{"M", rows}, {"N", columns}});
      REQUIRE(version < made.recorded.size());
      CAPTURE(rows, columns);
      REQUIRE(made.recorded[version] == fastest.at({a, b}));
    }
  }
}

/// A device on which plain loops are faster for up to 16 rows, and OpenBLAS for more.
Device device_with_planted_gemms() {
  const Device device = clocked_device();
  runtime::plant_costs(*backend_of(device), [](const runtime::ClockedWork& work) {
    if (!work.gemm) return work.seconds;
    return (work.gemm->algorithm == 1) == (work.gemm->m <= 16) ? 1e-6 : 2e-6;
  });
  return device;
}

Graph two_products() {
  Graph g("two");
  const Dim b = g.dim("B", {.min = 0, .max = 256}), s = g.dim("S", {.min = 1, .max = 64});
  const Tensor x = g.input("x", f32, {b * s, 32});
  const Tensor w = g.parameter("w", f32, {32, 48}), v = g.parameter("v", f32, {48, 8});
  g.output("y", matmul(gelu(matmul(x, w)), v));
  return g;
}

bool takes_loops(const Executable& executable, const DimValues& dims) {
  return contains(executable.prepare(dims).explain(), "by plain loops");
}

TEST_CASE("what was fastest in a bucket runs there, and travels with the saved plan",
          "[versions][gemm][emulated]") {
  if (!runtime::openblas_used()) return;  // there is one algorithm
  const Graph g = two_products();
  const Device device = device_with_planted_gemms();
  const Executable usual = compile(g, device);
  std::size_t told = 0;
  GemmTimingOptions options;
  options.progress = [&told](const GemmTiming&) { ++told; };
  const TimedGemms timed = time_gemms(usual, options);
  CHECK(told == timed.timings.size());
  REQUIRE(!timed.timings.empty());
  for (const GemmTiming& each : timed.timings) {
    const bool few = each.dims.at("B") * each.dims.at("S") <= 16;
    CAPTURE(each.gemm, few);
    CHECK(each.is_proposal == !few);
    CHECK(each.algorithms == 2);
    CHECK(std::lround(1e9 * each.seconds) == 1000);
    CHECK(std::lround(1e9 * each.proposed_seconds) == (few ? 2000 : 1000));
  }
  const TemporaryFolder folder;
  timed.executable.save(folder.path() + "/plan");
  const Executable loaded = Executable::load(folder.path() + "/plan", device);
  for (const std::int64_t b : {1, 3, 5, 8, 16, 17, 31, 256}) {
    for (const std::int64_t s : {1, 2, 5, 64}) {
      const DimValues dims{{"B", b}, {"S", s}};
      CAPTURE(b, s);
      CHECK_FALSE(takes_loops(usual, dims));
      CHECK(takes_loops(timed.executable, dims) == (b * s <= 16));
      CHECK(takes_loops(loaded, dims) == (b * s <= 16));
    }
  }
  CHECK(contains(timed.executable.explain(), "algorithms 0, of OpenBLAS before loops:"));
  CHECK(contains(loaded.explain(), "test 0: B * S <= 16"));
  CHECK_FALSE(contains(usual.explain(), "algorithms 0"));
}

TEST_CASE("an algorithm that gains little does not take the proposal's place", "[versions][gemm][emulated]") {
  if (!runtime::openblas_used()) return;  // there is one algorithm
  const Device device = clocked_device();
  runtime::plant_costs(*backend_of(device), [](const runtime::ClockedWork& work) {
    return work.gemm && work.gemm->algorithm == 1 ? 0.98e-6 : 1e-6;
  });
  const Executable usual = compile(two_products(), device);
  const DimValues dims{{"B", 4}, {"S", 4}};
  CHECK_FALSE(takes_loops(time_gemms(usual, {.dims = {dims}}).executable, dims));
  CHECK(takes_loops(time_gemms(usual, {.dims = {dims}, .least_gain = 0.01}).executable, dims));
}

TEST_CASE("GEMMs that are too large are not measured, nor dims that the graph does not allow",
          "[versions][gemm][emulated]") {
  if (!runtime::openblas_used()) return;  // there is one algorithm
  const Executable usual = compile(two_products(), device_with_planted_gemms());
  CHECK(time_gemms(usual, {.most_bytes = 0}).timings.empty());
  CHECK(time_gemms(usual, {.dims = {{{"B", 0}, {"S", 4}}}}).timings.empty());  // nothing is multiplied
  const auto code = [&](const GemmTimingOptions& options) {
    return error_info([&] { static_cast<void>(time_gemms(usual, options)); }).code;
  };
  CHECK(code({.dims = {{{"B", 257}, {"S", 4}}}}) == ErrorCode::invalid_extent);
  CHECK(code({.dims = {{{"B", 2}}}}) == ErrorCode::unbound);
  CHECK(code({.runs = 0}) == ErrorCode::invalid_argument);
  CHECK(code({.least_gain = 1}) == ErrorCode::invalid_argument);
  CHECK(code({.most_bytes = -1}) == ErrorCode::invalid_argument);
}

TEST_CASE("an algorithm that decisions name stays", "[versions][gemm][decisions][emulated]") {
  if (!runtime::openblas_used()) return;  // there is one algorithm
  const Graph g = two_products();
  const Device device = device_with_planted_gemms();
  const Executable usual = compile(g, device, {.versions = 1, .builds = 1});
  const Compiled& stages = stages_of(usual);
  const auto entries = schedule::all_gemm_decisions_of(stages.graph, stages.partition);
  REQUIRE(entries.size() == 2);
  CompileOptions options;
  options.decisions = fmt::format("fuse decisions 4\ntarget {{{}}}\ngemm {:016x} {{algorithm = 0}}\n",
                                  schedule::target_text(backend_of(device)->target()), entries[0].key);
  const TimedGemms timed = time_gemms(compile(g, device, options), {.dims = {{{"B", 4}, {"S", 4}}}});
  CHECK(timed.timings.size() == 1);
  CHECK_FALSE(timed.timings.at(0).is_proposal);
}

TEST_CASE("a device that multiplies in one way has nothing to time", "[versions][gemm]") {
  const Executable reference = compile(two_products(), Device::reference());
  CHECK(time_gemms(reference).timings.empty());
  const GemmTimingOptions unknown{.dims = {{{"Q", 4}}}};
  CHECK(error_info([&] { static_cast<void>(time_gemms(reference, unknown)); }).code ==
        ErrorCode::unknown_name);
}

}  // namespace
}  // namespace fuse::test
