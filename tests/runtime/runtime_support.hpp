// What the runtime tests share: a small executable built by hand, and the text of an error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <fuse/fuse.hpp>
#include <string>
#include <vector>

#include "codegen_cuda/primitives.hpp"
#include "pipeline.hpp"
#include "runtime/executable_impl.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"

namespace fuse::test {

/// The whole text of the Error that `action` throws.
template <class F>
std::string error_of(F&& action) {
  try {
    action();
  } catch (const Error& error) {
    return std::string(to_string(error.code())) + ": " + error.what();
  }
  return "no error";
}

inline std::string text_of(const Status& status) {
  return std::string(to_string(status.code())) + ": " + std::string(status.message());
}

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

template <class T>
std::vector<T> values_of(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

inline codegen::KernelParam buffer_param(std::string name, bool written) {
  return {.name = std::move(name), .dtype = f32, .written = written};
}
inline codegen::KernelParam extent_param(std::string name, DType dtype = i64) {
  return {.kind = codegen::KernelParam::Kind::extent, .name = std::move(name), .dtype = dtype};
}

/// y = 2 x + w, z = y as two kernels and a copy: x f32[B, 4], parameter w f32[4], B in [0, 1000]. The
/// temporary between the kernels has the size of x.
inline Graph by_hand_graph() {
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

inline Compiled by_hand() {
  using schedule::PlanValue;
  const Graph g = by_hand_graph();
  Compiled c;
  c.graph = g.ir();
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

/// What by_hand computes.
inline std::vector<float> by_hand_result(const std::vector<float>& x, const std::vector<float>& w) {
  std::vector<float> y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * 2 + w[i % 4];
  return y;
}

inline Device checked_device() {
  return Device::emulated({.profile = "tiny3", .checked = true, .threads = 2});
}

}  // namespace fuse::test
