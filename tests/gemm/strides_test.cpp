// GEMMs that read parts of other values in strides, in place of steps that copy them.
// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <fuse/fuse.hpp>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "target/target.hpp"
#include "tensors/host_tensor.hpp"

using namespace fuse;  // NOLINT
using runtime::HostTensor;

namespace {

struct Planned {
  std::size_t kernels = 0, gemms = 0, calls = 0;
  std::string views;
};

Planned planned(const Graph& g) {
  const Compiled compiled = run_pipeline(ir_of(g), target_profile("h200"));
  Planned result;
  for (const schedule::Step& step : compiled.plan.steps) {
    result.kernels += std::holds_alternative<schedule::KernelStep>(step.work);
    const auto* gemm = std::get_if<schedule::GemmStep>(&step.work);
    if (!gemm) continue;
    ++result.gemms;
    const auto& layout = gemm->layout_a ? gemm->layout_a : gemm->layout_b;
    result.calls += layout ? static_cast<std::size_t>(layout->outer.hint()) : 1;
  }
  result.views = print(compiled.graph, compiled.partition.views);
  return result;
}

/// Outputs for small integers, which every order of additions sums alike.
std::vector<std::vector<std::byte>> outputs_on(const Graph& g, const Device& device, const DimValues& dims) {
  const Executable executable = compile(g, device);
  Session session(executable, dims);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < executable.slots().size(); ++i) {
    const Slot& slot = executable.slots()[i];
    if (slot.kind == Slot::Kind::output) continue;
    std::vector<std::int64_t> shape;
    for (const Dim& dim : slot.dims) {
      shape.push_back(dim.is_constant() ? dim.constant() : dims.find(dim.to_string())->second);
    }
    HostTensor tensor = HostTensor::make(slot.dtype, shape);
    for (std::int64_t j = 0; j < tensor.element_count(); ++j) {
      const auto value = (first + 5 * j) % 7 - 3;
      if (slot.dtype == i64) {
        tensor.set_int(j, 2);
      } else {
        tensor.set(j, static_cast<double>(value));
      }
    }
    session.set(slot.name, tensor.data);
    ++first;
  }
  session.run();
  std::vector<std::vector<std::byte>> outputs;
  for (const Slot& slot : executable.slots()) {
    if (slot.kind == Slot::Kind::output) outputs.push_back(session.get(slot.name));
  }
  return outputs;
}

void check_everywhere(const Graph& g, const DimValues& dims = {}) {
  const auto exact = outputs_on(g, Device::reference(), dims);
  for (const Device& device : test::test_devices()) {
    INFO(device.name());
    CHECK(outputs_on(g, device, dims) == exact);
  }
}

}  // namespace

TEST_CASE("strides: a GEMM reads the first rows of a cache", "[gemm][device]") {
  for (const DType dtype : {f32, f64, f16}) {
    Graph g("prefix");
    const Dim n = g.dim("N", {.min = 1, .max = 64, .hint = 32});
    const Tensor cache = g.input("cache", dtype, {6, 64, 16}), q = g.input("q", dtype, {6, 3, 16});
    const Tensor rows = slice(cache, 1, 0, n);
    const Tensor scores = matmul(q, rows, {.transpose_b = true});
    g.output("scores", scores);
    g.output("y", matmul(scores, rows));
    const Planned plan = planned(g);
    INFO(plan.views);
    CHECK(plan.kernels == 0);
    CHECK(plan.gemms == 2);
    CHECK(plan.calls == 2);
    for (const std::int64_t value : {1, 7, 64}) check_everywhere(g, {{"N", value}});
  }
}

TEST_CASE("strides: heads that stand side by side", "[gemm][device]") {
  Graph g("heads");
  const Dim s = g.dim("S", {.min = 1, .max = 512, .hint = 128});
  const Tensor q = g.input("q", f32, {s, 8 * 16}), k = g.input("k", f32, {s, 8 * 16});
  const auto heads = [&](const Tensor& x) { return transpose(reshape(x, {s, 8, 16}), {1, 0, 2}); };
  g.output("scores", matmul(heads(q), heads(k), {.transpose_b = true}));
  const Planned plan = planned(g);
  INFO(plan.views);
  CHECK(plan.kernels == 0);
  CHECK(plan.calls == 1);
  check_everywhere(g, {{"S", 5}});
}

