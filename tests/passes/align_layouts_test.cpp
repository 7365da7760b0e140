// Transposes go into matmul flags, against each other, or become reshapes; others stay.
// SPDX-License-Identifier: Apache-2.0
#include "passes/align_layouts.hpp"

#include <algorithm>

#include "base/access.hpp"
#include "passes/common_subexpressions.hpp"
#include "passes/dead_code.hpp"
#include "passes/pass_support.hpp"
#include "support/sanitized.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

ir::Graph align(const ir::Graph& graph) {
  return ir::dead_code(ir::common_subexpressions(ir::align_layouts(graph)));
}

std::size_t transposes(const ir::Graph& graph) {
  std::size_t count = 0;
  for (const ir::Node& node : graph.nodes) count += info(node.op).relation == ir::Relation::permute;
  return count;
}

/// Checks that a graph means the same after the pass, which leaves `left` transposes.
ir::Graph check_align(const Graph& g, std::size_t left) {
  const ir::Graph after = align(ir_of(g));
  ir::verify(after);
  CHECK(transposes(after) == left);
  const bool same = outputs_of(after, 3) == outputs_of(ir_of(g), 3);
  CHECK(same);
  CHECK(print(align(after)) == print(after));
  return after;
}

}  // namespace

TEST_CASE("align_layouts does what its header shows", "[passes]") {
  const ir::Graph before = parse_snippet(header_snippet("align_layouts", "Before"));
  const ir::Graph after = parse_snippet(header_snippet("align_layouts", "After"));
  CHECK(print(align(before)) == print(after));
}

TEST_CASE("align_layouts puts transposes of operands into a matmul's flags", "[passes]") {
  for (const bool flag_a : {false, true}) {
    for (const bool flag_b : {false, true}) {
      Graph g("flags");
      const Tensor a = g.input("a", f32, flag_a ? std::vector<Dim>{2, 3, 4} : std::vector<Dim>{2, 4, 3});
      const Tensor b = g.input("b", f32, flag_b ? std::vector<Dim>{2, 4, 5} : std::vector<Dim>{2, 5, 4});
      g.output("y", matmul(transpose(a, {0, 2, 1}), transpose(b, {0, 2, 1}),
                           {.transpose_a = flag_a, .transpose_b = flag_b}));
      const ir::Graph after = check_align(g, 0);
      const ir::Node& root = after[after.outputs[0].node];
      CHECK(ir::attr<ir::MatmulAttr>(root) == ir::MatmulAttr{!flag_a, !flag_b});
    }
  }
}

TEST_CASE("align_layouts leaves transposes of a batch dim, and those that kernels read through", "[passes]") {
  Graph batch("batch");
  const Tensor a = batch.input("a", f32, {3, 2, 4}), b = batch.input("b", f32, {2, 4, 5});
  batch.output("y", matmul(transpose(a, {1, 0, 2}), b));
  check_align(batch, 1);

  Graph read("read");
  const Tensor x = read.input("x", f32, {3, 4}), z = read.input("z", f32, {4, 3});
  read.output("y", tanh(transpose(x, {1, 0})) + z);
  const ir::Graph after = check_align(read, 1);
  CHECK(print(after) == print(ir_of(read)));
}

TEST_CASE("align_layouts takes transposes of transposes away through element-wise ops", "[passes]") {
  Graph g("through");
  const Tensor x = g.input("x", f32, {2, 3, 4}), z = g.input("z", f32, {2, 3, 4}), b = g.input("b", f32, {3});
  const Tensor left = transpose(x, {2, 0, 1}), right = transpose(z, {2, 0, 1});
  const Tensor sum = exp(left) + select(left < right, right * 0.5, broadcast_in_dim(b, {4, 2, 3}, {2}));
  g.output("y", transpose(sum, {1, 2, 0}));
  check_align(g, 0);
}

TEST_CASE("align_layouts leaves one transpose where two do not cancel", "[passes]") {
  Graph g("two");
  const Tensor x = g.input("x", f32, {2, 3, 4});
  g.output("y", transpose(tanh(transpose(x, {2, 0, 1})), {2, 0, 1}));
  check_align(g, 1);
}

TEST_CASE("align_layouts computes nothing twice", "[passes]") {
  Graph g("shared");
  const Tensor x = g.input("x", f32, {3, 4});
  const Tensor t = tanh(transpose(x, {1, 0}));
  g.output("t", t);
  g.output("y", transpose(t, {1, 0}));
  const ir::Graph after = check_align(g, 2);
  CHECK(print(after) == print(ir_of(g)));
}

TEST_CASE("align_layouts turns the transpose of a product around", "[passes]") {
  Graph g("product");
  const Tensor a = g.input("a", f32, {3, 4}), b = g.input("b", f32, {4, 5});
  g.output("y", transpose(convert(matmul(a, b), bf16), {1, 0}));
  const ir::Graph after = check_align(g, 0);
  CHECK(after[after.outputs[0].node].op == ir::Op::convert);

  // Without a transpose to save, the product stays as it is.
  Graph plain("plain");
  const Tensor c = plain.input("c", f32, {3, 4}), d = plain.input("d", f32, {4, 5}),
               e = plain.input("e", f32, {5, 2});
  plain.output("y", matmul(tanh(matmul(c, d)), e));
  CHECK(print(check_align(plain, 0)) == print(ir_of(plain)));
}

