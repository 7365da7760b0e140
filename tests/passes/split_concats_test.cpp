// SPDX-License-Identifier: Apache-2.0
#include "passes/split_concats.hpp"

#include "base/access.hpp"
#include "ir/graph/verify.hpp"
#include "support/op_sweep.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

TEST_CASE("split_concats keeps concats narrow and their meaning", "[passes][device]") {
  OpSweep sweep("wide");
  std::vector<Tensor> parts;
  for (int i = 0; i < 300; ++i) parts.push_back(sweep.input(f32, {2, 1 + i % 3}));
  sweep.expect_exact("concat of 300", concat(parts, 1));
  const ir::Graph split = ir::split_concats(ir_of(sweep.built()));
  ir::verify(split);
  std::size_t concats = 0;
  for (const ir::Node& node : split.nodes) {
    if (info(node.op).relation != ir::Relation::concat) continue;
    ++concats;
    CHECK(node.operands.size() <= 32);
  }
  CHECK(concats == 11);  // ten of up to 32, and the one of those
  sweep.run_on_test_devices();
}

TEST_CASE("split_concats makes no part of nothing where the operands fill all parts", "[passes]") {
  Graph g("full");
  const Tensor x = g.input("x", f32, {4});
  g.output("y", concat(std::vector<Tensor>(64, x), 0));
  const ir::Graph split = ir::split_concats(ir_of(g));
  ir::verify(split);
  CHECK(split.nodes.size() == ir_of(g).nodes.size() + 2);
}

TEST_CASE("split_concats leaves narrow ones alone", "[passes]") {
  Graph g("narrow");
  const Tensor x = g.input("x", f32, {4});
  g.output("y", concat(std::vector<Tensor>(32, x), 0));
  CHECK(ir::split_concats(ir_of(g)).nodes.size() == ir_of(g).nodes.size());
}
