// Sums of exponentials in the pass of their maximum: rows that nothing holds are walked once less.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/access.hpp"
#include "kernel/kernel_support.hpp"
#include "schedule/nest/usual_nests.hpp"
#include "schedule/segments/online_softmax.hpp"
#include "stitch/rows_of_any_length.hpp"
#include "stitch/stitch_support.hpp"
#include "support/devices.hpp"
#include "support/tensor_compare.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::Choices;

namespace {

/// The logarithm of the sum of exponentials of each row: nothing is left to do of its elements.
Graph any_logsumexp(DType dtype = f32) {
  Graph g("any_logsumexp");
  const Tensor x = g.input("x", dtype, {300, any_length(g)}), most = max(x, {1}, {.keep_dims = true});
  g.output("y", log(sum(exp(x - most), {1}, {.keep_dims = true})) + most);
  return g;
}

std::string stages(const Graph& g, const CompileOptions& options = {}) {
  const Compiled made = compiled(g, "h200", options);
  REQUIRE(made.schedules.size() == 1);
  return stages_text(made.graph, made.schedules[0].phases[0].computes.stages);
}

}  // namespace

TEST_CASE("sums of exponentials join the pass of their maximum where nothing is cached",
          "[stitch][schedule]") {
  CHECK(stages(any_softmax()) == "%1 reduce_max with %5 reduce_sum | %7 div");
  CHECK(stages(any_logsumexp()) == "%1 reduce_max with %5 reduce_sum | %7 add");
  // A row that threads cache is read once as it is.
  Graph cached("cached");
  cached.output("y", softmax(cached.input("x", f32, {300, 4096})));
  CHECK(stages(cached) == "%1 reduce_max | %5 reduce_sum | %7 div");
  // Elements of bf16 are read again in less time than it takes to scale their sum, which can be done in f32;
  // in bf16 the exponentials are rounded, and the distances.
  CHECK(stages(any_softmax(bf16)).find("with") == std::string::npos);
  const Compiled narrow = compiled(any_softmax(bf16), "h200");
  CHECK(schedule::with_online_softmax(narrow.graph, narrow.schedules.at(0).segment.phases.at(0)));
  CHECK(stages(any_logsumexp(bf16)).find("with") == std::string::npos);
  // A maximum that is stored has a stage of its own.
  Graph stored("stored");
  const Tensor x = stored.input("x", f32, {300, any_length(stored)}), most = max(x, {1}, {.keep_dims = true});
  stored.output("y", sum(exp(x - most), {1}));
  stored.output("most", most);
  CHECK(stages(stored).find("with") == std::string::npos);
}

TEST_CASE("other sums of exponentials stay behind what they need", "[stitch][schedule]") {
  const auto sums = [](auto build) {
    Graph g("other");
    const Dim n = any_length(g);
    const Tensor x = g.input("x", f32, {300, n}), z = g.input("z", f32, {300, n});
    g.output("y", build(x, z));
    const Compiled made = compiled(g, "h200");
    return std::any_of(made.partition.segments.begin(), made.partition.segments.end(),
                       [&](const schedule::Segment& segment) {
                         return schedule::with_online_softmax(made.graph, segment.phases[0]);
                       });
  };
  const auto below = [](const Tensor& x, const Tensor& most) { return exp(x - most); };
  CHECK(sums([&](auto x, auto) { return sum(below(x, max(x, {1}, {.keep_dims = true})), {1}); }));
  CHECK(!sums([&](auto x, auto z) { return sum(below(x, max(z, {1}, {.keep_dims = true})), {1}); }));
  CHECK(!sums([&](auto x, auto) { return sum(below(x, min(x, {1}, {.keep_dims = true})), {1}); }));
  CHECK(!sums([&](auto x, auto) { return max(below(x, max(x, {1}, {.keep_dims = true})), {1}); }));
  CHECK(!sums([&](auto x, auto) { return sum(exp(max(x, {1}, {.keep_dims = true}) - x), {1}); }));
  CHECK(!sums([&](auto x, auto) { return sum(expm1(x - max(x, {1}, {.keep_dims = true})), {1}); }));
}

