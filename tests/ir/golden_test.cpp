// The text form as files: tests/golden/graph/*.fuse.
// SPDX-License-Identifier: Apache-2.0
#include "support/golden.hpp"

#include "ir/text/print.hpp"
#include "ir_support.hpp"
#include "sample_graph.hpp"

using namespace fuse;
using namespace fuse::ir_test;
using fuse::test::check_golden;

namespace {

void check(const std::string& name, const ir::Graph& graph) {
  const std::string text = print(graph);
  REQUIRE(print(parse(text, name)) == text);
  check_golden("graph/" + name + ".fuse", text);
}

}  // namespace

TEST_CASE("the text of every op", "[ir][text]") { check("every_op", every_op()); }

TEST_CASE("the text of nested scopes and lines", "[ir][text]") {
  Maker m;
  m.graph.name = "ln";
  const Dim B = m.dim("B", {.min = 1, .max = 1048576, .hint = 4096});
  const LocationId call = m.location("main.cpp", 4), given = m.location("main.cpp", 3);
  const ScopeId norm = m.scope("layer_norm", 0, call), mean = m.scope("mean", norm, call);
  const NodeId x = m.add(Op::input, {}, NameAttr{"x"}, Type{bf16, {B, 1024}}, 0, given);
  const NodeId wide = m.add(Op::convert, {x}, NoAttr{}, Type{f32, {B, 1024}}, norm, call);
  const NodeId sum = m.add(Op::reduce_sum, {wide}, DimsAttr{{1}}, {}, mean, call);
  const NodeId scale = m.add(Op::constant, {}, ConstantAttr{0x1p-10, 0}, Type{f32, {}}, mean, call);
  const NodeId all = m.add(Op::broadcast_in_dim, {scale}, DimsAttr{}, Type{f32, {B}}, mean, call);
  const NodeId mean_value = m.add(Op::mul, {sum, all}, NoAttr{}, {}, mean, call);
  const NodeId spread =
      m.add(Op::broadcast_in_dim, {mean_value}, DimsAttr{{0}}, Type{f32, {B, 1024}}, norm, call);
  const NodeId centred = m.add(Op::sub, {wide, spread}, NoAttr{}, {}, norm, call);
  m.output("y",
           m.add(Op::convert, {centred}, NoAttr{}, Type{bf16, {B, 1024}}, norm, m.location("main.cpp", 5)));
  m.output("mean", m.add(Op::neg, {mean_value}, NoAttr{}, {}, 0, 0));
  check("scopes", m.graph);
}

TEST_CASE("a long signature has a line for each value", "[ir][text]") {
  Maker m;
  m.graph.name = "wide_signature";
  for (const std::string name : {"batch", "sequence", "vocabulary"}) {
    m.dim(name, {.min = 1, .max = 1 << 20, .hint = 1024});
  }
  for (const std::string name : {"query", "key", "value", "mask of keys"}) {
    const NodeId x = m.input(name, {f32, {Dim::symbol("batch", m.graph.symbols[0].range), 12, 64}});
    m.output("negative " + name, m.add(Op::neg, {x}));
  }
  check("signature", m.graph);
}