TEST_CASE("align_layouts makes a reshape of a transpose that moves dims of extent 1", "[passes]") {
  Graph g("units");
  const Dim B = g.dim("B", {.min = 1, .max = 9});
  const Tensor x = g.input("x", f32, {B, 1, 4});
  g.output("y", transpose(x, {1, 0, 2}));
  g.output("z", transpose(x, {2, 1, 0}));
  const ir::Graph after = align(ir_of(g));
  CHECK(after[after.outputs[0].node].op == ir::Op::reshape);
  CHECK(after[after.outputs[1].node].op == ir::Op::transpose);
}

TEST_CASE("align_layouts works through symbolic dims", "[passes]") {
  Graph g("symbols");
  const Dim B = g.dim("B", {.min = 1, .max = 9}), T = g.dim("T", {.min = 1, .max = 9});
  const Tensor x = g.input("x", f32, {B, T}), w = g.input("w", f32, {B, 5});
  g.output("y", matmul(transpose(x, {1, 0}) * 2.0, w));
  const ir::Graph after = align(ir_of(g));
  ir::verify(after);
  CHECK(transposes(after) == 0);
}

TEST_CASE("align_layouts keeps the meaning of random graphs", "[passes]") {
  constexpr std::uint64_t first = 1, last = 200;
  std::size_t before = 0, left = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    Graph g("random");
    std::vector<Tensor> values = {g.input("a", f32, {3, 3}), g.input("b", f32, {3, 3}),
                                  broadcast_in_dim(g.input("c", f32, {3}), {3, 3}, {1})};
    const auto any = [&] {
      return values[values.size() - 1 - random() % std::min<std::size_t>(values.size(), 3)];
    };
    for (int i = 0; i < 14; ++i) {
      switch (random() % 6) {
        case 0:
        case 1:
          values.push_back(transpose(any(), {1, 0}));
          break;
        case 2:
          values.push_back(
              matmul(any(), any(), {.transpose_a = random() % 2 == 0, .transpose_b = random() % 2 == 0}));
          break;
        case 3:
          values.push_back(any() + any());
          break;
        case 4:
          values.push_back(tanh(any()) * 0.5);
          break;
        case 5:
          values.push_back(select(any() < any(), any(), any()));
          break;
      }
    }
    g.output("y", values.back());
    g.output("z", values[values.size() - 3]);
    const ir::Graph graph = ir::dead_code(ir::common_subexpressions(ir_of(g))), after = align(graph);
    ir::verify(after);
    CHECK(transposes(after) <= transposes(graph));
    before += transposes(graph);
    left += transposes(after);
    const bool same = outputs_of(after, seed) == outputs_of(graph, seed);
    CHECK(same);
  }
  CHECK(left * 2 < before);
}

TEST_CASE("align_layouts of a chain of 100,000 ops between two transposes", "[passes]") {
  Graph g("deep");
  const Tensor x = g.input("x", f32, {3, 4});
  Tensor t = transpose(x, {1, 0});
  for (int i = 0; i < fewer(100'000); ++i) t = tanh(t);
  g.output("y", transpose(t, {1, 0}));
  CHECK(transposes(align(ir_of(g))) == 0);
}

TEST_CASE("align_layouts keeps apart operands that are transposed in different ways", "[passes]") {
  // Of equal extents, so that nothing but the permutations tells them apart.
  Graph g("cube");
  const Tensor x = g.input("x", f32, {4, 4, 4}), y = g.input("y", f32, {4, 4, 4});
  g.output("sum", transpose(x, {1, 2, 0}) + transpose(y, {2, 0, 1}));
  g.output("product", transpose(x * y, {1, 2, 0}) * transpose(y, {1, 2, 0}));
  const ir::Graph after = align(ir_of(g));
  ir::verify(after);
  const bool same = outputs_of(after, 3) == outputs_of(ir_of(g), 3);
  CHECK(same);
}

TEST_CASE("align_layouts keeps what element-wise ops of operands in different layouts compute", "[passes]") {
  // All permutations of a cube against each other and against broadcasts; behind the op the first one is
  // taken back.
  std::vector<std::vector<std::int64_t>> permutations;
  std::vector<std::int64_t> order = {0, 1, 2};
  do permutations.push_back(order);
  while (std::next_permutation(order.begin(), order.end()));
  for (const auto& first : permutations) {
    std::vector<std::int64_t> back(3);
    for (std::size_t i = 0; i < 3; ++i)
      back[static_cast<std::size_t>(first[i])] = static_cast<std::int64_t>(i);
    Graph g("cubes");
    const Tensor x = g.input("x", f32, {4, 4, 4}), y = g.input("y", f32, {4, 4, 4}),
                 b = g.input("b", f32, {4, 4});
    const Tensor turned = transpose(x, first);
    const auto output = [&](const std::string& name, const Tensor& other) {
      g.output(name + "_right", transpose(turned + other, back));
      g.output(name + "_left", transpose(other - turned, back));
    };
    for (std::size_t i = 0; i < permutations.size(); ++i)
      output("p" + std::to_string(i), transpose(y, permutations[i]));
    for (const std::vector<std::int64_t>& dims : {std::vector<std::int64_t>{0, 1}, {0, 2}, {1, 2}})
      output("b" + std::to_string(dims[0]) + std::to_string(dims[1]), broadcast_in_dim(b, {4, 4, 4}, dims));
    const ir::Graph after = align(ir_of(g));
    ir::verify(after);
    const bool same = outputs_of(after, 3) == outputs_of(ir_of(g), 3);
    INFO(print(after));
    CHECK(same);
  }
}
