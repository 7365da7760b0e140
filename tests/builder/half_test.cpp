// SPDX-License-Identifier: Apache-2.0
#include "base/access.hpp"
#include "builder_support.hpp"

using namespace fuse;
using namespace fuse::test;

TEST_CASE("half arithmetic is convert, f32 op, convert", "[builder][half]") {
  for (const DType type : {f16, bf16}) {
    Graph g;
    const std::string t(to_string(type));
    const Tensor x = g.input("x", type, {4, 8}), y = g.input("y", type, {8});
    REQUIRE((x + y).dtype() == type);
    REQUIRE(trace(g, 2) ==
            "convert(%0) f32[4, 8]; convert(%1) f32[8]; broadcast_in_dim(%3) f32[4, 8]; "
            "add(%2, %4) f32[4, 8]; convert(%5) " +
                t + "[4, 8]");
    REQUIRE(exp(y).dtype() == type);
    REQUIRE(trace(g, 7) == "convert(%1) f32[8]; exp(%7) f32[8]; convert(%8) " + t + "[8]");
  }
}

TEST_CASE("half comparisons compare in f32 and stay bool", "[builder][half]") {
  Graph g;
  const Tensor x = g.input("x", bf16, {4});
  REQUIRE((x > 0.5).dtype() == boolean);
  REQUIRE(trace(g, 1) ==
          "convert(%0) f32[4]; constant() f32[]; broadcast_in_dim(%2) f32[4]; gt(%1, %3) bool[4]");
}

TEST_CASE("moving halves converts nothing", "[builder][half]") {
  Graph g;
  const Tensor x = g.input("x", f16, {4, 8}), c = g.input("c", boolean, {4, 8}), i = g.input("i", i32, {2});
  REQUIRE(transpose(x, {1, 0}).dtype() == f16);
  REQUIRE(reshape(x, {32}).dtype() == f16);
  REQUIRE(slice(x, 0, 0, 2).dtype() == f16);
  REQUIRE(concat({x, x}, 1).dtype() == f16);
  REQUIRE(gather(x, i, 0).dtype() == f16);
  REQUIRE(select(c, x, 1.5).dtype() == f16);
  for (const ir::Node& node : ir_of(g).nodes) REQUIRE(node.op != ir::Op::convert);
}

TEST_CASE("half reductions accumulate in f32 and round once", "[builder][half]") {
  Graph g;
  const Tensor x = g.input("x", f16, {4, 8});
  SECTION("sum") {
    sum(x, {1}, {.keep_dims = true});
    REQUIRE(trace(g, 1) ==
            "convert(%0) f32[4, 8]; reduce_sum(%1) f32[4]; convert(%2) f16[4]; reshape(%3) f16[4, 1]");
  }
  SECTION("mean divides before it rounds") {
    mean(x, {1});
    REQUIRE(trace(g, 1) ==
            "convert(%0) f32[4, 8]; reduce_sum(%1) f32[4]; constant() f32[]; broadcast_in_dim(%3) f32[4]; "
            "mul(%2, %4) f32[4]; convert(%5) f16[4]");
  }
  SECTION("argmax has positions, not values") {
    argmax(x, 1);
    REQUIRE(trace(g, 1) == "convert(%0) f32[4, 8]; argmax(%1) i64[4]");
  }
}

TEST_CASE("matmul takes halves as they are and rounds to the asked type", "[builder][half]") {
  Graph g;
  const Tensor x = g.input("x", f16, {4, 8});
  matmul(x, x, {.transpose_b = true});
  matmul(x, x, {.transpose_b = true, .result = f32});
  REQUIRE(trace(g, 1) == "matmul(%0, %0) f16[4, 4]; matmul(%0, %0) f32[4, 4]");
}

TEST_CASE("convert to the same type is no op", "[builder][half]") {
  Graph g;
  const Tensor x = g.input("x", f16, {4});
  convert(x, f16);
  REQUIRE(ir_of(g).nodes.size() == 1);
  REQUIRE(convert(x, bf16).type_string() == "bf16[4]");
  REQUIRE(ir_of(g).nodes.size() == 2);
}
