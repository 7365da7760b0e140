// The expansions as text: tests/golden/functions/NAME.fuse.
// SPDX-License-Identifier: Apache-2.0
#include <fuse/executable.hpp>
#include <fuse/functions.hpp>

#include "base/access.hpp"
#include "builder_support.hpp"
#include "ir/graph/verify.hpp"
#include "support/golden.hpp"

using namespace fuse;
using namespace fuse::test;

namespace {

/// Compares the text of a graph whose only output is what `build` returns.
template <class F>
void check_expansion(const std::string& name, F build) {
  Graph g(name);
  g.output("y", build(g));
  ir::verify(ir_of(g));
  REQUIRE(Graph::parse(g.to_string()).to_string() == g.to_string());
  ir::Graph unplaced = ir_of(g);  // goldens must not move with the lines of this file
  for (SourceLocation& location : unplaced.locations) location = {};
  check_golden("functions/" + name + ".fuse", graph_of<Graph>(std::move(unplaced)).to_string());
}

}  // namespace

TEST_CASE("softmax subtracts the largest of the row", "[builder][functions]") {
  check_expansion("softmax", [](Graph& g) { return softmax(g.input("x", f32, {g.dim("B"), 1024})); });
  check_expansion("softmax_first_axis", [](Graph& g) { return softmax(g.input("x", bf16, {8, 16}), 0); });
  check_expansion("log_softmax", [](Graph& g) { return log_softmax(g.input("x", f32, {8, 16})); });
}

TEST_CASE("normalisations go over the row twice", "[builder][functions]") {
  check_expansion("layer_norm", [](Graph& g) {
    const Tensor x = g.input("x", bf16, {g.dim("B"), 768});
    const Tensor gamma = g.parameter("gamma", bf16, {768}), beta = g.parameter("beta", bf16, {768});
    return layer_norm(x, gamma, beta);
  });
  check_expansion("rms_norm", [](Graph& g) {
    const Tensor x = g.input("x", f32, {4, 1024});
    return rms_norm(x, g.parameter("gamma", f32, {1024}));
  });
}

TEST_CASE("activations", "[builder][functions]") {
  check_expansion("gelu", [](Graph& g) { return gelu(g.input("x", f16, {64})); });
  check_expansion("silu", [](Graph& g) { return silu(g.input("x", f64, {64})); });
}

TEST_CASE("linear is one matmul over the flattened leading dims", "[builder][functions]") {
  check_expansion("linear", [](Graph& g) {
    const Tensor x = g.input("x", f16, {g.dim("B"), 16, 32});
    return linear(x, g.parameter("w", f16, {32, 64}));
  });
  check_expansion("linear_bias", [](Graph& g) {
    const Tensor x = g.input("x", f16, {g.dim("B"), 16, 32}), w = g.parameter("w", f16, {32, 64});
    return linear(x, w, g.parameter("b", f16, {64}));
  });
  Graph g;
  const Tensor x = g.input("x", f32, {32}), w = g.input("w", f32, {32, 64});
  REQUIRE(linear(x, w).type_string() == "f32[64]");
}

TEST_CASE("embedding gathers rows", "[builder][functions]") {
  check_expansion("embedding", [](Graph& g) {
    const Tensor table = g.parameter("table", bf16, {1000, 64});
    return embedding(table, g.input("tokens", i64, {g.dim("B"), 8}));
  });
}

TEST_CASE("attention masks and normalises in f32", "[builder][functions]") {
  check_expansion("attention_causal", [](Graph& g) {
    const Dim B = g.dim("B"), T = g.dim("T");
    const Tensor q = g.input("q", bf16, {B, 12, T, 64}), k = g.input("k", bf16, {B, 12, T, 64});
    return attention(q, k, g.input("v", bf16, {B, 12, T, 64}), {.causal = true});
  });
  check_expansion("attention", [](Graph& g) {
    const Tensor q = g.input("q", f32, {2, 4, 7, 64}), k = g.input("k", f32, {2, 4, 9, 64});
    return attention(q, k, g.input("v", f32, {2, 4, 9, 32}));
  });
  check_expansion("attention_width", [](Graph& g) {
    const Tensor q = g.input("q", f64, {2, 4, 7, g.dim("D")});
    return attention(q, q, q);
  });
}

