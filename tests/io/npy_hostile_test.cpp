// Every malformed file is a named error: nothing crashes, nothing absurd is allocated.
// SPDX-License-Identifier: Apache-2.0
#include "io_support.hpp"
#include "support/catch.hpp"
#include "support/tensor_compare.hpp"
#include "tensors/npy.hpp"

using namespace fuse;
using namespace fuse::test;
using runtime::HostTensor;

namespace {

std::string with(const std::string& descr, const std::string& order, const std::string& shape,
                 const std::string& data = {}) {
  return npy_file("{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n",
                  data);
}

// The message of the error, which must be a file_format one of the user's that names the file.
std::string npy_refusal(const std::string& file) {
  const auto error = error_of([&] { runtime::parse_npy(bytes_of(file), "dir/x.npy"); });
  if (!error) return "accepted";
  REQUIRE(error->kind == ErrorKind::user);
  REQUIRE(error->code == ErrorCode::file_format);
  REQUIRE(error->message.find("'dir/x.npy'") != std::string::npos);
  return error->message;
}

void npy_refused(const std::string& file, const std::string& why) {
  const std::string message = npy_refusal(file);
  INFO(message);
  REQUIRE(message.find(why) != std::string::npos);
}

std::string small_file(DType type) {
  const HostTensor tensor = ramp(type, {2, 2});
  std::string file = runtime::npy_header(tensor);
  file.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  return file;
}

}  // namespace

TEST_CASE("a truncated npy file is refused at every length", "[io][npy][hostile]") {
  const TemporaryDirectory directory;
  for (const DType type : all_dtypes) {
    const std::string file = small_file(type);
    REQUIRE(npy_refusal(file) == "accepted");
    // A copy of its own, so that the address sanitizer sees a read past the end.
    for (std::size_t length = 0; length < file.size(); ++length)
      REQUIRE(npy_refusal(std::string(file, 0, length)) != "accepted");
    npy_refused(file + 'x', "should take");
  }
  const std::string file = small_file(i32);
  for (std::size_t length = 0; length < file.size(); ++length) {
    write_text(directory / "t.npy", file.substr(0, length));
    const auto error = error_of([&] { runtime::read_npy(directory / "t.npy"); });
    REQUIRE(error);
    REQUIRE(error->code == ErrorCode::file_format);
  }
}

TEST_CASE("every changed byte of an npy header is refused or parsed", "[io][npy][hostile]") {
  const std::string file = small_file(f32);
  std::size_t refusals = 0;
  for (std::size_t at = 0; at < 128; ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = file;
      changed[at] = static_cast<char>(value);
      const bool magic = at < 7 && changed != file && at != 6;
      const std::string outcome = npy_refusal(changed);
      refusals += outcome != "accepted";
      if (magic) REQUIRE(outcome != "accepted");
    }
  }
  REQUIRE(refusals > 128 * 200);
}

TEST_CASE("npy preambles that lie are refused", "[io][npy][hostile]") {
  npy_refused("", "magic");
  npy_refused("not a npy file at all", "magic");
  npy_refused(literal("\x93NUMPY\x00\x00\x00\x00"), "version 0.0");
  npy_refused(literal("\x93NUMPY\x04\x00\x00\x00\x00\x00"), "version 4.0");
  npy_refused(literal("\x93NUMPY\x01\x01\x00\x00"), "version 1.1");
  npy_refused(literal("\x93NUMPY\x01\x00\xff\xff{}"), "65535 bytes goes beyond");
  npy_refused(literal("\x93NUMPY\x02\x00\xff\xff\xff\xff{}"), "4294967295 bytes goes beyond");
  npy_refused(literal("\x93NUMPY\x02\x00\x00\x00\x20\x00") + std::string(0x200000, ' '), "is longer than");
}

