// SPDX-License-Identifier: Apache-2.0
#include "runtime/runtime_support.hpp"

namespace fuse::test {
namespace {

Session make_session() { return Session(compile(by_hand_graph(), Device::reference()), {{"B", 2}}); }

TEST_CASE("session: set, run, get", "[runtime][device][cuda-text]") {
  for (const Device& device : {Device::reference(), test_device()}) {
    INFO(device.name());
    Session session(runtime::make_executable(by_hand(), device), {{"B", 2}});
    const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8}, w = {0.5f, 0, -1, 100};
    session.set("x", bytes_of(x));
    WeightsBuilder weights;
    weights.add("w", f32, {4}, bytes_of(w)).add("unrelated", i64, {0}, {});
    session.set(weights.build());
    session.run();
    REQUIRE(values_of<float>(session.get("y")) == by_hand_result(x, w));
    std::vector<float> z(8);
    session.get("z", std::as_writable_bytes(std::span(z)));
    REQUIRE(z == by_hand_result(x, w));
    REQUIRE(session.prepared().bytes(0) == 32);
  }
}

TEST_CASE("session: what is wrong with a value is said", "[runtime]") {
  Session session = make_session();
  const std::vector<float> data(7);
  REQUIRE(error_of([&] { session.set("x", bytes_of(data)); }) ==
          "buffer-size: input 'x' of type f32[2, 4] takes 32 bytes, 28 were given");
  REQUIRE(error_of([&] { session.set("xx", bytes_of(data)); }) ==
          "unknown-name: no input or parameter is named 'xx'\n  hint: there are 'x', 'w'");
  REQUIRE(error_of([&] { session.set("y", bytes_of(data)); }) ==
          "unknown-name: no input or parameter is named 'y'\n  hint: 'y' is an output");
  REQUIRE(error_of([&] { session.get("q"); }) ==
          "unknown-name: no output is named 'q'\n  hint: there are 'y', 'z'");
}

TEST_CASE("session: run and get need values", "[runtime]") {
  Session session = make_session();
  REQUIRE(error_of([&] { session.run(); }) ==
          "unbound: input 'x' of type f32[2, 4] was never set\n  hint: Session::set(\"x\", ...)");
  session.set("x", bytes_of(std::vector<float>(8, 1.0f)));
  REQUIRE(error_of([&] { session.run(); }) ==
          "unbound: parameter 'w' of type f32[4] was never set\n  hint: Session::set(\"w\", ...)");
  REQUIRE(error_of([&] { session.get("y"); }) ==
          "unbound: output 'y' of type f32[2, 4] has no value before a successful run\n"
          "  hint: call Session::run first");
  session.set("w", bytes_of(std::vector<float>(4, 1.0f)));
  session.run();
  std::vector<std::byte> few(4);
  REQUIRE(error_of([&] { session.get("y", few); }) ==
          "buffer-size: output 'y' of type f32[2, 4] takes 32 bytes, 4 were given");
}

TEST_CASE("session: weights are checked by name, dtype and shape, all before the first is copied",
          "[runtime]") {
  Graph g("two");
  const Tensor x = g.input("x", f32, {2});
  g.output("y", x + g.parameter("a.weight", f32, {2}) * g.parameter("b.weight", f32, {2}));
  const Executable executable = compile(g, Device::reference());
  const std::vector<float> one = {1, 1}, two = {2, 2};
  const std::vector<double> wide = {1, 1};
  const auto set = [&](auto&& fill) {
    Session session(executable);
    session.set("x", bytes_of(one));
    session.set("a.weight", bytes_of(one));
    session.set("b.weight", bytes_of(one));
    WeightsBuilder weights;
    weights.add("a.weight", f32, {2}, bytes_of(two));
    fill(weights);
    const std::string text = error_of([&] { session.set(weights.build()); });
    session.run();
    REQUIRE(values_of<float>(session.get("y")) == two);  // 1 + 1 * 1: nothing was replaced
    return text;
  };
  REQUIRE(set([&](WeightsBuilder& w) { w.add("b.weigth", f32, {2}, bytes_of(one)); }) ==
          "unbound: parameter 'b.weight' of type f32[2] has no value among 2 weights\n"
          "  hint: did you mean 'a.weight', 'b.weigth'?");
  REQUIRE(set([&](WeightsBuilder& w) { w.add("b.weight", f64, {2}, bytes_of(wide)); }) ==
          "dtype-mismatch: parameter 'b.weight' of type f32[2]: the weight of this name is f64[2]");
  REQUIRE(set([&](WeightsBuilder& w) {
            w.add("b.weight", f32, {2, 1}, bytes_of(one));
          }) == "shape-mismatch: parameter 'b.weight' of type f32[2]: the weight of this name is f32[2, 1]");
}

TEST_CASE("a kernel may read as many values as the option allows", "[runtime][device]") {
  constexpr int count = 300;
  Graph g("many");
  Tensor sum = g.input("x0", f32, {4});
  for (int i = 1; i < count; ++i) sum = sum + g.input("x" + std::to_string(i), f32, {4});
  g.output("y", sum);
  CompileOptions options;
  options.max_inputs = 400;
  Session session(compile(g, test_device(), options));
  for (int i = 0; i < count; ++i) {
    const std::vector<float> x(4, static_cast<float>(i));
    session.set("x" + std::to_string(i), bytes_of(x));
  }
  session.run();
  CHECK(session.prepared().launches() == 2);  // a path in a kernel has 200 ops at most
  std::vector<float> y(4);
  session.get("y", std::as_writable_bytes(std::span(y)));
  CHECK(y == std::vector<float>(4, count * (count - 1) / 2.0f));
}

}  // namespace
}  // namespace fuse::test