TEST_CASE("cross entropy picks by comparing with the class", "[builder][functions]") {
  check_expansion("cross_entropy", [](Graph& g) {
    const Dim B = g.dim("B");
    const Tensor logits = g.input("logits", bf16, {B, 1000});
    return cross_entropy(logits, g.input("labels", i32, {B}));
  });
}

TEST_CASE("compound functions refuse integers", "[builder][functions]") {
  Graph g;
  const Tensor i = g.input("i", i32, {4, 8}), x = g.input("x", f32, {4, 8}), w = g.input("w", i32, {8});
  const std::string tail = ": i32 is no floating type\n  hint: convert the argument to f32 first";
  REQUIRE(error_of([&](auto& at) { at = here(), gelu(i); }) == "HERE: gelu(i32[4, 8])" + tail);
  REQUIRE(error_of([&](auto& at) { at = here(), silu(i); }) == "HERE: silu(i32[4, 8])" + tail);
  REQUIRE(error_of([&](auto& at) { at = here(), softmax(i); }) == "HERE: softmax(i32[4, 8])" + tail);
  REQUIRE(error_of([&](auto& at) { at = here(), log_softmax(i); }) == "HERE: log_softmax(i32[4, 8])" + tail);
  REQUIRE(error_of([&](auto& at) { at = here(), rms_norm(x, w); }) ==
          "HERE: rms_norm(f32[4, 8], i32[8])" + tail);
  REQUIRE(error_of([&](auto& at) { at = here(), linear(i, i); }) ==
          "HERE: linear(i32[4, 8], i32[4, 8])" + tail);
  REQUIRE(code_of([&] { layer_norm(i, w, w); }) == ErrorCode::dtype_mismatch);
  REQUIRE(code_of([&] { gelu(i); }) == ErrorCode::dtype_mismatch);
}

