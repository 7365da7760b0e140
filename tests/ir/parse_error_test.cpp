// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/text/print.hpp"
#include "ir_support.hpp"

using namespace fuse;
using namespace fuse::ir_test;

namespace {

/// The error of one line in the body of a graph, without "f.fuse:3: ".
std::string line(const std::string& text) {
  const std::string error =
      parse_error("graph @g(%x: f32[B, 4], param %w: f32[4]) -> (y: f32[B, 4])\n where B in [1, 8] {\n" +
                  text + "\n return y = %x\n}\n");
  return error.starts_with("f.fuse:3: ") ? error.substr(10) : "elsewhere: " + error;
}

/// The same of one line in a signature.
std::string signature(const std::string& text) {
  const std::string error = parse_error(text + "\n{\n}\n");
  return error.starts_with("f.fuse:1: ") ? error.substr(10) : "elsewhere: " + error;
}

}  // namespace

TEST_CASE("errors have line and column", "[ir][parse]") {
  REQUIRE(parse_error("") == "f.fuse:1: column 1: expected 'graph' at the start, found the end of the text");
  REQUIRE(parse_error("# c\n  digraph") ==
          "f.fuse:2: column 3: expected 'graph' at the start, found 'digraph'");
  REQUIRE(parse_error("graph @g() -> () {\n} }") ==
          "f.fuse:2: column 3: expected the end of the text, found '}'");
  REQUIRE(line("  %2 = neg %x f32[B, 4]") == "column 15: expected ':' before the type, found 'f32'");
  REQUIRE(line("  neg %x") == "column 3: expected a value such as %1, 'scope', 'return' or '}', found 'neg'");
  REQUIRE(line("%2 = neg %x : f32[B 4]") == "column 21: expected ',' or ']', found '4'");
  REQUIRE(line("%2 = neg x : f32[B, 4]") == "column 10: expected ':' before the type, found 'x'");
  REQUIRE(line("%2 = add %x, : f32[B, 4]") == "column 14: expected a value such as %1, found ':'");
  REQUIRE(line("%2 = neg %x : f32[B, 4] at main.cpp") ==
          "column 28: expected a location such as main.cpp:4 after 'at'");
  REQUIRE(line(std::string("%2 = \0", 6)) == "column 6: expected an op, found '\\x00'");
  REQUIRE(thrown_code([] { parse("graph", "f"); }) == ErrorCode::parse);
}

TEST_CASE("an unknown op names the nearest", "[ir][parse]") {
  REQUIRE(line("%2 = reduce_sun %x {dims = [0]} : f32[4]") ==
          "column 6: unknown op reduce_sun\n  hint: did you mean 'reduce_sum', 'reduce_min'?");
  REQUIRE(line("%2 = fused_multiply_add %x : f32[4]") ==
          "column 6: unknown op fused_multiply_add\n  hint: fusec ops lists the ops");
  REQUIRE(line("%2 = input : f32[4]") ==
          "column 6: input is no op of a body\n  hint: inputs and parameters stand in the signature");
}

TEST_CASE("values are defined once, before their uses", "[ir][parse]") {
  REQUIRE(line("%2 = neg %7 : f32[B, 4]") == "column 10: unknown value %7\n  hint: define it above");
  REQUIRE(line("%2 = neg %z : f32[B, 4]") == "column 10: unknown value %z\n  hint: define it above");
  REQUIRE(line("%2 = neg %\"2\" : f32[B, 4]") == "column 10: unknown value %\"2\"\n  hint: define it above");
  REQUIRE(line("%2 = neg %x : f32[B, 4]  %2 = neg %x : f32[B, 4]") ==
          "column 26: value %2 is defined twice\n  hint: give each a name of its own");
  REQUIRE(line("%x = neg %x : f32[B, 4]") ==
          "column 1: value %x is defined twice\n  hint: give each a name of its own");
  const std::string cycle = " is used before it is defined\n  hint: values stand before their users";
  REQUIRE(line("%2 = neg %3 : f32[B, 4]  %3 = neg %2 : f32[B, 4]") == "column 10: %3" + cycle);
  REQUIRE(line("%2 = neg %2 : f32[B, 4]") == "column 10: %2" + cycle);
  REQUIRE(thrown_code([] { parse("graph @g() -> () { %0 = neg %1 : f32[] %1 = neg %0 : f32[] }", "f"); }) ==
          ErrorCode::cycle);
}

