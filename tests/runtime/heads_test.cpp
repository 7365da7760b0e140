// Attention's heads: GEMMs that write them side by side, against the reference.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/runtime_support.hpp"
#include "tensors/compare.hpp"
#include "tensors/random_fill.hpp"

namespace fuse::test {
namespace {

/// The weighted sum of values of each head, and the projection behind it. [B, heads, S, S] by [B, heads, S,
/// D].
Graph heads(const Dim& B, const Dim& S, std::int64_t count, std::int64_t D, DType type, Graph g) {
  const Tensor p = g.input("p", type, {B, count, S, S}), v = g.input("v", type, {B, count, S, D});
  const Tensor side_by_side = reshape(transpose(matmul(p, v), {0, 2, 1, 3}), {B, S, count * D});
  g.output("context", side_by_side);
  g.output("y", matmul(reshape(side_by_side, {B * S, count * D}), g.parameter("w", type, {count * D, 6})));
  return g;
}

/// Of small integers, whose sums are exact in every type. As values: cuBLASLt may make a sum of nothing but
/// zeros -0.
std::vector<std::vector<double>> outputs(const Executable& executable, const DimValues& dims) {
  Session session(executable, dims);
  for (std::size_t i = 0; i < executable.slots().size(); ++i) {
    const Slot& slot = executable.slots()[i];
    if (slot.kind == Slot::Kind::output) continue;
    runtime::HostTensor tensor = runtime::HostTensor::make(slot.dtype, session.prepared().shape(i));
    for (std::int64_t at = 0; at < tensor.element_count(); ++at)
      tensor.set(at, static_cast<double>((at * 7 + static_cast<std::int64_t>(i)) % 5 - 2));
    session.set(slot.name, tensor.data);
  }
  session.run();
  std::vector<std::vector<double>> values;
  for (const char* name : {"context", "y"}) {
    const std::size_t slot = executable.output_slot(name);
    runtime::HostTensor tensor =
        runtime::HostTensor::make(executable.slots()[slot].dtype, session.prepared().shape(slot));
    tensor.data = session.get(name);
    values.emplace_back();
    for (std::int64_t at = 0; at < tensor.element_count(); ++at) values.back().push_back(tensor.get(at));
  }
  return values;
}

TEST_CASE("heads side by side have the values of a transpose", "[runtime][device][heads]") {
  for (const DType type : {f64, f32, f16, bf16}) {
    for (const std::int64_t B : {1, 2, 3}) {
      const Graph g = heads(B, 5, 3, 4, type, Graph("heads"));
      const auto exact = outputs(compile(g, Device::reference()), {});
      for (const Device& device : test_devices()) {
        INFO(device.name() << ", " << to_string(type) << ", B = " << B);
        const Executable executable = compile(g, device);
        CHECK(outputs(executable, {}) == exact);
        const Prepared prepared = executable.prepare();
        // Two calls in place of one cost a launch, as the step would. Three cost two.
        CHECK(prepared.launches() == (B < 3 ? 0 : 1));
        CHECK(prepared.gemms() == (B < 3 ? B : 1) + 1);
      }
    }
  }
}

TEST_CASE("heads of a symbolic batch", "[runtime][device][heads]") {
  Graph g("symbolic");
  const Dim B = g.dim("B", {.min = 0, .max = 100, .hint = 1}),
            S = g.dim("S", {.min = 0, .max = 100, .hint = 5});
  g = heads(B, S, 2, 8, f32, std::move(g));
  const Executable oracle = compile(g, Device::reference());
  for (const Device& device : test_devices()) {
    const Executable executable = compile(g, device);
    for (const DimValues& dims :
         {DimValues{{"B", 1}, {"S", 5}}, {{"B", 4}, {"S", 33}}, {{"B", 0}, {"S", 5}}, {{"B", 2}, {"S", 1}}}) {
      INFO(device.name());
      CHECK(outputs(executable, dims) == outputs(oracle, dims));
    }
    CHECK(executable.prepare({{"B", 4}, {"S", 33}}).gemms() == 4 + 1);
  }
}

}  // namespace
}  // namespace fuse::test
