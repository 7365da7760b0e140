// What several accesses would compute again is stored past a small factor: texts, compile times and registers
// stay linear in the graph. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <fuse/fuse.hpp>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "schedule/schedule_support.hpp"
#include "support/devices.hpp"
#include "target/target.hpp"
#include "tensors/host_tensor.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

struct Counted {
  std::size_t kernels = 0, most_text = 0;
  std::size_t calls = 0;  ///< of the op, in all steps, per element
  std::size_t loads = 0;  ///< the same for loads
};

std::size_t count_of(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

/// Counts in the texts of kernels that compute one element per thread.
Counted counted(const Graph& g, std::string_view op) {
  const Compiled compiled = run_pipeline(ir_of(g), target_profile("h200"),
                                         {.partition = {.regional = false}});  // a kernel per segment
  const std::string texts = compiled.source.text();
  Counted result;
  for (const schedule::Step& step : compiled.plan.steps) {
    const auto* kernel = std::get_if<schedule::KernelStep>(&step.work);
    REQUIRE(kernel);
    const std::string& name = compiled.source.kernels[kernel->kernel].name;
    const std::size_t begin = texts.find(") " + name + "(");
    REQUIRE(begin != std::string::npos);
    const std::string_view text = std::string_view(texts).substr(begin, texts.find("\n}\n", begin) - begin);
    ++result.kernels;
    result.most_text = std::max(result.most_text, text.size());
    result.calls += count_of(text, op);
    result.loads += count_of(text, "load(");
  }
  return result;
}

/// The emulated device gives what the reference does.
void check_values(const Graph& g, std::int64_t elements) {
  std::vector<std::byte> results[2];
  for (const bool emulated : {false, true}) {
    Session session(compile(g, emulated ? Device::emulated() : Device::reference()));
    runtime::HostTensor x = runtime::HostTensor::make(f32, {elements});
    for (std::int64_t i = 0; i < elements; ++i) x.set(i, static_cast<double>(i % 17) / 16);
    session.set("x", x.data);
    session.run();
    results[emulated] = session.get("y");
  }
  runtime::HostTensor exact = runtime::HostTensor::make(f32, {elements}), got = exact;
  exact.data = results[0];
  got.data = results[1];
  for (std::int64_t i = 0; i < elements; ++i) {
    INFO(i);
    // A layer at most doubles an error, and errs by a few roundings itself.
    CHECK(std::fabs(exact.get(i) - got.get(i)) <= 1e-4);
  }
}

Tensor blurred(const Tensor& x, std::int64_t taps) {
  const std::int64_t n = x.dim(0).constant();
  const Tensor padded = pad(x, 0, {taps - 1}, {0});
  Tensor sum = slice(padded, 0, 0, n);
  for (std::int64_t i = 1; i < taps; ++i)
    sum = sum + slice(padded, 0, i, n + i) * (0.5 / static_cast<double>(i));
  return sum;
}

}  // namespace

TEST_CASE("layers of reversals do linear work", "[partition][emulated]") {
  for (const int layers : {10, 40}) {
    Graph g("rev");
    Tensor x = g.input("x", f32, {64});
    for (int i = 0; i < layers; ++i) x = sin(x + reverse(x, {0}));
    g.output("y", x);
    const Counted most = counted(g, "sinf(");
    CHECK(most.calls <= static_cast<std::size_t>(2 * layers));
    CHECK(most.loads <= static_cast<std::size_t>(2 * layers));
    CHECK(most.most_text < 3000);
    check_values(g, 64);
  }
}

TEST_CASE("layers of filters load each tap once", "[partition][emulated]") {
  Graph costly("fir"), cheap("blur");
  Tensor x = costly.input("x", f32, {512}), z = cheap.input("x", f32, {512});
  for (int i = 0; i < 4; ++i) {
    x = blurred(erf(x), 4);
    z = blurred(z, 4);
  }
  costly.output("y", x);
  cheap.output("y", z);
  const Counted filters = counted(costly, "error_function("), blurs = counted(cheap, "erf(");
  CHECK(filters.calls <= 8);
  CHECK(filters.loads <= 16);
  CHECK(filters.kernels == 4);
  CHECK(blurs.loads <= 16);
  check_values(costly, 512);
  check_values(cheap, 512);
}

TEST_CASE("layers of averages below a value that two outputs read load each tap once",
          "[partition][emulated]") {
  // Both outputs would compute all layers, until the last value is stored: then the layers belong to one
  // segment.
  Graph g("averages");
  Tensor x = g.input("x", f32, {600});
  const Tensor weight = g.constant(f32, 0.25, {600});
  g.output("weight", weight);
  for (int layer = 0; layer < 4; ++layer) {
    const Tensor padded = pad(x, 0, {2}, {2});
    Tensor total = slice(padded, 0, 0, 600);
    for (std::int64_t tap = 1; tap < 5; ++tap) total = total + slice(padded, 0, tap, 600 + tap);
    x = total * weight;
  }
  g.output("reversed", reverse(x, {0}) + 1.0F);
  g.output("y", x * x);
  const Counted of = counted(g, "exp");
  CHECK(of.loads <= 4 * 6 + 8);
  check_values(g, 600);
}

TEST_CASE("rotations that do no work twice have short texts all the same", "[partition][emulated]") {
  Graph g("roll");
  Tensor x = g.input("x", f32, {60});
  for (int i = 0; i < 12; ++i) x = sqrt(concat({slice(x, 0, 7, 60), slice(x, 0, 0, 7)}, 0));
  g.output("y", x);
  CHECK(counted(g, "sqrt").most_text < 20000);
  check_values(g, 60);
}

TEST_CASE("slices that do not overlap are one use, and few taps are computed again", "[partition]") {
  Graph g("split");
  const Tensor x = g.input("x", f32, {512});
  const Tensor made = tanh(tanh(tanh(x)));
  for (int i = 0; i < 4; ++i) g.output("y" + std::to_string(i), slice(made, 0, 128 * i, 128 * (i + 1)));
  const schedule::Partition cut = schedule::partition(prepared(g));
  CHECK(std::none_of(cut.segments.begin(), cut.segments.end(),
                     [](const auto& each) { return each.end == "repeated"; }));

  Graph two("two");
  const Tensor a = two.input("x", f32, {512});
  two.output("y", slice(tanh(a), 0, 0, 511) + slice(tanh(a), 0, 1, 512));
  CHECK(schedule::partition(prepared(two)).segments.size() == 1);
}

TEST_CASE("what is computed from positions has short texts too", "[partition][emulated]") {
  Graph g("positions");
  const Tensor x = g.input("x", f32, {64});
  Tensor v = g.iota(f32, {64}, 0);
  for (int i = 0; i < 12; ++i) v = v * 0.5 + reverse(v, {0});
  g.output("y", x + v);
  CHECK(counted(g, "reverse").most_text < 30000);
  check_values(g, 64);
}

TEST_CASE("where a slice begins is no work that is repeated", "[partition]") {
  Graph g("starts");
  const Tensor x = g.input("x", f32, {4096}), at = g.input("at", i32, {}), off = g.input("off", i32, {});
  g.output("y", tanh(dynamic_slice(x, {at + off}, {1024})));
  CHECK(schedule::partition(prepared(g)).segments.size() == 1);
}