TEST_CASE("signatures are checked", "[ir][parse]") {
  const std::string own = "\n  hint: give each a name of its own";
  REQUIRE(signature("graph @g(%x: f32[], %x: f32[]) -> ()") == "column 21: value %x is defined twice" + own);
  REQUIRE(signature("graph @g(%B: f32[]) -> () where B in [0, 1]") ==
          "column 10: name B is defined twice" + own);
  REQUIRE(signature("graph @g() -> () where B in [0, 1], B in [0, 2]") ==
          "column 37: dim B is defined twice" + own);
  REQUIRE(signature("graph @g(%x: f32[]) -> (y: f32[], y: f32[])") ==
          "column 35: output y is defined twice" + own);
  REQUIRE(signature("graph @g(%1: f32[]) -> ()") ==
          "column 10: expected an input such as %x or param %w, found '%1'");
  REQUIRE(signature("graph @g(%\"\": f32[]) -> ()") == "column 10: the name is empty\n  hint: name it");
  REQUIRE(signature("graph @g(%x: f32[B]) -> ()") ==
          "column 18: unknown dim B\n  hint: declare it after the signature: where B in [0, 2147483647]");
  REQUIRE(signature("graph @g(%x: f8[4]) -> ()") ==
          "column 14: unknown element type f8\n"
          "  hint: the element types are f64, f32, f16, bf16, i64, i32, i8, u8 and bool");
  REQUIRE(signature("graph @g(%x: f32[-1]) -> ()") ==
          "input(): the extent -1 of dim 0 is negative\n  hint: an extent is 0 or more");
  REQUIRE(
      signature("graph @g() -> () where B in [2, 1]") ==
      "column 24: dim B has range [2, 1] and hint 0\n  hint: 0 <= min <= max; the hint is 0 or in the range");
  REQUIRE(signature("graph @g() -> () where B in [-1, 1]").starts_with("column 24: dim B has range [-1, 1]"));
  REQUIRE(signature("graph @g() -> () where B in [1, 2] hint 3").starts_with("column 24: dim B has range"));
  REQUIRE(signature("graph @g() -> () where B in [1, 9223372036854775808]") ==
          "column 33: 9223372036854775808 does not fit in 64 bits");
  REQUIRE(signature("graph @g(%x: f32[4) -> ()") ==
          "elsewhere: f.fuse:2: column 1: expected ']' after the extents, found '{'");
  REQUIRE(signature("graph @\"g") == "column 8: a quoted name does not end on its line");
  REQUIRE(signature("graph @\"\\q\"()") == "column 9: unknown escape in a quoted name");
}

TEST_CASE("type rules report the line", "[ir][parse]") {
  REQUIRE(line("%2 = add %x, %w : f32[B, 4]").starts_with("add(f32[B, 4], f32[4]): ranks differ: 2 and 1"));
  REQUIRE(line("%2 = neg %x : f32[B, 5]") ==
          "neg(f32[B, 4]): the result is stated as f32[B, 5]\n  hint: it is f32[B, 4]");
}