TEST_CASE("strides: a head of keys serves several heads of queries", "[gemm][device]") {
  for (const bool flat : {false, true}) {
    Graph g("grouped");
    const Dim n = g.dim("N", {.min = 1, .max = 64, .hint = 32});
    const Tensor cache = g.input("cache", f32, {2, 64, 16});
    const Tensor keys = broadcast_in_dim(slice(cache, 1, 0, n), {2, 4, n, 16}, {0, 2, 3});
    if (flat) {
      g.output("scores",
               matmul(g.input("q", f32, {8, 3, 16}), reshape(keys, {8, n, 16}), {.transpose_b = true}));
    } else {
      g.output("scores", matmul(g.input("q", f32, {2, 4, 3, 16}), keys, {.transpose_b = true}));
    }
    const Planned plan = planned(g);
    INFO(plan.views);
    CHECK(plan.kernels == 0);
    CHECK(plan.calls == 2);  // one for each head of keys
    check_everywhere(g, {{"N", 9}});
  }
}

TEST_CASE("strides: a transposed matrix is a flag", "[gemm][device]") {
  Graph g("flag");
  const Tensor x = g.input("x", f32, {4, 16, 24}), w = g.input("w", f32, {4, 16, 8});
  g.output("y", matmul(transpose(slice(x, 1, 4, 12), {0, 2, 1}), slice(w, 1, 0, 8)));
  const Planned plan = planned(g);
  INFO(plan.views);
  CHECK(plan.kernels == 0);
  check_everywhere(g);
}

TEST_CASE("strides: matrices whose columns lie side by side have the other flag", "[gemm][device]") {
  Graph g("columns");
  const Tensor x = g.input("x", f32, {24, 2, 16}), w = g.input("w", f32, {24, 2, 8});
  g.output("y", matmul(transpose(x, {1, 2, 0}), transpose(w, {1, 0, 2})));
  g.output("z", matmul(transpose(w, {1, 2, 0}), transpose(x, {1, 2, 0}), {.transpose_b = true}));
  const Planned plan = planned(g);
  INFO(plan.views);
  CHECK(plan.kernels == 0);
  check_everywhere(g);
}

TEST_CASE("strides: several parts of one value, and the result where a transpose wants it",
          "[gemm][device]") {
  Graph g("qkv");
  const Dim s = g.dim("S", {.min = 1, .max = 512, .hint = 128});
  const Tensor qkv = g.input("qkv", f32, {s, 3, 8, 16});
  const auto part = [&](std::int64_t i) {
    return transpose(reshape(slice(qkv, 1, i, i + 1), {s, 8, 16}), {1, 0, 2});
  };
  const Tensor scores = matmul(part(0), part(1), {.transpose_b = true});
  g.output("scores", scores);
  g.output("y", reshape(transpose(matmul(scores, part(2)), {1, 0, 2}), {s, 128}));
  const Planned plan = planned(g);
  INFO(plan.views);
  CHECK(plan.kernels == 0);
  CHECK(plan.gemms == 2);
  check_everywhere(g, {{"S", 4}});
}

