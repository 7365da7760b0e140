// SPDX-License-Identifier: Apache-2.0
#include "tensors/npy.hpp"

#include "io_support.hpp"
#include "support/catch.hpp"
#include "support/tensor_compare.hpp"

using namespace fuse;
using namespace fuse::test;
using runtime::HostTensor;

namespace {

HostTensor parse(const std::string& file) { return runtime::parse_npy(bytes_of(file), "x.npy"); }

}  // namespace

TEST_CASE("npy files come back as they were written", "[io][npy]") {
  const TemporaryDirectory directory;
  const std::string path = directory / "x.npy";
  for (const DType type : all_dtypes) {
    for (const std::vector<std::int64_t>& shape :
         std::vector<std::vector<std::int64_t>>{{}, {5}, {0}, {2, 0, 3}, {2, 3}, {1, 2, 3, 4}}) {
      const HostTensor tensor = ramp(type, shape);
      runtime::write_npy(path, tensor);
      require_identical(runtime::read_npy(path), tensor);
      const std::string file = read_text(path);
      require_identical(runtime::parse_npy(bytes_of(file), path), tensor);
      REQUIRE((file.size() - tensor.data.size()) % 64 == 0);
    }
  }
  REQUIRE(directory.count_files() == 1);
}

TEST_CASE("an npy header is written as numpy writes it", "[io][npy]") {
  const auto starts = [](DType type, std::vector<std::int64_t> shape, const std::string& dict) {
    const std::string header = runtime::npy_header(HostTensor::make(type, std::move(shape)));
    REQUIRE(header.size() == 128);
    REQUIRE(header.back() == '\n');
    REQUIRE(header.substr(0, 10) == literal("\x93NUMPY\x01\x00\x76\x00"));
    REQUIRE(header.substr(10, dict.size()) == dict);
    REQUIRE(header.find_first_not_of(' ', 10 + dict.size()) == 127);
  };
  starts(f32, {2, 3}, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
  starts(bf16, {7}, "{'descr': '<V2', 'fortran_order': False, 'shape': (7,), }");
  starts(boolean, {}, "{'descr': '|b1', 'fortran_order': False, 'shape': (), }");
  starts(i64, {0}, "{'descr': '<i8', 'fortran_order': False, 'shape': (0,), }");
}

TEST_CASE("npy bytes as numpy writes them are read", "[io][npy]") {
  const HostTensor floats =
      parse(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }      \n",
                     literal("\x00\x00\x80\x3f\x00\x00\x00\xc0")));
  REQUIRE(floats.shape == std::vector<std::int64_t>{2});
  REQUIRE(floats.get(0) == 1);
  REQUIRE(floats.get(1) == -2);
  const HostTensor halves =
      parse(npy_file("{'descr': '<f2', 'fortran_order': False, 'shape': (), }\n", literal("\x00\x3e")));
  REQUIRE(halves.get(0) == 1.5);
  const HostTensor truths =
      parse(npy_file("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }\n", literal("\x01\x00")));
  REQUIRE(truths.get(0) == 1);
  REQUIRE(truths.get(1) == 0);
  for (const std::string descr : {"<V2", "|V2"}) {
    const HostTensor brains = parse(npy_file(
        "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (1,), }\n", literal("\x40\x40")));
    REQUIRE((brains.dtype == bf16));
    REQUIRE(brains.get(0) == 3);
  }
}

TEST_CASE("npy headers may differ in what Python lets differ", "[io][npy]") {
  const std::string one = literal("\x07\x00\x00\x00");
  for (const std::string dict : {
           "{'shape':(1,),'fortran_order':False,'descr':'<i4'}",
           "{\"descr\": \"<i4\", \"shape\": ( 1 , ), \"fortran_order\": False}\n",
           "{'descr': '<i4', 'fortran_order': False, 'shape': (1L,), }  \t\n",
       }) {
    REQUIRE(parse(npy_file(dict, one)).get_int(0) == 7);
  }
}

TEST_CASE("an npy header's order is True or False", "[io][npy]") {
  for (const std::string order : {"Maybe", "None", "1", "true"}) {
    const std::string dict = "{'descr': '<i4', 'fortran_order': " + order + ", 'shape': (1,), }\n";
    const auto error = error_of([&] { parse(npy_file(dict, literal("\x07\x00\x00\x00"))); });
    INFO(order);
    REQUIRE(error);
    CHECK(error->message.find("True or False") != std::string::npos);
  }
}

TEST_CASE("npy versions 2 and 3 have a longer length", "[io][npy]") {
  const std::string dict = "{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }\n";
  for (const char version : {'\2', '\3'}) {
    std::string file = "\x93NUMPY";
    file += {version, '\0', static_cast<char>(dict.size()), '\0', '\0', '\0'};
    file += dict + literal("\x07\x00\x00\x00");
    REQUIRE(parse(file).get_int(0) == 7);
  }
}

TEST_CASE("Fortran order is transposed on reading", "[io][npy]") {
  const std::vector<std::vector<std::int64_t>> shapes = {{2, 3, 4}, {3, 4}, {4}, {0, 4}};
  for (std::size_t at = 0; at < shapes.size() * std::size(all_dtypes); ++at) {
    const DType type = all_dtypes[at / shapes.size()];
    const std::vector<std::int64_t>& shape = shapes[at % shapes.size()];
    const HostTensor expected = ramp(type, shape);
    const std::size_t size = size_of(type), rank = shape.size();
    const std::int64_t is = rank > 2 ? 2 : 1, js = rank > 1 ? shape[rank - 2] : 1, ks = shape[rank - 1];
    std::string data;
    for (std::int64_t k = 0; k < ks; ++k) {
      for (std::int64_t j = 0; j < js; ++j) {
        for (std::int64_t i = 0; i < is; ++i) {
          const std::byte* element =
              expected.data.data() + static_cast<std::size_t>((i * js + j) * ks + k) * size;
          data.append(reinterpret_cast<const char*>(element), size);
        }
      }
    }
    std::string dict = runtime::npy_header(expected).substr(10);
    dict.replace(dict.find("False"), 5, "True");
    require_identical(parse(npy_file(dict, data)), expected);
    const TemporaryDirectory directory;
    write_text(directory / "f.npy", npy_file(dict, data));
    require_identical(runtime::read_npy(directory / "f.npy"), expected);
  }
}

TEST_CASE("a failed npy write leaves the old file and nothing else", "[io][npy]") {
  const TemporaryDirectory directory;
  const std::string path = directory / "x.npy";
  const HostTensor good = ramp(f32, {3});
  runtime::write_npy(path, good);
  HostTensor bad = good;
  bad.data.pop_back();
  REQUIRE(error_of([&] { runtime::write_npy(path, bad); })->code == ErrorCode::invalid_argument);
  require_identical(runtime::read_npy(path), good);
  const auto missing = error_of([&] { runtime::write_npy(directory / "none/x.npy", good); });
  REQUIRE(missing->code == ErrorCode::io);
  REQUIRE(missing->message.find("none/x.npy") != std::string::npos);
  std::filesystem::create_directory(directory / "d");
  REQUIRE(error_of([&] { runtime::write_npy(directory / "d", good); })->code == ErrorCode::io);
  REQUIRE(directory.count_files() == 2);
}
