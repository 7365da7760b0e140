// Functions that change shapes, axes without braces, assignment operators, and what is told of wrong ones.
// SPDX-License-Identifier: Apache-2.0
#include <fuse/executable.hpp>
#include <fuse/functions.hpp>

#include "base/access.hpp"
#include "value_support.hpp"

using namespace fuse;
using namespace fuse::test;

TEST_CASE("squeeze, unsqueeze and flatten", "[builder]") {
  Graph g;
  const Dim B = g.dim("B");
  const Tensor x = g.input("x", f32, {1, B, 1, 4});
  CHECK(squeeze(x).type_string() == "f32[B, 4]");
  CHECK(squeeze(x, -2).type_string() == "f32[1, B, 4]");
  CHECK(squeeze(x, {0, 2}).type_string() == "f32[B, 4]");
  CHECK(unsqueeze(x, 0).type_string() == "f32[1, 1, B, 1, 4]");
  CHECK(unsqueeze(squeeze(x), {0, -1}).type_string() == "f32[1, B, 4, 1]");
  CHECK(flatten(x).type_string() == "f32[4 * B]");
  CHECK(flatten(x, 1).type_string() == "f32[1, 4 * B]");
  CHECK(flatten(x, 1, 2).type_string() == "f32[1, B, 4]");
  CHECK(flatten(g.input("s", f32, {})).type_string() == "f32[1]");
  CHECK(error_of([&](auto& at) { at = here(), squeeze(x, 3); }) ==
        "HERE: squeeze(f32[1, B, 1, 4]): axis 3 has extent 4, not 1\n  hint: name axes of extent 1, or none "
        "for all of these");
  CHECK(code_of([&] { squeeze(x, 4); }) == ErrorCode::invalid_argument);
  CHECK(code_of([&] { unsqueeze(x, {1, 1}); }) == ErrorCode::invalid_argument);
  CHECK(code_of([&] { flatten(x, 2, 1); }) == ErrorCode::invalid_argument);
}

TEST_CASE("split, stack and slices of several axes", "[builder]") {
  const std::vector<double> x = wave(rows * width);
  Graph g;
  const Tensor t = g.input("x", f64, {rows, width});
  const std::vector<Tensor> uneven = split(t, {2, 3}, -1), even = split(t, rows, 0);
  CHECK(uneven[0].type_string() == "f64[3, 2]");
  CHECK(uneven[1].type_string() == "f64[3, 3]");
  REQUIRE(even.size() == 3);
  g.output("y", stack({flatten(even[2]), flatten(even[0])}, 1));
  std::vector<double> expected;
  for (int i = 0; i < width; ++i) expected.insert(expected.end(), {x[2 * width + i], x[i]});
  require_near(run(g, {{"x", host(x, {rows, width})}}), expected);

  Graph h;
  const Tensor u = h.input("x", f64, {rows, width});
  h.output("y", slice(u, {{.axis = 0, .start = 1, .limit = 3},
                          {.axis = -1, .start = 0, .limit = 5, .stride = 2}}));
  require_near(run(h, {{"x", host(x, {rows, width})}}), {x[5], x[7], x[9], x[10], x[12], x[14]});

  const Tensor symbolic = g.input("b", f32, {g.dim("B"), 6});
  CHECK(split(symbolic, {6}, 1).size() == 1);
  CHECK(split(symbolic, 2, 0)[1].type_string() == "f32[B / 2, 6]");
  CHECK(error_of([&](auto& at) { at = here(), split(symbolic, 4, 1); }) ==
        "HERE: split(f32[B, 6]): the extent 6 is no multiple of 4\n"
        "  hint: name the extents of the parts, as in split(x, {3, 2}, axis)");
  CHECK(error_of([&](auto& at) {
          at = here(), split(symbolic, {2, 3}, 1);
        }) ==
        "HERE: split(f32[B, 6]): the parts have 5 elements along axis 1, the operand 6\n"
        "  hint: the extents of the parts add up to the operand's");
  CHECK(code_of([&] { split(symbolic, 0, 1); }) == ErrorCode::invalid_argument);
  CHECK(
      error_of([&](auto& at) { at = here(), split(symbolic, std::int64_t{1} << 40, 0); }) ==
      "HERE: split(f32[B, 6]): 1099511627776 parts are asked for\n  hint: ask for 1 to 65536; each is an op");
  CHECK(code_of([&] { stack({t, symbolic}); }) == ErrorCode::shape_mismatch);
  CHECK(code_of([&] { stack({}); }) == ErrorCode::invalid_argument);
  CHECK(code_of([&] {
          slice(t, {{.axis = 1, .start = 0, .limit = 1}, {.axis = -1, .start = 0, .limit = 1}});
        }) == ErrorCode::invalid_argument);
}

TEST_CASE("the parts of a split are all of the operand, also where only the run knows the extents",
          "[builder]") {
  Graph g;
  const Dim S = g.dim("S"), R = g.dim("R");
  const Tensor x = g.input("x", f64, {S}), z = g.input("z", f64, {S});
  g.output("y", concat(split(x, 3, 0), 0));
  g.output("w", split(z, {R, R}, 0)[1]);
  const Executable executable = compile(g, Device::reference());
  REQUIRE_NOTHROW(executable.prepare({{"S", 6}, {"R", 3}}));
  CHECK(code_of([&] { executable.prepare({{"S", 10}, {"R", 5}}); }) == ErrorCode::violated_guard);
  CHECK(code_of([&] { executable.prepare({{"S", 12}, {"R", 5}}); }) == ErrorCode::violated_guard);
}

TEST_CASE("an axis needs no braces, and assignment operators keep the caller's line", "[builder]") {
  Graph g;
  const Tensor x = g.input("x", f32, {2, 3});
  CHECK(sum(x, 1).type_string() == "f32[2]");
  CHECK(mean(x, -2, {.keep_dims = true}).type_string() == "f32[1, 3]");
  CHECK(max(x, {1}).type_string() == "f32[2]");
  CHECK(min(x).type_string() == "f32[]");
  Tensor y = x;
  const std::string at = here(), text = error_of([&] { y += g.input("z", f32, {5, 5}); });
  CHECK(text.starts_with(at + "add(f32[2, 3], f32[5, 5])"));
  y += 1;
  y -= x;
  y *= 2;
  y /= x;
  CHECK(reverse(x, 1).type_string() == "f32[2, 3]");
  CHECK(reverse(x, {0, -1}).type_string() == "f32[2, 3]");
  Tensor bits = g.input("bits", i32, {2, 3});
  bits %= 8;
  bits &= 6;
  bits |= 1;
  bits ^= 3;
  CHECK(trace(g, ir_of(g).nodes.size() - 1).starts_with("bit_xor("));
  y /= 1;
  CHECK(trace(g, ir_of(g).nodes.size() - 1).starts_with("div("));
  CHECK(error_of([&](auto& line) { line = here(), maximum(x, g.input("w", f32, {4})); }) ==
        "HERE: maximum(f32[2, 3], f32[4]): extents 3 and 4 of dim -1 differ\n"
        "  hint: shapes align at the right; extents must be equal or 1");
}

TEST_CASE("where is select", "[builder]") {
  const std::vector<double> x = wave(rows * width);
  std::vector<double> expected = x;
  for (double& value : expected) value = value > 0 ? value : -1;
  require_near(of_rows(x, [](Tensor t) { return where(t > 0, t, -1); }), expected);
}
