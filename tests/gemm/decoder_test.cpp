// A decoder with caches: nothing of a cache is copied, and the workspace does not grow with its capacity.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
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

constexpr std::int64_t heads = 4, width = 16, hidden = heads * width, batch = 2;

Tensor by_head(const Tensor& x) { return transpose(reshape(x, {batch, 1, heads, width}), {0, 2, 1, 3}); }

/// Layers of attention over the first N rows of caches, one row of which each run adds.
Graph decoder(int layers, std::int64_t capacity) {
  Graph g("decoder");
  const Dim n = g.dim("N", {.min = 1, .max = capacity, .hint = std::min<std::int64_t>(128, capacity)});
  Tensor x = g.input("x", f32, {batch, 1, hidden});
  const Tensor at = g.input("at", i64, {});
  for (int layer = 0; layer < layers; ++layer) {
    const std::string number = std::to_string(layer);
    const auto weight = [&](const std::string& name) {
      return broadcast_in_dim(g.parameter(name + number, f32, {hidden, hidden}), {batch, hidden, hidden},
                              {1, 2});
    };
    const auto cached = [&](const std::string& name, const Tensor& fresh) {
      const Tensor cache = g.input(name + number, f32, {batch, heads, capacity, width});
      const Tensor now = dynamic_update_slice(cache, fresh, {0, 0, at, 0});
      g.output(name + number + "_now", now, cache);
      return slice(now, 2, 0, n);
    };
    const Tensor keys = cached("keys", by_head(matmul(x, weight("wk"))));
    const Tensor values = cached("values", by_head(matmul(x, weight("wv"))));
    const Tensor scores = matmul(by_head(matmul(x, weight("wq"))), keys, {.transpose_b = true}) * 0.25;
    const Tensor mixed = matmul(softmax(scores), values);
    x = x + matmul(reshape(transpose(mixed, {0, 2, 1, 3}), {batch, 1, hidden}), weight("wo"));
  }
  g.output("y", x);
  return g;
}

std::vector<double> run_on(const Graph& g, const Device& device) {
  const Executable executable = compile(g, device);
  Session session(executable, {{"N", 5}});
  std::int64_t seed = 0;
  for (const Slot& slot : executable.slots()) {
    if (slot.kind == Slot::Kind::output) continue;
    std::vector<std::int64_t> shape;
    for (const Dim& dim : slot.dims) shape.push_back(dim.constant());
    HostTensor tensor = HostTensor::make(slot.dtype, shape);
    if (slot.dtype == i64) tensor.set_int(0, 4);
    for (std::int64_t i = 0; slot.dtype == f32 && i < tensor.element_count(); ++i)
      tensor.set(i, static_cast<double>((seed + 7 * i) % 17 - 8) / 64);
    session.set(slot.name, tensor.data);
    ++seed;
  }
  session.run();
  HostTensor y = HostTensor::make(f32, {batch, 1, hidden});
  y.data = session.get("y");
  std::vector<double> values;
  for (std::int64_t i = 0; i < y.element_count(); ++i) values.push_back(y.get(i));
  return values;
}

}  // namespace

TEST_CASE("decoder: caches are updated in place and read where they are", "[gemm][device]") {
  const Compiled compiled = run_pipeline(ir_of(decoder(2, 4096)), target_profile("h200"));
  const std::string choices = print(compiled.graph, compiled.partition.in_place);
  INFO(choices << print(compiled.graph, compiled.partition.views));
  CHECK(choices.find("copy") == std::string::npos);
  for (const schedule::Step& step : compiled.plan.steps) {
    CHECK(!std::holds_alternative<schedule::CopyStep>(step.work));
    for (const schedule::ValueId id : step.writes) {
      const schedule::PlanValue& value = compiled.plan.values[id];
      // Caches are written in part; everything else is small.
      if (!value.donor) CHECK(product(value.dims).hint() <= batch * heads * 128);
    }
  }
  std::vector<std::int64_t> bytes;
  for (const std::int64_t capacity : {256, 4096})
    bytes.push_back(
        compile(decoder(2, capacity), Device::emulated()).prepare({{"N", 128}}).workspace_bytes());
  CHECK(bytes[0] == bytes[1]);

  const Graph small = decoder(2, 16);
  const std::vector<double> exact = run_on(small, Device::reference());
  for (const Device& device : test::test_devices()) {
    const std::vector<double> got = run_on(small, device);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      INFO(device.name() << ", element " << i);
      CHECK(std::fabs(got[i] - exact[i]) <= 1e-5);
    }
  }
}
