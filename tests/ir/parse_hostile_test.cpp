// Text that was cut, damaged or written to do harm gives an Error, never a crash or a hang.
// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "ir/text/print.hpp"
#include "ir_support.hpp"
#include "sample_graph.hpp"
#include "support/sanitized.hpp"

using namespace fuse;
using namespace fuse::ir_test;

namespace {

// Each takes a parse: under a sanitizer every seventh byte does.
const std::size_t every = test::sanitized() ? 19 : 1;

/// Whether the text is a graph; anything thrown but an Error of the user fails.
bool parses(const std::string& text) {
  try {
    parse(text, "hostile.fuse");
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::user || error.info().message.empty()) FAIL(error.what());
    return false;
  }
}

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

std::string with_dim(const std::string& dim) {
  return "graph @g() -> () where A in [0, 9], B in [0, 9], C in [0, 9], D in [0, 9], E in [0, 9] {\n"
         "  %0 = dim_size {dim = " +
         dim + "} : i64[]\n}\n";
}

}  // namespace

TEST_CASE("a text cut at any byte is refused", "[ir][parse]") {
  const std::string text = print(every_op());
  REQUIRE(parses(text));
  REQUIRE(parses(text.substr(0, text.size() - 1)));  // only the last line break is missing
  for (std::size_t size = 0; size + 1 < text.size(); size += every) {
    INFO("cut at byte " << size);
    REQUIRE(!parses(text.substr(0, size)));
  }
}

TEST_CASE("a text with damaged bytes is a graph or is refused", "[ir][parse]") {
  const std::string text = print(every_op());
  const auto seed = std::random_device()();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  int refused_texts = 0;
  for (int round = 0; round < test::fewer(3000); ++round) {
    std::string damaged = text;
    for (unsigned changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged[at] = static_cast<char>(damaged[at] ^ 1 << random() % 8);
          break;
        case 2:
          damaged.erase(at, 1 + random() % 20);
          break;
        default:
          damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 40));
      }
      if (damaged.empty()) damaged = " ";
    }
    refused_texts += !parses(damaged);
  }
  REQUIRE(refused_texts > test::fewer(1000));
}

TEST_CASE("each byte is replaced by NUL and by others", "[ir][parse]") {
  const std::string text = print(every_op());
  for (std::size_t at = 0; at < text.size(); at += every) {
    for (const char byte : {'\0', '"', '(', '%', '\xff', '9'}) {
      std::string damaged = text;
      damaged[at] = byte;
      parses(damaged);
    }
  }
  SUCCEED();
}

TEST_CASE("nesting is bounded", "[ir][parse]") {
  REQUIRE(parses(with_dim(repeated("(", 200) + "1" + repeated(")", 200))));
  REQUIRE(parse_error(with_dim(repeated("(", 100000) + "1")).find("parentheses nest too deeply") !=
          std::string::npos);
  REQUIRE(parses(with_dim(repeated("-", 100000) + "1")));
  REQUIRE(parse_error("graph @g() -> () {" + repeated("scope a {", 100000)).find("scopes nest too deeply") !=
          std::string::npos);
  REQUIRE(parse_error("graph @g(%x: f32[] in a" + repeated("/a", 100000) + ") -> () {}")
              .find("scopes nest too deeply") != std::string::npos);
}

TEST_CASE("extents that would expand without end are refused", "[ir][parse]") {
  const std::string sum = "(A + B + C + D + E + 1)", too_long = "the extent is too long an expression";
  REQUIRE(parse_error(with_dim(sum + repeated(" * " + sum, 20))).find(too_long) != std::string::npos);
  REQUIRE(parse_error(with_dim("A" + repeated(" * A", 5000))).find(too_long) != std::string::npos);
  REQUIRE(parse_error(with_dim("A" + repeated(" / (B + C + D + E + 1)", 30))).find(too_long) !=
          std::string::npos);
  REQUIRE(parse_error(with_dim("A" + repeated(" + A * B % 7 / 2", 5000))).find(too_long) !=
          std::string::npos);
  std::string deep = "A";
  for (int i = 0; i < 200; ++i) deep = "((" + deep + ") * (B + C + 1) + D) / " + std::to_string(i + 7);
  REQUIRE(parse_error(with_dim(deep)) != "no error");
  std::string modulo = "A";
  for (int i = 0; i < 100; ++i) modulo = "(" + modulo + " + B) % " + std::to_string(1000003 - 7 * i);
  parses(with_dim(modulo));
  // Each alone is cheap; together they once took minutes.
  parses(with_dim(
      "D - B / (A / 3 % -1 - D % (E - 3)) / (B % E % D + 4294967296 * (3 / E) - A % D) / "
      "((1 % (A - 1017) + 2 % (B % E) * (C % 1024 % D)) * (B % (2 * A * (D % E) - C / 7 * (D + E))))"));
  std::string many = "graph @g(%x: f32[A % B + B % C + C % D + 1";
  for (int i = 0; i < 20; ++i) many += ", A % B + B % C + C % D + " + std::to_string(i);
  many += "]) -> () where A in [0, 9], B in [0, 9], C in [0, 9], D in [0, 9] { %1 = reshape %x : f32[4] }";
  REQUIRE(parse_error(many).find("the number of elements is too long an expression") != std::string::npos);
  REQUIRE(parses(with_dim("A" + repeated(" + A", 1000))));
}

TEST_CASE("long lists and names are read in linear time", "[ir][parse]") {
  REQUIRE(!parses("graph @g(%x: f32[" + repeated("1,", 100000)));
  REQUIRE(!parses("graph @g() -> () { %0 = " + repeated("a", 1000000)));
  REQUIRE(!parses(repeated("#", 1000000)));
  REQUIRE(!parses("\"" + repeated("\\x00", 100000)));
  REQUIRE(parses("graph @g(%x: f32[1]) -> () { %1 = concat %x" + repeated(", %x", 20000) +
                 " {axis = 0} : f32[20001] }"));
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  REQUIRE(!parses(bytes));
  REQUIRE(!parses("graph @g" + bytes));
}
