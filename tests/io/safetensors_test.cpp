// SPDX-License-Identifier: Apache-2.0
#include "tensors/safetensors.hpp"

#include <map>

#include "base/json_reader.hpp"
#include "io_support.hpp"
#include "support/catch.hpp"
#include "support/tensor_compare.hpp"

using namespace fuse;
using namespace fuse::test;
using runtime::HostTensor;
using runtime::SafetensorsFile;

TEST_CASE("safetensors come back as they were written", "[io][safetensors]") {
  const TemporaryDirectory directory;
  const std::string path = directory / "m.safetensors";
  std::map<std::string, HostTensor> tensors;
  for (const DType type : all_dtypes) {
    const std::string name{to_string(type)};
    tensors[name + ".scalar"] = ramp(type, {});
    tensors[name + ".empty"] = ramp(type, {3, 0});
    tensors[name + ".matrix"] = ramp(type, {3, 5});
  }
  tensors["quote \" back\\slash \n tab\t \xc3\xa9 \xf0\x9f\x99\x82"] = ramp(f32, {1});
  tensors[""] = ramp(f32, {1});
  runtime::write_safetensors(path, tensors);
  const SafetensorsFile file(path);
  REQUIRE(file.tensors().size() == tensors.size());
  for (const auto& [name, tensor] : tensors) {
    INFO(name);
    require_identical(file.read(name), tensor);
    // The writer's order leaves every tensor aligned.
    const auto address = reinterpret_cast<std::uintptr_t>(file.tensors().find(name)->second.bytes.data());
    REQUIRE(address % size_of(tensor.dtype) == 0);
  }
  REQUIRE(directory.count_files() == 1);
  REQUIRE(error_of([&] { file.read("absent"); })->code == ErrorCode::unknown_name);
}

TEST_CASE("a file without tensors is a file", "[io][safetensors]") {
  const TemporaryDirectory directory;
  runtime::write_safetensors(directory / "e", {});
  REQUIRE(SafetensorsFile(directory / "e").tensors().empty());
}

TEST_CASE("safetensors are written byte for byte as their format says", "[io][safetensors]") {
  const TemporaryDirectory directory;
  HostTensor b = HostTensor::make(i32, {2});
  b.set_int(0, 1), b.set_int(1, -1);
  runtime::write_safetensors(directory / "m", {{"b", b}});
  const std::string header = R"({"b":{"dtype":"I32","shape":[2],"data_offsets":[0,8]}})";
  REQUIRE(header.size() == 54);
  REQUIRE(read_text(directory / "m") ==
          safetensors_file(header + "  ", literal("\x01\x00\x00\x00\xff\xff\xff\xff")));
}

TEST_CASE("metadata, foreign types, escapes and odd offsets are read", "[io][safetensors]") {
  const std::string file = safetensors_file(
      R"( {"__metadata__": {"format": "pt", "n": [1, {"a": null}, -0.5e+3, true, false]}, )"
      R"("\u0061\ud83d\uDE42\u000A": {"shape": [2], "dtype": "F32", "data_offsets": [1, 9], "more": {"x": []}},)"
      R"("bytes": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]},)"
      R"("later": {"dtype": "F3", "shape": [7, 7], "data_offsets": [9, 10]}} )",
      literal("\x09\x00\x00\x80\x3f\x00\x00\x00\x40\x01"));
  // The format asks for '{' as the first byte.
  REQUIRE(error_of([&] { runtime::parse_safetensors(bytes_of(file), "m"); })->code == ErrorCode::file_format);
  std::string right = file;
  right.erase(8, 1);
  right[0] = static_cast<char>(right[0] - 1);
  const auto index = runtime::parse_safetensors(bytes_of(right), "m");
  REQUIRE(index.size() == 3);
  const auto& floats = index.find("a\xf0\x9f\x99\x82\n")->second;
  REQUIRE((floats.dtype == f32));
  REQUIRE(floats.bytes.size() == 8);
  REQUIRE(floats.bytes[3] == std::byte{0x3f});
  for (const std::string name : {"bytes", "later"}) {
    const auto error = error_of([&] { runtime::supported_dtype(index.find(name)->second, name); });
    REQUIRE(error);
    REQUIRE(error->code == ErrorCode::unsupported);
    REQUIRE(error->message.find(name == "bytes" ? "'F8_E4M3'" : "'F3'") != std::string::npos);
    REQUIRE(error->hint == "supported: F64 F32 F16 BF16 I64 I32 I8 U8 BOOL");
  }
}

TEST_CASE("names that JSON or the format cannot hold are not written", "[io][safetensors]") {
  const TemporaryDirectory directory;
  for (const std::string name : {"__metadata__", "\xff", "\xed\xa0\x80"}) {
    const auto error = error_of([&] {
      runtime::write_safetensors(directory / "m", {{name, ramp(f32, {1})}});
    });
    REQUIRE(error);
    REQUIRE(error->code == ErrorCode::invalid_argument);
  }
  HostTensor bad = ramp(f32, {2});
  bad.data.pop_back();
  REQUIRE(error_of([&] { runtime::write_safetensors(directory / "m", {{"w", bad}}); }));
  REQUIRE(directory.count_files() == 0);
}

TEST_CASE("UTF-8 is told from what resembles it", "[io][safetensors]") {
  for (const char* good :
       {"", "a", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    REQUIRE(is_utf8(good));
  }
  for (const char* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe2\x82",
                          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xc2z"}) {
    REQUIRE_FALSE(is_utf8(bad));
  }
}