TEST_CASE("strides: what stays a copy, and why", "[gemm][device]") {
  struct Case {
    const char* why;
    std::function<void(Graph&)> build;
  };
  std::vector<Case> cases = {
      {"neither the rows nor the columns",
       [](Graph& g) {
         const Tensor x = g.input("x", f32, {8, 16, 32}), w = g.input("w", f32, {8, 16, 4});
         Tensor odd = slice(slice(x, 2, 0, 32, 2), 1, 0, 16, 1);
         g.output("y", matmul(odd, w));
       }},
      {"is not proven to be a multiple of",
       [](Graph& g) {
         const Tensor x = g.input("x", f32, {8, 16, 32}), w = g.input("w", f32, {8, 16, 4});
         g.output("y", matmul(slice(x, 2, 1, 17), w));
       }},
      {"would begin 100 elements apart",
       [](Graph& g) {
         const Tensor x = g.input("x", f16, {64, 2, 100}), w = g.input("w", f16, {2, 64, 16});
         g.output("y", matmul(transpose(x, {1, 2, 0}), w));
       }},
      {"at no multiples of 16 bytes",
       [](Graph& g) {
         const Tensor x = g.input("x", f32, {8, 18}), w = g.input("w", f32, {16, 4});
         g.output("y", matmul(slice(x, 1, 0, 16), w));
       }},
      {"its batch has",
       [](Graph& g) {
         const Tensor x = g.input("x", f32, {4, 5, 6, 16, 16}), w = g.input("w", f32, {2, 3, 4, 16, 8});
         g.output("y", matmul(slice(slice(slice(x, 0, 0, 2), 1, 0, 3), 2, 0, 4), w));
       }},
  };
  cases.push_back({"is computed where it is read",
                   [](Graph& g) {  // an axis of two strides, of which a slice takes no whole part
                     const Tensor x = g.input("x", f32, {4, 6, 16, 32}), w = g.input("w", f32, {8, 32, 4});
                     const Tensor both = reshape(slice(x, 1, 0, 4), {16, 16, 32});
                     g.output("y", matmul(slice(both, 0, 2, 10), w));
                   }});
  for (const Case& item : cases) {
    Graph g("copy");
    item.build(g);
    const Planned plan = planned(g);
    INFO(plan.views);
    CHECK(plan.kernels == 1);
    CHECK(plan.views.find(item.why) != std::string::npos);
    check_everywhere(g);
  }
}

TEST_CASE("strides: a GEMM reads an updated cache in place", "[gemm][device]") {
  Graph g("decode");
  const Dim n = g.dim("N", {.min = 1, .max = 64, .hint = 32});
  const Tensor cache = g.input("cache", f32, {4, 64, 16}), fresh = g.input("fresh", f32, {4, 1, 16});
  const Tensor at = g.input("at", i64, {}), q = g.input("q", f32, {4, 1, 16});
  const Tensor now = dynamic_update_slice(cache, fresh, {0, at, 0});
  g.output("scores", matmul(q, slice(now, 1, 0, n), {.transpose_b = true}));
  g.output("now", now, cache);
  const Planned plan = planned(g);
  INFO(plan.views);
  CHECK(plan.kernels == 1);
  CHECK(plan.gemms == 1);
  check_everywhere(g, {{"N", 9}});
}

TEST_CASE("strides: matrices of no elements", "[gemm][device]") {
  Graph g("empty");
  const Dim z = g.dim("Z", {.min = 0, .max = 64, .hint = 8});
  const Tensor x = g.input("x", f32, {z, 8}), w = g.input("w", f32, {4, 16}), v = g.input("v", f32, {z, 16});
  g.output("y", matmul(slice(x, 1, 4, 8), w));
  g.output("k", matmul(slice(x, 1, 4, 8), v, {.transpose_a = true}));  // sums of nothing
  const Planned plan = planned(g);
  INFO(plan.views);
  CHECK(plan.kernels == 0);
  for (const std::int64_t value : {0, 1, 5}) check_everywhere(g, {{"Z", value}});
}

TEST_CASE("strides: calls that a GEMM makes anyway cost nothing more", "[gemm]") {
  Graph g("calls");
  const Tensor x = g.input("x", f32, {8, 1024, 16, 16}), w = g.input("w", f32, {8, 16, 16, 64});
  g.output("y", transpose(matmul(transpose(x, {0, 2, 1, 3}), w), {0, 2, 1, 3}));
  const Planned plan = planned(g);
  INFO(plan.views);
  CHECK(plan.kernels == 0);
  CHECK(plan.calls == 8);
}
