// check_numerics: the ops that make a NaN or an Inf, and no op that only passes one on.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <fuse/numerics.hpp>
#include <limits>

#include "deploy/deploy_support.hpp"
#include "runtime/runtime_support.hpp"
#include "support/examples.hpp"

namespace fuse::test {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

/// Of a graph whose one input is `values`, on each device: the text of what was found.
std::vector<std::string> found_in(const Graph& graph, const std::vector<float>& values,
                                  const DimValues& dims = {}) {
  std::vector<std::vector<std::string>> texts;
  for (const Device& device :
       {Device::emulated({.profile = "tiny3", .checked = true, .optimization = 0}), Device::reference()}) {
    Buffer x = device.allocate(static_cast<std::int64_t>(values.size() * sizeof(float)));
    x.upload(std::as_bytes(std::span(values)));
    const BufferView views[] = {x.view()};
    Stream stream = device.stream();
    std::vector<std::string> text;
    for (const NotFinite& value : check_numerics(graph, device, dims, stream, views)) {
      text.push_back(to_string(value));
    }
    texts.push_back(std::move(text));
    std::vector<float> after(values.size());
    x.download(std::as_writable_bytes(std::span(after)));
    CHECK(std::memcmp(after.data(), values.data(), values.size() * sizeof(float)) == 0);
  }
  CHECK(texts.at(0) == texts.at(1));
  return texts.at(0);
}

}  // namespace

TEST_CASE("check_numerics names the op that makes a NaN, with its scope and line", "[deploy][emulated]") {
  Graph g("g");
  const Tensor x = g.input("x", f32, {4});
  Tensor y = x + 1.0F;
  int line = 0;
  {
    const ScopeGuard scope = g.scope("encoder");
    line = __LINE__ + 1;
    y = log(y);
  }
  g.output("y", exp(y * 2.0F));
  CHECK(found_in(g, {1, 2, 3, 4}).empty());
  const std::vector<std::string> found = found_in(g, {1, 2, -3, -4});
  REQUIRE(found.size() == 1);  // what is computed of it passes the NaN on
  CHECK(found[0].find("= log f32[4] in encoder at numerics_test.cpp:" + std::to_string(line) +
                      " has NaN at element 2") != std::string::npos);
}

TEST_CASE("check_numerics: an Inf, what becomes a NaN of it, and inputs", "[deploy][emulated]") {
  Graph g("g");
  const Tensor x = g.input("x", f32, {3});
  const Tensor e = exp(x);
  g.output("y", e - e);
  const std::vector<std::string> found = found_in(g, {0, 1, 1000});
  REQUIRE(found.size() == 2);
  CHECK(found[0].find("= exp f32[3]") != std::string::npos);
  CHECK(found[0].ends_with(" has inf at element 2"));
  CHECK(found[1].find("= sub f32[3]") != std::string::npos);
  CHECK(found[1].ends_with(" has NaN at element 2"));

  const std::vector<std::string> given = found_in(g, {0, -inf, std::nanf("")});
  REQUIRE(given.size() == 1);
  CHECK(given[0].starts_with("%x = input f32[3]"));
  CHECK(given[0].ends_with(" has NaN at element 2"));
}

TEST_CASE("check_numerics: a mask's constants are what the program says", "[deploy][emulated]") {
  Graph g("masked");
  const Tensor x = g.input("x", f32, {2, 4});
  const Tensor keep = x > 0.0F;
  g.output("y", softmax(select(keep, x, -inf), 1));
  CHECK(found_in(g, {1, 2, 0, 3, 0, 0, 1, 0}).empty());
  // A row of which nothing is kept: its greatest is -inf too, and their difference is made here.
  const std::vector<std::string> found = found_in(g, {1, 2, 0, 3, 0, 0, 0, 0});
  REQUIRE(found.size() == 1);
  CHECK(found[0].find("= sub f32[2, 4] in softmax") != std::string::npos);
  CHECK(found[0].ends_with(" has NaN at element 4"));
}

TEST_CASE("check_numerics: symbols, donated inputs, outputs of the names it uses", "[deploy][emulated]") {
  Graph g("g");
  const Dim n = g.dim("N");
  const Tensor x = g.input("x", f32, {n});
  const Tensor y = sqrt(x);
  g.output("value 1", y, x);
  g.output("value 2", sum(y, {0}));
  const std::vector<std::string> found = found_in(g, {4, -1, 9}, {{"N", 3}});
  REQUIRE(found.size() == 1);
  CHECK(found[0].find("= sqrt f32[N]") != std::string::npos);
  CHECK(found[0].ends_with(" has NaN at element 1"));
}

TEST_CASE("check_numerics: parameters, and what it says of missing buffers", "[deploy][emulated]") {
  const Graph graph = example("transformer_block");
  const Device device = Device::emulated({.profile = "h200", .checked = true, .optimization = 0});
  const Executable executable = compile(graph, device);
  const Prepared prepared = executable.prepare({{"B", 1}});
  std::vector<Buffer> buffers;
  std::vector<BufferView> views;
  const std::vector<Slot>& slots = executable.slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    runtime::HostTensor tensor = runtime::HostTensor::make(slots[i].dtype, prepared.shape(i));
    runtime::random_fill(tensor, 7, slots[i].name, -1, 1);
    buffers.push_back(device.allocate(prepared.bytes(i)));
    buffers.back().upload(tensor.data);
    views.push_back(buffers.back().view());
  }
  Stream stream = device.stream();
  CHECK(check_numerics(graph, device, {{"B", 1}}, stream, views).empty());  // outputs' views are passed over
  CHECK(
      error_of([&] {
        check_numerics(graph, device, {{"B", 1}}, stream, std::span(views).first(1));
      })
          .starts_with(
              "invalid-argument: check_numerics: 1 buffer given for graph 'transformer_block', which has "));
  CHECK(error_of([&] { check_numerics(graph, device, {}, stream, views); }).starts_with("unbound: "));
  views[0] = {};
  CHECK(error_of([&] {
          check_numerics(graph, device, {{"B", 1}}, stream, views);
        }).find(" is null, needs ") != std::string::npos);
}

}  // namespace fuse::test
