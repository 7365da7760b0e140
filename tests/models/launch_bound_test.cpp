// The launches that GEMMs force: counted by hand. SPDX-License-Identifier: Apache-2.0
#include "models/model_runs.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

Tensor weight(Graph& g, const char* name, std::int64_t rows, std::int64_t columns) {
  return g.parameter(name, f32, {rows, columns});
}

}  // namespace

TEST_CASE("launch bound: a run of ops between two GEMMs is one launch", "[models]") {
  Graph g;
  const Tensor x = g.input("x", f32, {64, 32});
  const Tensor wide = matmul(exp(x), weight(g, "u", 32, 48));
  const Tensor kept = reshape(maximum(wide, 0), {32, 96});
  g.output("y", matmul(kept * kept, weight(g, "v", 96, 16)));
  CHECK(plan_model(g).bound == 2);
}

TEST_CASE("launch bound: what a GEMM computes with its product is no launch", "[models]") {
  Graph g;
  const Tensor x = g.input("x", f32, {64, 32}), bias = g.parameter("b", f32, {48});
  g.output("y", matmul(matmul(x, weight(g, "u", 32, 48)) + bias, weight(g, "v", 48, 16)));
  const PlannedModel planned = plan_model(g);
  CHECK(planned.bound == 0);
  CHECK(planned.steps == bench::StepCounts{.kernels = 0, .gemms = 2, .copies = 0});
}

TEST_CASE("launch bound: branches side by side count once, and the longest path counts", "[models]") {
  Graph g;
  const Tensor x = g.input("x", f32, {64, 32});
  const Tensor deep = exp(matmul(exp(matmul(x, weight(g, "a", 32, 40))), weight(g, "b", 40, 24)));
  const Tensor shallow = sin(x);
  g.output("deep", deep);
  g.output("shallow", shallow);
  g.output("both", sum(deep, {1}) + sum(shallow, {1}));
  CHECK(plan_model(g).bound == 2);
}

TEST_CASE("launch bound: what parameters alone determine is made once and counts nothing", "[models]") {
  Graph g;
  const Tensor x = g.input("x", f32, {64, 32});
  g.output("y", matmul(x, exp(weight(g, "u", 32, 48))));
  CHECK(plan_model(g).bound == 0);
}
