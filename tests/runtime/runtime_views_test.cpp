// Values inside others' memory: right results on every device, whatever the streams, and the plan's spec.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <random>

#include "base/access.hpp"
#include "compile/pipeline/experiments.hpp"
#include "ir/text/print.hpp"
#include "runtime/runtime_support.hpp"
#include "support/sanitized.hpp"

namespace fuse::test {
namespace {

using schedule::Plan;
using schedule::PlanValue;

/// Every output, by slot. Inputs are small integers, so that sums of products are exact in any order.
std::vector<std::vector<std::byte>> outputs_of(const Graph& g, const Device& device, const DimValues& dims,
                                               const CompileOptions& options = {}) {
  Session session(compile(g, device, options), dims);
  std::mt19937 random(7);
  std::vector<std::vector<std::byte>> outputs;
  const Executable executable = compile(g, device, options);
  for (std::size_t i = 0; i < executable.slots().size(); ++i) {
    const Slot& slot = executable.slots()[i];
    if (slot.kind == Slot::Kind::output) continue;
    std::vector<float> values(static_cast<std::size_t>(session.prepared().bytes(i)) / sizeof(float));
    for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 3) - 1);
    session.set(slot.name, bytes_of(values));
  }
  session.run();
  for (const Slot& slot : executable.slots()) {
    if (slot.kind == Slot::Kind::output) outputs.push_back(session.get(slot.name));
  }
  return outputs;
}

