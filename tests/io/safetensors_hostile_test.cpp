// Every malformed file is a named error: nothing crashes, nothing absurd is allocated.
// SPDX-License-Identifier: Apache-2.0
#include "io_support.hpp"
#include "support/catch.hpp"
#include "tensors/safetensors.hpp"

using namespace fuse;
using namespace fuse::test;

namespace {

std::string refusal(const std::string& file) {
  const auto error = error_of([&] { runtime::parse_safetensors(bytes_of(file), "m.safetensors"); });
  if (!error) return "accepted";
  REQUIRE(error->kind == ErrorKind::user);
  REQUIRE(error->code == ErrorCode::file_format);
  REQUIRE(error->message.find("'m.safetensors'") != std::string::npos);
  return error->message;
}

void refused(const std::string& file, const std::string& why) {
  const std::string message = refusal(file);
  INFO(message);
  REQUIRE(message.find(why) != std::string::npos);
}

std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

// One tensor "w".
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets,
                const std::string& data) {
  return safetensors_file(R"({"w":)" + tensor(dtype, shape, offsets) + "}", data);
}

std::string small_file() {
  return safetensors_file(R"({"__metadata__":{"k":"v"},"a":)" + tensor("F32", "[2]", "[0,8]") +
                              R"(,"b\u0041":)" + tensor("BOOL", "[1,2]", "[8,10]") + "}",
                          literal("\x00\x00\x80\x3f\x00\x00\x00\x40\x01\x00"));
}

}  // namespace

TEST_CASE("a truncated safetensors file is refused at every length", "[io][safetensors][hostile]") {
  const TemporaryDirectory directory;
  const std::string file = small_file();
  REQUIRE(refusal(file) == "accepted");
  for (std::size_t length = 0; length < file.size(); ++length) {
    REQUIRE(refusal(std::string(file, 0, length)) != "accepted");
    write_text(directory / "t", file.substr(0, length));
    const auto error = error_of([&] { runtime::SafetensorsFile mapped(directory / "t"); });
    REQUIRE(error);
    REQUIRE(error->code == ErrorCode::file_format);
  }
  refused(file + 'x', "the last 1 bytes");
}

TEST_CASE("every changed byte of a safetensors header is refused or parsed", "[io][safetensors][hostile]") {
  const std::string file = small_file();
  std::size_t refusals = 0, tries = 0;
  for (std::size_t at = 0; at + 10 < file.size(); ++at) {
    for (int value = 0; value < 256; ++value, ++tries) {
      std::string changed = file;
      changed[at] = static_cast<char>(value);
      refusals += refusal(changed) != "accepted";
    }
  }
  REQUIRE(refusals > tries / 2);
  REQUIRE(refusals < tries);
}

TEST_CASE("a safetensors header cut at every length is refused", "[io][safetensors][hostile]") {
  const std::string file = small_file();
  const std::string header = file.substr(8, file.size() - 18), data = file.substr(file.size() - 10);
  for (std::size_t length = 0; length < header.size(); ++length) {
    REQUIRE(refusal(safetensors_file(header.substr(0, length), data)) != "accepted");
  }
}

TEST_CASE("safetensors lengths that lie are refused", "[io][safetensors][hostile]") {
  refused(literal("\xff\xff\xff\xff\xff\xff\xff\xff{}"), "18446744073709551615 bytes goes beyond");
  refused(literal("\xf8\xff\xff\xff\xff\xff\xff\xff{}"), "goes beyond");
  refused(literal("\x03\x00\x00\x00\x00\x00\x00\x00{}"), "goes beyond");
  refused(safetensors_file("{" + std::string(100'000'001, ' ') + "}", ""), "is longer than 100000000");
}

TEST_CASE("safetensors offsets that lie are refused", "[io][safetensors][hostile]") {
  refused(one("F32", "[1]", "[4,0]", "0000"), "end before they begin");
  refused(one("F32", "[1]", "[0,8]", "0000"), "beyond the 4 bytes");
  refused(one("F32", "[1]", "[9223372036854775803,9223372036854775807]", "0000"), "beyond the 4 bytes");
  refused(one("F32", "[1]", "[0,9223372036854775808]", "0000"), "overflows 63 bits");
  refused(one("F32", "[1]", "[-4,0]", "0000"), "a whole number");
  refused(one("F32", "[1]", "[0,4.0]", "0000"), "']'");
  refused(one("F32", "[1]", "[0,4e0]", "0000"), "']'");
  refused(one("F32", "[1]", "[0,04]", "0000"), "leading zero");
  refused(one("F32", "[1]", "[0]", "0000"), "','");
  refused(one("F32", "[1]", "[0,4,4]", "0000"), "']'");
  refused(one("F32", "[1]", "[4,8]", "00000000"), "bytes 0 to 4 of the data belong to no tensor");
  const auto two = [](const std::string& a, const std::string& b, const std::string& data) {
    return safetensors_file(R"({"a":)" + tensor("I32", "[1]", a) + R"(,"b":)" + tensor("I32", "[1]", b) + "}",
                            data);
  };
  REQUIRE(refusal(two("[4,8]", "[0,4]", "00000000")) == "accepted");
  refused(two("[0,4]", "[2,6]", "00000000"), "'a' and 'b' overlap");
  refused(two("[0,4]", "[0,4]", "0000"), "overlap");
  refused(two("[0,4]", "[6,10]", "0123456789"), "bytes 4 to 6");
  // An empty tensor inside of another.
  refused(safetensors_file(
              R"({"a":)" + tensor("I32", "[1]", "[0,4]") + R"(,"b":)" + tensor("I32", "[0]", "[2,2]") + "}",
              "0000"),
          "overlap");
}

