// SPDX-License-Identifier: Apache-2.0
#include <fuse/weights.hpp>
#include <map>
#include <thread>

#include "io_support.hpp"
#include "support/catch.hpp"
#include "tensors/npy.hpp"
#include "tensors/safetensors.hpp"

using namespace fuse;
using namespace fuse::test;
using runtime::HostTensor;

namespace {

void require_view(const Weights::View& view, const HostTensor& tensor) {
  REQUIRE((view.dtype == tensor.dtype));
  REQUIRE(view.shape == tensor.shape);
  REQUIRE(std::ranges::equal(view.bytes, tensor.data));
}

}  // namespace

TEST_CASE("weights from memory are copied and shared", "[io][weights]") {
  const HostTensor original = ramp(f32, {2, 3});
  Weights::View view;
  Weights copy;
  REQUIRE(copy.size() == 0);
  REQUIRE(copy.find("w") == nullptr);
  {
    HostTensor tensor = original;
    WeightsBuilder builder;
    builder.add("w", f32, {2, 3}, tensor.data).add("b", bf16, {}, ramp(bf16, {}).data).add("e", i64, {0}, {});
    tensor.data.assign(tensor.data.size(), std::byte{0xff});
    const Weights weights = builder.build();
    REQUIRE(builder.build().size() == 0);
    REQUIRE(weights.names() == std::vector<std::string>{"b", "e", "w"});
    REQUIRE(weights.size() == 3);
    view = weights.at("w");
    copy = weights;
  }
  // The Weights that gave the view is gone; its copy keeps the bytes.
  require_view(view, original);
  REQUIRE(copy.find("w")->bytes.data() == view.bytes.data());
  REQUIRE(copy.find("W") == nullptr);
  const Weights moved = std::move(copy);
  REQUIRE(moved.at("e").bytes.empty());
}

TEST_CASE("a builder refuses what does not fit and stays as it was", "[io][weights]") {
  WeightsBuilder builder;
  const HostTensor tensor = ramp(f32, {2});
  builder.add("w", f32, {2}, tensor.data);
  REQUIRE(error_of([&] { builder.add("w", f32, {2}, tensor.data); })->code == ErrorCode::duplicate_name);
  REQUIRE(error_of([&] { builder.add("x", f32, {3}, tensor.data); })->code == ErrorCode::buffer_size);
  REQUIRE(error_of([&] { builder.add("x", f32, {-2}, tensor.data); })->code == ErrorCode::invalid_extent);
  const std::byte two[] = {std::byte{2}};
  REQUIRE(error_of([&] { builder.add("x", boolean, {1}, two); })->code == ErrorCode::invalid_argument);
  REQUIRE(builder.build().names() == std::vector<std::string>{"w"});
}

TEST_CASE("weights come from safetensors, mapped", "[io][weights]") {
  const TemporaryDirectory directory;
  const std::string path = directory / "m.safetensors";
  std::map<std::string, HostTensor> tensors;
  for (const DType type : all_dtypes) tensors[std::string(to_string(type))] = ramp(type, {3});
  runtime::write_safetensors(path, tensors);
  const Weights weights = Weights::from_safetensors(path);
  // The mapping outlives the name, and a new file under it.
  runtime::write_safetensors(path, {});
  REQUIRE(weights.size() == tensors.size());
  for (const auto& [name, tensor] : tensors) require_view(weights.at(name), tensor);
  REQUIRE(Weights::from_safetensors(path).size() == 0);
}

TEST_CASE("an unsupported dtype fails only when it is asked for", "[io][weights]") {
  const TemporaryDirectory directory;
  const std::string header =
      R"({"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"I32","shape":[1],"data_offsets":[4,8]}})";
  write_text(directory / "m",
             std::string{static_cast<char>(header.size())} + std::string(7, '\0') + header + "abcdefgh");
  const Weights weights = Weights::from_safetensors(directory / "m");
  REQUIRE(weights.names() == std::vector<std::string>{"a", "b"});
  REQUIRE(weights.size() == 2);
  REQUIRE(weights.at("b").bytes[0] == std::byte{'e'});
  const auto error = error_of([&] { weights.at("a"); });
  REQUIRE(error->code == ErrorCode::unsupported);
  REQUIRE(error->message.find("F8_E4M3") != std::string::npos);
  REQUIRE(error_of([&] { weights.find("a"); })->code == ErrorCode::unsupported);
}

TEST_CASE("weights come from npy files", "[io][weights]") {
  const TemporaryDirectory directory;
  const HostTensor w = ramp(f16, {2, 2}), b = ramp(f64, {2});
  runtime::write_npy(directory / "w.npy", w);
  runtime::write_npy(directory / "b.npy", b);
  const Weights weights = Weights::from_npy({{"weight", directory / "w.npy"}, {"bias", directory / "b.npy"}});
  require_view(weights.at("weight"), w);
  require_view(weights.at("bias"), b);
  const auto twice = [&] { Weights::from_npy({{"w", directory / "w.npy"}, {"w", directory / "b.npy"}}); };
  REQUIRE(error_of(twice)->code == ErrorCode::duplicate_name);
  REQUIRE(error_of([&] { Weights::from_npy({{"w", directory / "no.npy"}}); })->code == ErrorCode::io);
  REQUIRE(error_of([&] { Weights::from_safetensors(directory / "no"); })->code == ErrorCode::io);
  REQUIRE(error_of([&] { Weights::from_safetensors(directory / "w.npy"); })->code == ErrorCode::file_format);
}

TEST_CASE("an unknown name is answered with the names near it", "[io][weights]") {
  WeightsBuilder builder;
  for (const char* name : {"model.layer.0.weight", "model.layer.1.weight", "model.layer.0.bias", "gamma"}) {
    builder.add(name, f32, {0}, {});
  }
  const Weights weights = builder.build();
  const auto hint = [&](std::string_view name) {
    const auto error = error_of([&] { weights.at(name); });
    REQUIRE(error);
    REQUIRE(error->code == ErrorCode::unknown_name);
    return error->hint;
  };
  REQUIRE(hint("gama") == "did you mean 'gamma'?");
  REQUIRE(hint("layer.0.bias") == "did you mean 'model.layer.0.bias'?");
  REQUIRE(hint("net.gamma") == "did you mean 'gamma'?");
  REQUIRE(hint("model.layer.2.weight").find("'model.layer.0.weight', 'model.layer.1.weight'") !=
          std::string::npos);
  REQUIRE(hint("something else entirely").empty());
  REQUIRE(hint("").empty());
  REQUIRE(hint(std::string(1 << 20, 'x')).empty());
  const Weights none;
  REQUIRE(error_of([&] { none.at("w"); })->hint == "there are no weights at all");
}

TEST_CASE("weights may be read and copied by several threads", "[io][weights]") {
  WeightsBuilder builder;
  for (int i = 0; i < 50; ++i) builder.add("w" + std::to_string(i), i32, {4}, ramp(i32, {4}).data);
  const Weights weights = builder.build();
  const HostTensor expected = ramp(i32, {4});
  std::vector<int> wrong(2);
  {
    std::vector<std::jthread> threads;
    for (int& count : wrong) {
      threads.emplace_back([&weights, &expected, &count] {
        for (int i = 0; i < 2000; ++i) {
          const Weights copy = weights;
          count += !std::ranges::equal(copy.at("w" + std::to_string(i % 50)).bytes, expected.data);
        }
      });
    }
  }
  REQUIRE(wrong == std::vector<int>{0, 0});
}