TEST_CASE("a kernel that sums beside a maximum", "[stitch][schedule]") {
  check_golden("kernel/online_sum.txt", print(compiled(any_logsumexp(), "h200").kernels.at(0)));
}

TEST_CASE("a logarithm of a sum of exponentials reads its rows once", "[stitch][emulated]") {
  CHECK(row_loads(any_logsumexp(), "h200", 1000) == 1);
}

TEST_CASE("online sums answer right, checked, by every usual nest and in any order", "[stitch][emulated]") {
  Graph rows("rows"), columns("columns"), wide("wide");
  rows.output("y", softmax(rows.input("x", f32, {7, 1000})));
  columns.output("y", softmax(columns.input("x", f32, {150, 70}), 0));
  wide.output("y", softmax(wide.input("x", f64, {3, 777})));
  std::vector<Choices> ways;
  for (const int hold : {0, 64}) {
    for (std::vector<schedule::Split> splits :
         {schedule::nest_of_lanes(96), schedule::nest_of_blocks(96), schedule::nest_of_columns(96),
          schedule::nest_of_lanes(64, 8)})
      ways.push_back({.splits = std::move(splits), .online_softmax = true, .register_cache = hold});
    for (const int blocks : {0, 10}) {
      ways.push_back({.splits = schedule::nest_of_shared_rows(64, 5),
                      .blocks = blocks,
                      .online_softmax = true,
                      .register_cache = hold});
    }
    ways.push_back({.splits = schedule::nest_of_shared_rows(64, 5, 1, schedule::Level::cluster),
                    .online_softmax = true,
                    .register_cache = hold});
  }
  for (const Graph* g : {&rows, &columns, &wide}) {
    for (const Choices& choices : ways) {
      const std::uint64_t seed = 1 + static_cast<std::uint64_t>(&choices - ways.data());
      const fuzz::Outcome result = outcome(
          *g, {.profile = "h200", .checked = true, .threads = 2, .shuffle_seed = seed, .optimization = 0},
          choices);
      INFO(ir_of(*g).name << " " << choices.to_string() << ": " << result.text);
      CHECK(to_string(result.verdict) == to_string(fuzz::Verdict::ok));
    }
  }
}

TEST_CASE("rows of infinities, of NaN and of rising elements", "[stitch][device]") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr std::size_t n = 600, count = 300;
  std::vector<float> x(count * n);
  for (std::size_t row = 0; row < count; ++row) {
    for (std::size_t i = 0; i < n; ++i) {
      const auto at = static_cast<float>(i);
      const float kinds[] = {-infinity,
                             i % 3 == 0 ? -infinity : std::sin(at),
                             i == row % n ? infinity : at,
                             i == row % n ? std::nanf("") : at,
                             at,
                             -at,
                             (i % 2 == 0 ? 3e38f : -3e38f),
                             i + 1 == n ? 0.5f : -infinity,
                             std::sin(at * at) * 50};
      x[row * n + i] = kinds[row % std::size(kinds)];
    }
  }
  std::vector<std::byte> bytes(x.size() * sizeof(float));
  std::memcpy(bytes.data(), x.data(), bytes.size());
  for (const Graph& g : {any_softmax(), any_logsumexp()}) {
    const auto answer = [&](const Device& device) {
      const Executable executable = compile(g, device);
      Session session(executable, {{"N", n}});
      session.set("x", bytes);
      session.run();
      runtime::HostTensor y = runtime::HostTensor::make(f32, session.prepared().shape(1));
      y.data = session.get("y");
      return y;
    };
    const runtime::HostTensor exact = answer(Device::reference());
    for (const Device& device : test_devices(0)) require_close(answer(device), exact, 1e-6, 1e-5);
  }
}