TEST_CASE("attributes are the op's", "[ir][parse]") {
  REQUIRE(line("%2 = neg %x {axis = 1} : f32[B, 4]") ==
          "column 14: neg has no attribute axis\n  hint: it has no attributes");
  REQUIRE(line("%2 = reduce_sum %x : f32[B]") ==
          "column 20: reduce_sum needs the attribute dims\n  hint: write {dims = ...} before the type");
  REQUIRE(line("%2 = reduce_sum %x {dims = [1], dims = [0]} : f32[B]") ==
          "column 33: attribute dims is defined twice\n  hint: give each a name of its own");
  REQUIRE(line("%2 = reduce_sum %x {dims = [B]} : f32[B]") == "column 29: expected an integer, found 'B'");
  REQUIRE(line("%2 = reduce_sum %x {dims = 1} : f32[B]") ==
          "column 28: expected '[' before the list, found '1'");
  REQUIRE(line("%2 = matmul %x, %w {transpose_a = 1} : f32[B]") ==
          "column 35: expected true or false, found '1'");
  std::string many = "%2 = reduce_sum %x {dims = [0";
  for (int i = 0; i < 40; ++i) many += ", 0";
  REQUIRE(line(many + "]} : f32[B]").find("a list has more than 32 items") != std::string::npos);
}

TEST_CASE("constants fit their types", "[ir][parse]") {
  const auto constant = [](const std::string& value, const std::string& dtype) {
    return line("%2 = constant {value = " + value + "} : " + dtype + "[]");
  };
  REQUIRE(constant("1.5", "i32") == "column 24: expected an integer, found '1.5'");
  REQUIRE(constant("true", "f32") == "column 24: expected a number, inf or nan, found 'true'");
  REQUIRE(constant("1", "bool") == "column 24: expected true or false, found '1'");
  // What would round to infinity or to zero.
  const std::pair<const char*, const char*> beyond[] = {
      {"f64", "1e999"}, {"f64", "1e-400"},  {"f32", "1e39"},        {"f32", "1e-46"},
      {"f16", "65520"}, {"f16", "0x1p-25"}, {"bf16", "0x1.ffp127"}, {"bf16", "4e-41"}};
  for (const auto& [dtype, out] : beyond) {
    REQUIRE(constant(out, dtype) == fmt::format("column 24: '{}' is out of the range of {}", out, dtype));
  }
  REQUIRE(constant("-1e39", "f16") == "column 25: '1e39' is out of the range of f16");
  REQUIRE(constant("-nan", "f16") == "column 25: a NaN has no sign\n  hint: write nan");
  REQUIRE(constant("0x", "f64") == "column 24: expected a number, inf or nan, found '0x'");
  REQUIRE(constant("1x", "f64") == "column 24: expected a number, inf or nan, found '1x'");
  REQUIRE(constant("-9223372036854775809", "i64") ==
          "column 24: -9223372036854775809 does not fit in 64 bits");
  REQUIRE(constant("2147483648", "i32") ==
          "constant(): the value 2147483648 does not fit in i32\n  hint: it holds -2147483648 to 2147483647");
  REQUIRE(constant("]", "f32") == "column 24: expected a number, inf, nan, true or false, found ']'");
}

TEST_CASE("dims report overflow and division by zero", "[ir][parse]") {
  const auto dim = [](const std::string& text) { return line("%2 = dim_size {dim = " + text + "} : i64[]"); };
  REQUIRE(dim("4294967296 * 4294967296") ==
          "column 22: arithmetic on extents overflows 63 bits\n  hint: use smaller extents");
  REQUIRE(dim("B / 0").starts_with("column 22: division of an extent by zero"));
  REQUIRE(dim("B % 0").starts_with("column 22: division of an extent by zero"));
  REQUIRE(dim("(B") == "column 24: expected ')' after the expression, found '}'");
  REQUIRE(dim("B +") == "column 25: expected an extent, found '}'");
  REQUIRE(dim("Q") ==
          "column 22: unknown dim Q\n  hint: declare it after the signature: where Q in [0, 2147483647]");
}