TEST_CASE("safetensors shapes that lie are refused", "[io][safetensors][hostile]") {
  refused(one("F32", "[2]", "[0,4]", "0000"), "should take 8 bytes and takes 4");
  refused(one("U16", "[2]", "[0,2]", "00"), "should take 4 bytes and takes 2");
  refused(one("F32", "[9223372036854775807]", "[0,4]", "0000"), "overflows 63 bits");
  refused(one("F64", "[4294967296,4294967296]", "[0,0]", ""), "overflows 63 bits");
  refused(one("F32", "[1,-1]", "[0,4]", "0000"), "a whole number");
  refused(one("F32", "[1,]", "[0,4]", "0000"), "a whole number");
  refused(one("F32", "1", "[0,4]", "0000"), "'['");
  refused(one("BOOL", "[2]", "[0,2]", literal("\x01\x02")), "neither 0 nor 1");
  std::string many = "[1";
  for (int i = 0; i < 64; ++i) many += ",1";
  refused(one("F32", many + "]", "[0,4]", "0000"), "more than 64 extents");
}

TEST_CASE("safetensors headers that are not the format's JSON are refused", "[io][safetensors][hostile]") {
  refused(safetensors_file("", ""), "does not start with '{'");
  refused(safetensors_file("[]", ""), "does not start with '{'");
  refused(safetensors_file("{} x", ""), "nothing");
  refused(safetensors_file("{}{}", ""), "nothing");
  refused(safetensors_file(R"({"w":)" + tensor("F32", "[0]", "[0,0]") + ",}", ""), "a string");
  refused(
      safetensors_file(
          R"({"w":)" + tensor("F32", "[0]", "[0,0]") + R"(,"w":)" + tensor("F32", "[0]", "[0,0]") + "}", ""),
      "two tensors are named 'w'");
  // The same name by another spelling.
  refused(safetensors_file(R"({"w":)" + tensor("F32", "[0]", "[0,0]") + R"(,"\u0077":)" +
                               tensor("F32", "[0]", "[0,0]") + "}",
                           ""),
          "two tensors are named 'w'");
  refused(safetensors_file(R"({"__metadata__":{},"__metadata__":{}})", ""), "two '__metadata__'");
  refused(safetensors_file(R"({"w":{}})", ""), "has no 'dtype'");
  refused(safetensors_file(R"({"w":{"dtype":"F32"}})", ""), "has no 'shape'");
  refused(safetensors_file(R"({"w":{"dtype":"F32","shape":[]}})", ""), "has no 'data_offsets'");
  refused(safetensors_file(R"({"w":{"dtype":"F32","dtype":"F32"}})", ""), "'dtype' twice");
  refused(safetensors_file(R"({"w":{"dtype":32}})", ""), "a string");
  refused(safetensors_file(R"({"w":null})", ""), "'{'");
  refused(safetensors_file(R"({'w':{}})", ""), "a string");
  refused(safetensors_file("{\"a\nb\":{}}", ""), "a character of a string");
  refused(safetensors_file("{\"\xff\":{}}", ""), "not UTF-8");
  refused(safetensors_file(R"({"\x":{}})", ""), "an escape");
  refused(safetensors_file(R"({"\u12g4":{}})", ""), "hexadecimal");
  refused(safetensors_file(R"({"\ud800":{}})", ""), "second half");
  refused(safetensors_file(R"({"\ud800\u0041":{}})", ""), "without the second");
  refused(safetensors_file(R"({"\udc00":{}})", ""), "without the first");
  for (const std::string value :
       {"01", "-", "1.", ".5", "1e", "+1", "nul", "tru", "[1,]", "{\"a\"}", "{\"a\":}", "[1 2]", "NaN", ""}) {
    INFO(value);
    REQUIRE(refusal(safetensors_file(R"({"__metadata__":)" + value + "}", "")) != "accepted");
  }
}

TEST_CASE("deep nesting is refused without recursion", "[io][safetensors][hostile]") {
  const auto nested = [](std::size_t depth) {
    return safetensors_file(R"({"__metadata__":)" + std::string(depth, '[') + std::string(depth, ']') + "}",
                            "");
  };
  REQUIRE(refusal(nested(64)) == "accepted");
  refused(nested(65), "nested deeper than 64");
  refused(nested(5'000'000), "nested deeper than 64");
}