void check_against_reference(const Graph& g, const DimValues& dims, const CompileOptions& options = {}) {
  const auto exact = outputs_of(g, Device::reference(), dims);
  for (const Device& device : test_devices()) {
    INFO(device.name());
    const auto got = outputs_of(g, device, dims, options);
    REQUIRE(got.size() == exact.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      CHECK(values_of<float>(got[i]) == values_of<float>(exact[i]));
  }
}

Plan plan_of(const Graph& g) { return run_pipeline(ir_of(g), target_profile("h200")).plan; }

std::size_t kernels_of(const Plan& plan) {
  return static_cast<std::size_t>(std::count_if(plan.steps.begin(), plan.steps.end(), [](const auto& step) {
    return std::holds_alternative<schedule::KernelStep>(step.work);
  }));
}

/// A recurrent net over T steps: h = x[t] u + h w, all h side by side, and the last one. Rows of 8.
Graph recurrent(int steps, bool last = true) {
  Graph g("recurrent");
  const Dim B = g.dim("B", {.min = 1, .max = 64, .hint = 8});
  const Tensor x = g.input("x", f32, {steps, B, 8});
  const Tensor u = g.parameter("u", f32, {8, 8}), w = g.parameter("w", f32, {8, 8});
  Tensor h = g.input("h", f32, {B, 8});
  std::vector<Tensor> all;
  for (int t = 0; t < steps; ++t) {
    const Tensor now = reshape(slice(x, 0, t, t + 1), {B, 8});
    h = clamp(matmul(now, u) + matmul(h, w), -2, 2);
    all.push_back(reshape(h, {1, B, 8}));
  }
  g.output("all", concat(all, 0));
  if (last) g.output("last", h);
  return g;
}

TEST_CASE("views: steps of a recurrent net read and write slices in place", "[runtime][views][emulated]") {
  const Plan plan = plan_of(recurrent(5));
  INFO(schedule::print(plan));
  CHECK(kernels_of(plan) == 5);  // of the states: no slice of x and no concat of h
  const auto copies = std::count_if(plan.steps.begin(), plan.steps.end(), [](const auto& step) {
    return std::holds_alternative<schedule::CopyStep>(step.work);
  });
  CHECK(copies == 1);  // the last state
  for (const int streams : {1, 4}) {
    check_against_reference(recurrent(5), {{"B", 3}}, {.streams = streams});
    check_against_reference(recurrent(5, false), {{"B", 1}}, {.streams = streams});
  }
}

TEST_CASE("views: a view of an input is needed in a run, and so is its overwriting",
          "[runtime][views][emulated]") {
  // The input gives its memory to an output; the GEMM reads a part of it before.
  Graph g("donor");
  const Tensor x = g.input("x", f32, {16, 8});
  g.output("y", matmul(slice(x, 0, 8, 16), g.parameter("w", f32, {8, 8})));
  g.output("z", x + 1, x);
  const Plan plan = plan_of(g);
  INFO(schedule::print(plan));
  CHECK(schedule::print(plan).find(" in v0 at 256") != std::string::npos);
  for (const int streams : {1, 4}) check_against_reference(g, {}, {.streams = streams});

  Graph weights("weights");  // a parameter is read in place as well: nothing is packed
  const Tensor w = weights.parameter("w", f32, {16, 8});
  weights.output("y", matmul(weights.input("x", f32, {4, 8}), slice(w, 0, 8, 16)));
  const Executable executable = compile(weights, test_device());
  const Prepared prepared = executable.prepare();
  CHECK(prepared.packed_bytes() == 0);
  CHECK(prepared.reads_in_run(executable.slot("w")));
  check_against_reference(weights, {});
}

TEST_CASE("views: a GEMM reads columns of a matrix", "[runtime][views][emulated]") {
  // Not one block of memory: 4 of 8 columns, as either operand, transposed or not, and of the third axis.
  Graph g("columns");
  const Tensor x = g.input("x", f32, {8, 8}), w = g.input("w", f32, {4, 16}),
               t = g.input("t", f32, {2, 4, 8});
  const Tensor corner = slice(slice(x, 0, 0, 4), 1, 0, 4), right = slice(x, 1, 4, 8);
  g.output("a", matmul(corner, w));
  g.output("b", matmul(right, w));
  g.output("c", matmul(transpose(w, {1, 0}), corner));
  g.output("d", matmul(w, right, {.transpose_a = true, .transpose_b = true}));
  g.output("e", matmul(slice(t, 2, 0, 4), slice(t, 2, 4, 8)));
  for (const int streams : {1, 4}) check_against_reference(g, {}, {.streams = streams});
}

TEST_CASE("views: what joined kernels read again of a concat's parts", "[runtime][views][emulated]") {
  // The sums are written where the concat stands, which the last segment reads whole.
  Graph g("again");
  const Tensor x = g.input("x", f32, {64, 64}), v = g.input("v", f32, {64}),
               z = g.input("z", f32, {128, 128});
  const Tensor parts = concat({sum(x, {1}), cumulative_sum(v, 0)}, 0);
  g.output("c", parts);
  g.output("y", z * broadcast_in_dim(parts, {128, 128}, {0}));
  for (const Schemes schemes : {Schemes::fuse, Schemes::astitch}) {
    check_against_reference(g, {}, {.experiments = experiments({.schemes = schemes})});
  }
}

TEST_CASE("views: an empty batch has views of nothing", "[runtime][views][emulated]") {
  Graph g("empty");
  const Dim B = g.dim("B", {.min = 0, .max = 64, .hint = 8});
  const Tensor x = g.input("x", f32, {B, 8});
  const Tensor w = g.parameter("w", f32, {8, 8});
  g.output("y", concat({matmul(x, w), matmul(x + 1, w)}, 0));
  REQUIRE(kernels_of(plan_of(g)) == 1);
  check_against_reference(g, {{"B", 0}});
  check_against_reference(g, {{"B", 5}});
}

TEST_CASE("views: random programs of slices, GEMMs and concats", "[runtime][views][emulated]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  std::size_t views = 0, assembled = 0;
  for (int round = 0; round < fewer(16) || assembled < 3 || views < assembled + 3; ++round) {
    REQUIRE(round < 400);
    Graph g("random" + std::to_string(round));
    const Dim B = g.dim("B", {.min = 1, .max = 9, .hint = 8});
    std::vector<Tensor> rows = {g.input("x", f32, {B, 8}), g.input("y", f32, {3 * B, 8})};
    const Tensor w = g.parameter("w", f32, {8, 8});
    for (std::size_t op = 0, count = 4 + pick(8); op < count; ++op) {
      const Tensor& x = rows[rows.size() - 1 - pick(std::min<std::size_t>(rows.size(), 4))];
      const std::size_t kind = pick(5);
      Tensor made;
      if (kind < 2) made = clamp(matmul(x, w), -2, 2);
      if (kind == 2) made = matmul(sign(x), w);
      if (kind == 3) made = matmul(slice(x, 0, x.dim(0) - B, x.dim(0)), w);
      if (kind == 4 && rows.size() < 12)
        made = concat({matmul(sign(x), w), matmul(sign(rows[pick(rows.size())]), w)}, 0);
      if (made.valid()) rows.push_back(made);
    }
    for (std::size_t i = 0; i < 2; ++i) g.output("o" + std::to_string(i), rows[rows.size() - 1 - i]);
    const Compiled compiled = run_pipeline(ir_of(g), target_profile("h200"));
    for (const auto& choice : compiled.partition.views.choices) views += choice.taken();
    assembled += compiled.partition.views.assembled.size();
    INFO(print(ir_of(g)) << schedule::print(compiled.plan));
    const auto b = static_cast<std::int64_t>(1 + pick(9));
    check_against_reference(g, {{"B", b}}, {.streams = static_cast<int>(1 + pick(4))});
  }
}

/// Two GEMMs write the halves of y; another reads a quarter of the input.
Plan in_sections() {
  Plan plan;
  plan.values = {{PlanValue::Kind::input, "x", f32, {16, 8}},
                 {PlanValue::Kind::output, "y", f32, {8, 8}},
                 {.name = "t2", .dims = {4, 8}, .inside = schedule::Inside{0, 128}},
                 {.name = "t3", .dims = {4, 8}, .inside = schedule::Inside{1, 0}},
                 {.name = "t4", .dims = {4, 8}, .inside = schedule::Inside{1, 128}},
                 {PlanValue::Kind::output, "z", f32, {8, 8}}};
  std::swap(plan.values[2], plan.values[5]);  // outputs stand before temporaries
  for (const schedule::ValueId half : {3, 4}) {
    plan.steps.push_back(
        {.work = schedule::CopyStep{5, half}, .reads = {5}, .writes = {half}, .name = "half"});
  }
  plan.steps.push_back({.work = schedule::CopyStep{1, 2}, .reads = {1}, .writes = {2}, .name = "all"});
  return plan;
}

TEST_CASE("views: verify of a plan names what is wrong with them", "[runtime][views]") {
  Plan plan = in_sections();
  const auto verified = [&] { return error_of([&] { schedule::verify(plan); }); };
  const std::string start = "internal: internal error: plan: ";
  REQUIRE(verified() == "no error");
  CHECK(schedule::print(plan).find("  v5 temporary t2: f32[4, 8] in v0 at 128\n") != std::string::npos);
  CHECK(schedule::roots(plan) == std::vector<schedule::ValueId>{0, 1, 2, 1, 1, 0});
  SECTION("a part is missing when the whole is read") {
    std::swap(plan.steps[1], plan.steps[2]);
    CHECK(verified() == start + "step 1 'all' reads output 'y' (v1) before it is written");
  }
  SECTION("a hole") {
    plan.values[4].inside->offset_bytes = 144;
    CHECK(verified() == start + "nothing writes output 'y' (v1) at byte 128");
  }
  SECTION("two at one location") {
    plan.values[4].inside->offset_bytes = 0;
    CHECK(verified() == start + "two values lie at byte 0 of output 'y' (v1)");
  }
  SECTION("too short") {
    plan.values[4].dims = {3, 8};
    CHECK(verified() == start + "output 'y' (v1) has 256 bytes, its parts 224");
  }
  SECTION("the whole is written, too") {
    plan.steps.push_back({.work = schedule::CopyStep{0, 1}, .reads = {0}, .writes = {1}, .name = "again"});
    CHECK(verified() == start + "output 'y' (v1) is written, and so are values that lie in it");
  }
  SECTION("a part is written twice") {
    plan.steps.insert(plan.steps.begin(), plan.steps[0]);
    CHECK(verified() == start + "temporary 't3' (v3) is written 2 times, not once");
  }
  SECTION("not where it may begin") {
    plan.values[5].inside->offset_bytes = 40;
    CHECK(verified() == start + "temporary 't2' (v5) lies at byte 40 of input 'x' (v0)");
  }
  SECTION("part of an input") {
    plan.values[3].inside->whole = 0;
    plan.values[4].inside->whole = 0;
    CHECK(verified() == start + "input 'x' (v0) has 512 bytes, its parts 256");
  }
  SECTION("another type") {
    plan.values[5].dtype = i32;
    CHECK(verified() == start + "temporary 't2' (v5) has another type than its whole");
  }
  SECTION("a cycle") {
    plan.values[3].inside->whole = 4;
    CHECK(verified() == start + "temporary 't3' (v3) stands before the value that it lies in");
  }
  SECTION("overwritten") {
    plan.values[2].donor = 0;
    plan.steps.push_back({.work = schedule::CopyStep{5, 2}, .reads = {5}, .writes = {2}, .name = "late"});
    plan.steps.erase(plan.steps.begin() + 2);
    CHECK(verified() == start + "step 2 'late' reads what it overwrites");
  }
}

TEST_CASE("views: prepare refuses a location that the extents do not allow", "[runtime][views][emulated]") {
  // The first kernel reads a view of x, which is f32[B, 4].
  const auto prepared_with = [](const std::vector<Dim>& dims, const std::function<Dim(const Dim&)>& offset) {
    Compiled compiled = by_hand();
    Plan& plan = compiled.plan;
    const auto view = static_cast<schedule::ValueId>(plan.values.size());
    plan.values.push_back(
        {.name = "view", .dims = dims, .inside = schedule::Inside{0, offset(plan.values[0].dims[0])}});
    plan.steps[0].reads = {view};
    std::get<schedule::KernelStep>(plan.steps[0].work).buffers[0] = view;
    const Executable executable = runtime::make_executable(compiled, test_device());
    return error_of([&] { (void)executable.prepare({{"B", 3}}); });
  };
  CHECK(prepared_with({1, 4}, [](const Dim&) { return 0; }) == "no error");
  CHECK(prepared_with({1, 4}, [](const Dim& B) { return 16 * B; }) ==
        "internal: internal error: 'view' has 16 bytes at 48 of 48");
  CHECK(prepared_with({1, 4}, [](const Dim& B) { return 16 - 16 * B; }) ==
        "internal: internal error: 'view' has 16 bytes at -32 of 48");
  CHECK(prepared_with({1, 4}, [](const Dim& B) { return 4 * B; }) ==
        "internal: internal error: 'view' lies at 12, which is no multiple of 16");
}

}  // namespace
}  // namespace fuse::test