TEST_CASE("compound functions check their shapes", "[builder][functions]") {
  Graph g;
  const Dim B = g.dim("B"), T = g.dim("T");
  const Tensor x = g.input("x", f32, {4, 8}), w = g.input("w", f32, {4}), s = g.input("s", f32, {});
  REQUIRE(error_of([&](auto& at) { at = here(), softmax(x, 2); }) ==
          "HERE: softmax(f32[4, 8]): axis 2 is out of range for rank 2\n  hint: axes are -2 to 1");
  REQUIRE(error_of([&](auto& at) { at = here(), rms_norm(s, w); }) ==
          "HERE: rms_norm(f32[], f32[4]): axis -1 is out of range for rank 0\n  hint: a scalar has no axes");
  REQUIRE(
      error_of([&](auto& at) { at = here(), rms_norm(x, w); }) ==
      "HERE: rms_norm(f32[4, 8], f32[4]): the last extent of x and the extent of argument 2 differ: 8 and 4\n"
      "  hint: check the order of the dims and of the arguments");
  REQUIRE(error_of([&](auto& at) { at = here(), linear(x, w); }) ==
          "HERE: linear(f32[4, 8], f32[4]): argument 2 has rank 1, not 2\n  hint: reshape it");
  REQUIRE(
      error_of([&](auto& at) { at = here(), linear(x, x); }) ==
      "HERE: linear(f32[4, 8], f32[4, 8]): the last extent of x and the first of the weight differ: 8 and 4\n"
      "  hint: check the order of the dims and of the arguments");
  REQUIRE(error_of([&](auto& at) { at = here(), gelu(2.0); }) ==
          "HERE: gelu(2): no operand is a tensor\n  hint: make a number a tensor with Graph::constant");
  REQUIRE(error_of([&](auto& at) { at = here(), rms_norm(x, 1); }) ==
          "HERE: rms_norm(f32[4, 8], 1): a number stands where a tensor is needed\n"
          "  hint: make it a tensor with Graph::constant");
  const Tensor q = g.input("q", f32, {B, 2, T, 8}), k = g.input("k", f32, {B, 2, 9, 8});
  REQUIRE(error_of([&](auto& at) { at = here(), attention(q, k, k, {.causal = true}); }) ==
          "HERE: attention(f32[B, 2, T, 8], f32[B, 2, 9, 8], f32[B, 2, 9, 8]): "
          "the lengths of q and k, equal in causal attention, differ: T and 9\n  hint: declare one dim "
          "for both, or say first that they are equal: g.assume(equal(T, 9))");
  REQUIRE(code_of([&] { attention(q, k, q); }) == ErrorCode::shape_mismatch);
  REQUIRE(code_of([&] { attention(x, x, x); }) == ErrorCode::shape_mismatch);
  const Tensor labels = g.input("labels", i64, {5});
  REQUIRE(error_of([&](auto& at) { at = here(), cross_entropy(x, labels); }) ==
          "HERE: cross_entropy(f32[4, 8], i64[5]): extents of dim 0 differ: 4 and 5\n"
          "  hint: check the order of the dims and of the arguments");
  REQUIRE(error_of([&](auto& at) { at = here(), cross_entropy(x, w); }) ==
          "HERE: cross_entropy(f32[4, 8], f32[4]): f32 is no integer type\n  hint: labels are i32 or i64");
  REQUIRE(error_of([&](auto& at) { at = here(), embedding(x, w); }) ==
          "HERE: embedding(f32[4, 8], f32[4]): f32 is no integer type\n  hint: indices are i32 or i64");
  REQUIRE(error_of([&](auto& at) {
            at = here(), logsumexp(x, {1, 1});
          }) ==
          "HERE: max(f32[4, 8]): axis 1 is named twice; this max is a part of logsumexp\n"
          "  hint: name each axis once; a negative axis counts from the end");
}

TEST_CASE("functions take dims that an assumption makes equal, and prepare checks it", "[builder]") {
  Graph g;
  const Dim K = g.dim("K"), L = g.dim("L"), N = g.dim("N");
  g.assume(equal(L, K));
  const Tensor x = g.input("x", f32, {3, K}), w = g.input("w", f32, {L, 2});
  REQUIRE(code_of([&] { linear(x, g.input("v", f32, {N, 2})); }) == ErrorCode::shape_mismatch);
  g.output("y", linear(x, w));
  const Executable executable = compile(g, Device::reference());
  REQUIRE_NOTHROW(executable.prepare({{"K", 4}, {"L", 4}, {"N", 1}}));
  REQUIRE(code_of([&] { executable.prepare({{"K", 4}, {"L", 5}, {"N", 1}}); }) == ErrorCode::violated_guard);
}

TEST_CASE("functions take a multiple that an assumption promises", "[builder]") {
  Graph g;
  const Dim H = g.dim("H"), G = g.dim("G"), C = g.dim("C");
  const Tensor q = g.input("q", f32, {1, H, 3, 4}), k = g.input("k", f32, {1, G, 5, 4});
  const Tensor x = g.input("x", f32, {2, C, 3}), scale = g.input("scale", f32, {C});
  REQUIRE(code_of([&] { attention(q, k, k); }) == ErrorCode::shape_mismatch);
  REQUIRE(code_of([&] { group_norm(x, 4, scale, scale); }) == ErrorCode::invalid_argument);
  g.assume(divisible(H, G));
  g.assume(divisible(C, 4));
  g.output("a", attention(q, k, k));
  g.output("n", group_norm(x, 4, scale, scale));
  const Executable executable = compile(g, Device::reference());
  REQUIRE_NOTHROW(executable.prepare({{"H", 8}, {"G", 2}, {"C", 12}}));
  REQUIRE(code_of([&] { executable.prepare({{"H", 7}, {"G", 2}, {"C", 12}}); }) == ErrorCode::violated_guard);
}
