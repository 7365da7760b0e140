// Products of whole graphs on the cpu device: decode steps, heads and 16-bit floats, which get their
// workspace from the plan.
//
// SPDX-License-Identifier: Apache-2.0
#include <fuse/fuse.hpp>

#include "fuzz/judge/execute.hpp"
#include "stitch/stitch_support.hpp"
#include "support/catch.hpp"
#include "support/stitch_cases.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// Judged against the error analysis of the reference on one thread and on three, which have the same bits.
void check_products(const Graph& graph, const DimValues& dims = {}) {
  std::vector<std::vector<std::byte>> results[2];
  for (const int threads : {1, 3}) {
    fuzz::RunOptions options;
    options.profile = "cpu";
    options.threads = threads;
    fuzz::Case judged = case_of(graph, options);
    judged.program.bindings = {dims};
    fuzz::Batch batch({std::move(judged)});
    const fuzz::Outcome outcome = batch.run(0, [&](const fuzz::Observed& observed) {
      for (const auto& [name, value] : observed.results) results[threads == 3].push_back(value.data);
    });
    INFO(outcome.text);
    CHECK(outcome.verdict == fuzz::Verdict::ok);
  }
  REQUIRE(!results[0].empty());
  CHECK(results[0] == results[1]);
}

}  // namespace

TEST_CASE("cpu: a decode step of each type and of few rows", "[cpu][gemm][emulated]") {
  for (const DType type : {f32, bf16, f16}) {
    for (const std::int64_t rows : {1, 5, 8}) {
      Graph g("decode");
      const Tensor x = g.input("x", type, {rows, 300}), up = g.parameter("up", type, {300, 700}),
                   down = g.parameter("down", type, {200, 700});
      const Tensor hidden = tanh(matmul(x, up));
      g.output("y", matmul(hidden, transpose(down, {1, 0})) + g.parameter("bias", type, {200}));
      check_products(g);
    }
  }
}

TEST_CASE("cpu: attention of small heads, and lengths known at run time", "[cpu][gemm][emulated]") {
  for (const DType type : {f32, bf16}) {
    Graph g("heads");
    const Dim N = g.dim("N", {.min = 1, .max = 200, .hint = 40});
    const Tensor q = g.input("q", type, {6, N, 32}), k = g.input("k", type, {6, N, 32}),
                 v = g.input("v", type, {6, N, 32});
    g.output("y", matmul(softmax(matmul(q, transpose(k, {0, 2, 1}))), v));
    for (const std::int64_t n : {1, 33, 150}) check_products(g, {{"N", n}});
  }
}

TEST_CASE("cpu: every other step of a recurrence reads the weight backwards", "[cpu][gemm][emulated]") {
  for (const std::int64_t rows : {1, 4}) {
    Graph g("steps");
    const Tensor w = g.parameter("w", f32, {200, 200});
    Tensor state = g.input("x", f32, {rows, 200});
    for (int step = 0; step < 5; ++step) state = tanh(matmul(state, w));
    g.output("y", state);
    check_products(g);
    const std::string text = compile(g, Device::cpu()).prepare().explain();
    int backwards = 0;
    for (std::size_t at = text.find(", backwards"); at != std::string::npos;
         at = text.find(", backwards", at + 1))
      ++backwards;
    CHECK(backwards == 2);
  }
}
