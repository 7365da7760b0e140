// Equal extents take one form; needs become assumptions; nothing changes where nothing is known.
// SPDX-License-Identifier: Apache-2.0
#include "passes/canonical_dims.hpp"

#include "analysis/facts.hpp"
#include "base/access.hpp"
#include "passes/pass_support.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// The text of a snippet that a header shows over several lines.
std::string long_snippet(const std::string& pass, const std::string& label) {
  std::ifstream in(pass_header(pass));
  REQUIRE(in.is_open());
  std::string text;
  const std::string start = "// " + label + ":";
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(start)) {
      text = line.substr(start.size());
    } else if (!text.empty() && line.starts_with("//  ")) {
      text += line.substr(2);
    } else if (!text.empty()) {
      break;
    }
  }
  return text;
}

}  // namespace

TEST_CASE("canonical_dims does what its header shows", "[passes][facts]") {
  const ir::Graph before = parse_snippet(long_snippet("canonical_dims", "Before"));
  const ir::Graph after = ir::canonical_dims(before);
  ir::verify(after);
  CHECK(print(after) == print(parse_snippet(long_snippet("canonical_dims", "After"))));
  CHECK(print(ir::canonical_dims(after)) == print(after));
}

TEST_CASE("canonical_dims leaves graphs without constraints alone", "[passes][facts]") {
  const ir::Graph before = parse_snippet(
      "graph @g(%x: f32[B, T]) -> (y: f32[B * T]) where B in [1, 9], T in [4, 4] { %1 = reshape %x : f32[B * "
      "T] "
      "return y = %1 }");
  CHECK(print(ir::canonical_dims(before)) == print(before));
}

TEST_CASE("canonical_dims makes needs assumptions, which outlive the op", "[passes][facts]") {
  Graph g("g");
  const Dim A = g.dim("A"), B = g.dim("B"), C = g.dim("C"), N = g.dim("N");
  const Tensor x = g.input("x", f32, {A, 4}), y = g.input("y", f32, {B, 4});
  const Tensor z = slice(reshape(x + y, {C, 2}), 0, 1, N);
  g.output("z", z);
  ir::Graph after = ir::canonical_dims(ir_of(g));
  ir::verify(after);
  REQUIRE(after.assumptions.size() == 4);
  CHECK(after.assumptions[0].relation.to_string() == "B = A");
  CHECK(after.assumptions[1].relation.to_string() == "4 * A = 2 * C");
  CHECK(after.assumptions[2].relation.to_string() == "1 <= N");
  CHECK(after.assumptions[3].relation.to_string() == "N <= C");
  CHECK(after.locations[after.assumptions[0].location].file == "canonical_dims_test.cpp");
  CHECK(after[1].type == after[0].type);
  after.nodes.resize(2);
  after.outputs = {{"z", 0}};
  const analysis::Facts facts = analysis::facts_of(after);
  CHECK(facts.equal(B, A));
  CHECK(facts.equal(C, 2 * B));
  CHECK(facts.le(N, C));
}

TEST_CASE("canonical_dims knows the dims of a pad", "[passes][facts]") {
  const ir::Graph before = parse_snippet(
      "graph @g(%x: f32[A], %z: f32[B]) -> (y: f32[A + B + A], w: f32[A]) where A in [1, 9], B in [1, 9] "
      "assuming A = B { "
      "%1 = constant {value = 0x0p+0} : f32[] "
      "%2 = pad %x, %1 {low = [B], high = [A]} : f32[A + B + A] "
      "%3 = add %x, %z : f32[A] "
      "return y = %2, w = %3 }");
  const std::string after = print(ir::canonical_dims(before));
  INFO(after);
  CHECK(after.find("low = [A], high = [A]") != std::string::npos);
}

TEST_CASE("canonical_dims knows where a slice begins and ends", "[passes][facts]") {
  const ir::Graph before = parse_snippet(
      "graph @g(%x: f32[A + B], %z: f32[B]) -> (y: f32[A], w: f32[A]) where A in [1, 9], B in [1, 9] "
      "assuming A = B { "
      "%1 = slice %x {starts = [B], limits = [A + B], strides = [1]} : f32[A] "
      "%2 = add %1, %z : f32[A] "
      "return y = %1, w = %2 }");
  const std::string after = print(ir::canonical_dims(before));
  INFO(after);
  CHECK(after.find("starts = [A], limits = [2 * A]") != std::string::npos);
}