TEST_CASE("npy headers that are not the dict of npy are refused", "[io][npy][hostile]") {
  npy_refused(npy_file("", ""), "its end");
  npy_refused(npy_file("{}", ""), "no 'descr'");
  npy_refused(npy_file("{'descr': '<f4'}", ""), "no 'fortran_order'");
  npy_refused(npy_file("{'descr': '<f4', 'fortran_order': False}", ""), "no 'shape'");
  npy_refused(npy_file("{'descr': '<f4', 'descr': '<f4'}", ""), "twice");
  npy_refused(npy_file("{'order': 1}", ""), "unknown key 'order'");
  npy_refused(npy_file("{'descr", ""), "without an end");
  npy_refused(npy_file("{'descr' '<f4'}", ""), "':'");
  npy_refused(npy_file("{'descr': '<f4' 'shape': ()}", ""), "'}'");
  npy_refused(npy_file(std::string(60000, '{'), ""), "a string");
  npy_refused(with("'<f4'", "Maybe", "()", "0000"), "True or False");
  npy_refused(with("'<f4'", "False", "(1)", "0000"), "','");
  npy_refused(with("'<f4'", "False", "[1]", "0000"), "'('");
  npy_refused(with("'<f4'", "False", "(1.5,)", "0000"), "','");
  npy_refused(with("'<f4'", "False", "('1',)", "0000"), "an extent");
  npy_refused(with("'<f4'", "False", "(,)", "0000"), "an extent");
  npy_refused(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "0000"),
              "nothing but spaces");
  npy_refused(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), \xc3\xa9}", "0000"),
              "not ASCII");
  npy_refused(npy_file(literal("{'descr': '<f4', \0 'fortran_order': False, 'shape': (1,)}"), "0000"),
              "not ASCII");
}

TEST_CASE("npy element types we lack are refused by name", "[io][npy][hostile]") {
  npy_refused(with("'>f4'", "False", "(1,)", "0000"), "big endian");
  npy_refused(with("'<c8'", "False", "(1,)", "00000000"), "'<c8'");
  npy_refused(with("'<u2'", "False", "(1,)", "00"), "'<u2'");
  npy_refused(with("'|O'", "False", "(1,)", "0"), "'|O'");
  npy_refused(with("[('a', '<f4')]", "False", "(1,)", "0000"), "structures");
  npy_refused(with("'|b1'", "False", "(3,)", literal("\x00\x01\x02")),
              "element 2 of its bools is the byte 2");
  // The hint has each type that is read, as npy spells it.
  const auto error =
      error_of([&] { runtime::parse_npy(bytes_of(with("'<u2'", "False", "(1,)", "00")), "x"); });
  REQUIRE(error);
  CHECK(error->hint == "supported: '<f8' '<f4' '<f2' '<V2' (bf16) '<i8' '<i4' '|i1' '|u1' '|b1'");
}

TEST_CASE("npy shapes that lie are refused before anything is allocated", "[io][npy][hostile]") {
  npy_refused(with("'<f4'", "False", "(-1,)"), "negative");
  npy_refused(with("'<f4'", "False", "(9223372036854775808,)"), "overflows 63 bits");
  npy_refused(with("'<f4'", "False", "(99999999999999999999999999999,)"), "overflows 63 bits");
  npy_refused(with("'<f4'", "False", "(9223372036854775807,)"), "overflows 63 bits");
  npy_refused(with("'<f8'", "False", "(4294967296, 4294967296)"), "overflows 63 bits");
  npy_refused(with("'<f8'", "False", "(0, 9223372036854775807, 2)"), "overflows 63 bits");
  npy_refused(with("'<f4'", "False", "(1099511627776,)", "0000"),
              "should take 4398046511104 bytes and takes 4");
  npy_refused(with("'<f4'", "True", "(1048576, 1048576)", "0000"), "should take");
  npy_refused(with("'<f4'", "False", "(2,)", "0000"), "should take 8 bytes and takes 4");
  npy_refused(with("'<f4'", "False", "(0,)", "0000"), "should take 0 bytes and takes 4");
  std::string many = "(";
  for (int i = 0; i < 65; ++i) many += "1, ";
  npy_refused(with("'<f4'", "False", many + ")", "0000"), "more than 64 extents");
}

TEST_CASE("what is not a regular file is refused", "[io][npy][hostile]") {
  const TemporaryDirectory directory;
  const auto message = [&](const std::string& path) {
    const auto error = error_of([&] { runtime::read_npy(path); });
    REQUIRE(error);
    REQUIRE(error->code == ErrorCode::io);
    return error->message;
  };
  REQUIRE(message(directory / "none.npy").find("none.npy") != std::string::npos);
  REQUIRE(message(directory / ".").find("not a regular file") != std::string::npos);
  REQUIRE(message("/dev/zero").find("not a regular file") != std::string::npos);
  REQUIRE(message("").find("empty") != std::string::npos);
  REQUIRE(message(literal("a\0b")).find("zero byte") != std::string::npos);
}
