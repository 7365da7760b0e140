// SPDX-License-Identifier: Apache-2.0
#include "runtime/runtime_support.hpp"

#include "base/access.hpp"

namespace fuse::test {

codegen::KernelParam buffer_param(std::string name, bool written) {
  return {.name = std::move(name), .dtype = f32, .written = written};
}
codegen::KernelParam extent_param(std::string name, DType dtype) {
  return {.kind = codegen::KernelParam::Kind::extent, .name = std::move(name), .dtype = dtype};
}

Graph by_hand_graph() {
  Graph g("byhand");
  const Dim B = g.dim("B", {.min = 0, .max = 1000, .hint = 8});
  const Tensor x = g.input("x", f32, {B, 4});
  const Tensor w = g.parameter("w", f32, {4});
  const auto scope = g.scope("affine");
  const Tensor y = x * 2 + w;
  g.output("y", y);
  g.output("z", y);
  return g;
}

Compiled by_hand() {
  using schedule::PlanValue;
  const Graph g = by_hand_graph();
  Compiled c;
  c.graph = ir_of(g);
  const Dim B = Dim::symbol("B", {.min = 0, .max = 1000, .hint = 8});
  c.plan.values = {{PlanValue::Kind::input, "x", f32, {B, 4}},
                   {PlanValue::Kind::parameter, "w", f32, {4}},
                   {PlanValue::Kind::output, "y", f32, {B, 4}},
                   {PlanValue::Kind::output, "z", f32, {B, 4}},
                   {PlanValue::Kind::temporary, "t0", f32, {B, 4}}};
  std::vector<ir::NodeId> made;  // by op name, in graph order
  for (ir::NodeId id = 0; id < c.graph.nodes.size(); ++id) {
    if (c.graph[id].op == ir::Op::mul || c.graph[id].op == ir::Op::add) made.push_back(id);
  }
  const Dim grid = ceil_div(B * 4, 32);
  c.plan.steps = {{.work = schedule::KernelStep{0, {0, 4}, {B}, grid},
                   .reads = {0},
                   .writes = {4},
                   .nodes = {made.at(0)},
                   .name = "scale"},
                  {.work = schedule::KernelStep{1, {4, 1, 2}, {B}, grid},
                   .reads = {4, 1},
                   .writes = {2},
                   .nodes = {made.at(1)},
                   .name = "shift"},
                  {.work = schedule::CopyStep{2, 3}, .reads = {2}, .writes = {3}, .name = "copy.z"}};
  c.source.name = "byhand";
  c.source.body =
      "FUSE_KERNEL(32) scale(global<const float> x, global<float> t, long long B) {\n"
      "  const long long i = blockIdx.x * 32ll + threadIdx.x;\n"
      "  if (i < B * 4) store(t, i, load(x, i) * 2);\n"
      "}\n"
      "FUSE_KERNEL(32) shift(global<const float> t, global<const float> w, global<float> y, long long B) {\n"
      "  const long long i = blockIdx.x * 32ll + threadIdx.x;\n"
      "  if (i < B * 4) store(y, i, load(t, i) + load(w, i % 4));\n"
      "}\n";
  c.source.primitives = {"global", "kernel", "load", "store"};
  c.source.prelude = codegen::cuda_prelude(c.source.primitives);
  c.source.kernels = {{.name = "scale",
                       .params = {buffer_param("x", false), buffer_param("t", true), extent_param("B")},
                       .block_threads = 32},
                      {.name = "shift",
                       .params = {buffer_param("t", false), buffer_param("w", false), buffer_param("y", true),
                                  extent_param("B")},
                       .block_threads = 32}};
  return c;
}

std::vector<float> by_hand_result(const std::vector<float>& x, const std::vector<float>& w) {
  std::vector<float> y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * 2 + w[i % 4];
  return y;
}

Device checked_device() { return Device::emulated({.profile = "tiny3", .checked = true, .threads = 2}); }

}  // namespace fuse::test