TEST_CASE("the outputs are those of the signature", "[ir][parse]") {
  const auto returned = [](const std::string& text) {
    const std::string error =
        parse_error("graph @g(%x: f32[4]) -> (y: f32[4], z: f32[4]) {\n" + text + "\n}");
    return error.starts_with("f.fuse:2: ") ? error.substr(10) : "elsewhere: " + error;
  };
  REQUIRE(returned("return z = %x") ==
          "column 8: expected the output y, found z\n  hint: outputs stand in the order of the signature");
  REQUIRE(returned("return y = %x") == "elsewhere: f.fuse:3: column 1: expected the output z, found '}'");
  REQUIRE(returned("return y = %x, z = %x, a = %x") ==
          "column 24: expected '}', found a\n  hint: outputs stand in the order of the signature");
  REQUIRE(returned("") ==
          "elsewhere: f.fuse:3: column 1: expected 'return' since the signature names outputs, found '}'");
  REQUIRE(returned("%1 = convert %x : f64[4] return y = %1, z = %x") ==
          "column 33: output y is f64[4], in the signature f32[4]\n  hint: correct the signature");
  REQUIRE(returned("scope s {\nreturn y = %x, z = %x }") ==
          "elsewhere: f.fuse:3: column 1: expected '}', a value or a scope, found 'return'");
}

TEST_CASE("an attribute's name that is none gets those of the op", "[ir][parse]") {
  for (int i = 0; i < op_count; ++i) {
    const auto op = static_cast<Op>(i);
    if (op == Op::input || op == Op::parameter) continue;
    INFO(to_string(op));
    const std::string error = line("%2 = " + std::string(to_string(op)) + " {Attr = 1} : f32[]");
    REQUIRE(error.find("has no attribute Attr\n  hint: it has ") != std::string::npos);
    const std::size_t hint = error.find("hint: ");
    REQUIRE(error.find("Attr", hint) == std::string::npos);
    // Each name of the list is taken: what is said is of its value.
    const AttributeNames names = attribute_names(empty_attribute(op));
    for (const auto* list : {&names.needed, &names.optional}) {
      for (const std::string_view name : *list) {
        INFO(name);
        REQUIRE(error.find(name, hint) != std::string::npos);
        REQUIRE(line(fmt::format("%2 = {} {{{} = }}", to_string(op), name)).find("has no attribute") ==
                std::string::npos);
      }
    }
  }
  REQUIRE(
      line("%2 = slice %x {begin = [0]} : f32[B]") ==
      "column 16: slice has no attribute begin\n  hint: it has the attributes starts, limits and strides");
  REQUIRE(line("%2 = reduce_sum %x {dim = 0} : f32[B]") ==
          "column 21: reduce_sum has no attribute dim\n  hint: it has the attribute dims");
  REQUIRE(line("%2 = add %x : f32[B, 4]") == "add(f32[B, 4]): the op has 1 operand\n  hint: it takes 2");
}

TEST_CASE("a donor that cannot be has a line and a column", "[ir][parse]") {
  const auto donors = [](const std::string& outputs) {
    return parse_error(
        "graph @g(%x: f32[4], %i: i32[4], param %w: f32[4]) -> (y: f32[4], z: f32[4]) {\n"
        "  %3 = neg %x : f32[4]\n  return y = %3 into " +
        outputs + "\n}\n");
  };
  REQUIRE(
      donors("%w, z = %3") ==
      "f.fuse:3: column 22: the donor of output 'y' is no input\n  hint: only an input has memory to give");
  REQUIRE(
      donors("%3, z = %3") ==
      "f.fuse:3: column 22: the donor of output 'y' is no input\n  hint: only an input has memory to give");
  REQUIRE(donors("%i, z = %3") ==
          "f.fuse:3: column 22: output 'y' is f32[4], its donor %i is i32[4]\n"
          "  hint: memory is given for a value of the same type");
  REQUIRE(donors("%x,\n  z = %3 into %x") ==
          "f.fuse:4: column 15: the donor of output 'z' is that of another output\n"
          "  hint: an input gives its memory once");
}
