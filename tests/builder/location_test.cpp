// SPDX-License-Identifier: Apache-2.0
#include <fuse/functions.hpp>

#include "base/access.hpp"
#include "builder_support.hpp"

using namespace fuse;
using namespace fuse::test;

namespace {

/// The lines of all nodes from `first` on: one line when they agree, else 0.
std::uint32_t line_from(const Graph& g, std::size_t first) {
  std::uint32_t line = 0;
  for (std::size_t id = first; id < ir_of(g).nodes.size(); ++id) {
    const SourceLocation& at = ir_of(g).location(ir_of(g).nodes[id]);
    if (at.file != "location_test.cpp" || (line != 0 && at.line != line)) return 0;
    line = at.line;
  }
  return line;
}

/// The line of everything that `action` adds.
template <class F>
std::uint32_t line_of(const Graph& g, F action) {
  const std::size_t first = ir_of(g).nodes.size();
  action();
  REQUIRE(ir_of(g).nodes.size() > first);
  return line_from(g, first);
}

}  // namespace

TEST_CASE("sources carry the caller's line", "[builder][location]") {
  Graph g;
  const Dim B = g.dim("B");
  REQUIRE(line_of(g, [&] { g.input("x", f32, {B}); }) == __LINE__);
  REQUIRE(line_of(g, [&] { g.parameter("p", f32, {B}); }) == __LINE__);
  REQUIRE(line_of(g, [&] { g.constant(f32, 1.5, {B}); }) == __LINE__);
  REQUIRE(line_of(g, [&] { g.iota(i32, {B}, 0); }) == __LINE__);
  REQUIRE(line_of(g, [&] { g.dim_size(B); }) == __LINE__);
}

TEST_CASE("operators carry the caller's line, with what they imply", "[builder][location]") {
  Graph g;
  const Tensor x = g.input("x", f16, {4, 8}), y = g.input("y", f16, {8});
  REQUIRE(line_of(g, [&] { (void)(x + y); }) == __LINE__);
  REQUIRE(line_of(g, [&] { (void)(2 - x); }) == __LINE__);
  REQUIRE(line_of(g, [&] { (void)(-x); }) == __LINE__);
  REQUIRE(line_of(g, [&] { (void)(x * 0.5 > y); }) == __LINE__);
  REQUIRE(line_of(g, [&] { (void)(!(x == y) && x != 3); }) == __LINE__);
  REQUIRE(line_of(g, [&] { select(x > 0, maximum(x, y), 0); }) == __LINE__);
}

TEST_CASE("functions carry the caller's line", "[builder][location]") {
  Graph g;
  const Tensor x = g.input("x", f32, {4, 8}), i = g.input("i", i32, {3});
  REQUIRE(line_of(g, [&] { exp(x); }) == __LINE__);
  REQUIRE(line_of(g, [&] { convert(x, f16); }) == __LINE__);
  REQUIRE(line_of(g, [&] { broadcast_to(x, {2, 4, 8}); }) == __LINE__);
  REQUIRE(line_of(g, [&] { reshape(x, {-1}); }) == __LINE__);
  REQUIRE(line_of(g, [&] { transpose(x, {1, 0}); }) == __LINE__);
  REQUIRE(line_of(g, [&] { slice(x, 0, 1, 3); }) == __LINE__);
  REQUIRE(line_of(g, [&] { concat({x, x}, 0); }) == __LINE__);
  REQUIRE(line_of(g, [&] { gather(x, i, 1); }) == __LINE__);
  REQUIRE(line_of(g, [&] { mean(x, {0}, {.keep_dims = true}); }) == __LINE__);
  REQUIRE(line_of(g, [&] { argmax(x, 1); }) == __LINE__);
  REQUIRE(line_of(g, [&] { matmul(x, x, {.transpose_b = true}); }) == __LINE__);
}

TEST_CASE("every op of a compound function carries the caller's line", "[builder][location]") {
  Graph g;
  const Tensor x = g.input("x", bf16, {2, 4, 8, 8}), w = g.input("w", bf16, {8, 8}),
               b = g.input("b", bf16, {8});
  const Tensor labels = g.input("labels", i32, {8});
  REQUIRE(line_of(g, [&] { softmax(x); }) == __LINE__);
  REQUIRE(line_of(g, [&] { log_softmax(x); }) == __LINE__);
  REQUIRE(line_of(g, [&] { layer_norm(x, b, b); }) == __LINE__);
  REQUIRE(line_of(g, [&] { rms_norm(x, b); }) == __LINE__);
  REQUIRE(line_of(g, [&] { gelu(x); }) == __LINE__);
  REQUIRE(line_of(g, [&] { silu(x); }) == __LINE__);
  REQUIRE(line_of(g, [&] { linear(x, w); }) == __LINE__);
  REQUIRE(line_of(g, [&] { linear(x, w, b); }) == __LINE__);
  REQUIRE(line_of(g, [&] { embedding(w, labels); }) == __LINE__);
  REQUIRE(line_of(g, [&] { attention(x, x, x, {.causal = true}); }) == __LINE__);
  REQUIRE(line_of(g, [&] { cross_entropy(w, labels); }) == __LINE__);
  REQUIRE(line_of(g, [&] { (void)(x + 1); }) == __LINE__);  // the line is no longer fixed
}

TEST_CASE("an error inside a compound function has the caller's line", "[builder][location]") {
  Graph g;
  const Tensor x = g.input("x", f32, {4, 8}), w = g.input("w", f16, {8, 8});
  REQUIRE(error_of([&](auto& at) {
            at = here(), linear(x, w);
          }).starts_with("HERE: matmul(f32[4, 8], f16[8, 8]): "));
  REQUIRE(line_of(g, [&] { exp(x); }) == __LINE__);
  REQUIRE(last_node(g).scope == 0);  // and its scope is closed
}

TEST_CASE("equal lines are stored once", "[builder][location]") {
  Graph g;
  Tensor x = g.input("x", f32, {4});
  for (int i = 0; i < 100; ++i) x = x + 1;
  REQUIRE(ir_of(g).locations.size() == 3);  // unknown, the input, the loop
}
