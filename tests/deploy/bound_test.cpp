// Bound models and sessions: weights that are shared, elements with their type, memory of the caller's.
// SPDX-License-Identifier: Apache-2.0
#include <fuse/fuse.hpp>

#include "runtime/runtime_support.hpp"

namespace fuse::test {
namespace {

/// y = x * scale + shift, for rows of 4.
Graph affine(const std::string& name = "affine") {
  Graph g(name);
  const Tensor x = g.input("x", f32, {g.dim("B", {.min = 1, .max = 64}), 4});
  const Tensor scale = g.parameter("scale", f32, {4}), shift = g.parameter("shift", f32, {4});
  g.output("y", x * scale + shift);
  return g;
}

Weights affine_weights(float scale, float shift) {
  const std::vector<float> scales(4, scale), shifts(4, shift);
  WeightsBuilder weights;
  weights.add("scale", f32, {4}, bytes_of(scales)).add("shift", f32, {4}, bytes_of(shifts));
  return weights.build();
}

TEST_CASE("bound: sessions of one model read its weights", "[runtime][device]") {
  const Bound model = compile(affine(), test_device()).bind(affine_weights(2, 1));
  Session one = model.session({{"B", 1}}), two = model.session({{"B", 2}});
  one.set("x", {1.0f, 2.0f, 3.0f, 4.0f});
  two.set("x", std::vector<float>(8, 3));
  one.run();
  two.run();
  CHECK(one.get<float>("y") == std::vector<float>{3, 5, 7, 9});
  CHECK(two.get<float>("y") == std::vector<float>(8, 7));
  CHECK(one.buffer("scale").address() == two.buffer("scale").address());
  CHECK(error_of([&] { one.set("scale", std::vector<float>(4)); }) ==
        "invalid-argument: parameter 'scale' of type f32[4] belongs to the bound model\n"
        "  hint: bind other weights, or make the session of the executable");
}

TEST_CASE("bound: a second graph takes the parameters of the first", "[runtime][device]") {
  const Device device = test_device();
  const Bound first = compile(affine(), device).bind(affine_weights(2, 1));
  Graph g("sum");
  g.output("y", sum(g.input("x", f32, {3, 4}) * g.parameter("scale", f32, {4}), 1));
  const Bound second(compile(g, device), first);
  Session run = second.session();
  run.set("x", std::vector<float>(12, 1));
  run.run();
  CHECK(run.get<float>("y") == std::vector<float>(3, 8));
  CHECK(run.buffer("scale").address() == first.session({{"B", 1}}).buffer("scale").address());

  Graph other("other");
  other.output("y", other.input("x", f32, {4}) + other.parameter("shfit", f32, {4}));
  CHECK(error_of([&] { Bound(compile(other, device), first); }) ==
        "unbound: parameter 'shfit' of type f32[4] is no parameter of the other model\n"
        "  hint: did you mean 'shift'?");
  Graph longer("longer");
  longer.output("y", longer.input("x", f32, {5}) + longer.parameter("shift", f32, {5}));
  CHECK(error_of([&] { Bound(compile(longer, device), first); }) ==
        "shape-mismatch: parameter 'shift' of type f32[5]: it is f32[4] in the other model");
  CHECK(error_of([&] {
          Bound(compile(affine(), Device::reference()), first);
        }).starts_with("invalid-argument: the model is on"));
}

TEST_CASE("bound: every weight is checked before the first is uploaded", "[runtime]") {
  const Executable executable = compile(affine(), Device::reference());
  const std::vector<float> four(4);
  WeightsBuilder few;
  few.add("scale", f32, {4}, bytes_of(four));
  CHECK(error_of([&] {
          executable.bind(few.build());
        }).starts_with("unbound: parameter 'shift' of type f32[4] has no value among 1 weights"));
  WeightsBuilder wrong;
  wrong.add("scale", f32, {4}, bytes_of(four)).add("shift", f32, {2, 2}, bytes_of(four));
  CHECK(error_of([&] { executable.bind(wrong.build()); }) ==
        "shape-mismatch: parameter 'shift' of type f32[4]: the weight of this name is f32[2, 2]");
}

TEST_CASE("bound: packing is done once for all sessions", "[runtime][device]") {
  Graph g("packed");
  const Tensor x = g.input("x", f32, {g.dim("B", {.min = 1, .max = 64}), 8});
  const Tensor a = g.parameter("a", f32, {8, 8}), b = g.parameter("b", f32, {8, 8});
  g.output("y", matmul(x, a) + matmul(x, b));
  std::vector<float> unit(64, 0);
  for (std::size_t i = 0; i < 8; ++i) unit[9 * i] = 1;
  WeightsBuilder weights;
  weights.add("a", f32, {8, 8}, bytes_of(unit)).add("b", f32, {8, 8}, bytes_of(unit));
  const Bound model = compile(g, test_device()).bind(weights.build());
  for (const std::int64_t batch : {1, 5}) {
    Session run = model.session({{"B", batch}});
    const std::vector<float> x_values(static_cast<std::size_t>(8 * batch), 1.5f);
    run.set("x", x_values);
    run.run();
    CHECK(run.get<float>("y") == std::vector<float>(x_values.size(), 3));
  }
}

TEST_CASE("session: elements have a type", "[runtime]") {
  Session session(compile(affine(), Device::reference()), {{"B", 2}});
  CHECK(error_of([&] { session.set("x", std::vector<int>(8)); }) ==
        "dtype-mismatch: input 'x' of type f32[2, 4]: the elements given are i32\n"
        "  hint: give elements of type f32, or their bytes where the type is known to be right");
  CHECK(error_of([&] { session.set("x", std::vector<float>(7)); }) ==
        "buffer-size: input 'x' of type f32[2, 4] takes 32 bytes, 28 were given\n"
        "  hint: that is 8 elements, and 7 were given");
  const float row[] = {1, 2, 3, 4};
  session.set("scale", row);
  session.set("shift", std::array<float, 4>{});
  const std::vector<float> x(8, 2);
  session.set("x", std::as_bytes(std::span(x)));  // bytes are of the right type
  session.run();
  std::array<float, 8> y{};
  session.get("y", y);
  CHECK(y == std::array<float, 8>{2, 4, 6, 8, 2, 4, 6, 8});
  CHECK(error_of([&] { session.get<double>("y"); }) ==
        "dtype-mismatch: output 'y' of type f32[2, 4]: the elements given are f64\n"
        "  hint: give elements of type f32, or their bytes where the type is known to be right");
}

TEST_CASE("session: memory of another session, in place", "[runtime][device]") {
  Graph g("cache");
  const Dim T = g.dim("T", {.min = 1, .max = 8});
  const Tensor cache = g.input("cache", f32, {8, 2}), fresh = g.input("fresh", f32, {T, 2});
  const Tensor now = dynamic_update_slice(cache, fresh, {g.input("at", i64, {}), 0});
  g.output("cache.now", now, cache);
  g.output("total", sum(now));
  const Executable executable = compile(g, test_device());
  Session prefill(executable, {{"T", 3}}), step(executable, {{"T", 1}});
  step.use("cache", prefill.buffer("cache"));
  prefill.set("cache", std::vector<float>(16, 0));
  prefill.set("fresh", std::vector<float>(6, 1));
  prefill.set("at", {std::int64_t{0}});
  prefill.run();
  CHECK(prefill.get<float>("total") == std::vector<float>{6});
  for (std::int64_t at = 3; at < 6; ++at) {
    step.set("fresh", std::vector<float>(2, 10));
    step.set("at", {at});
    step.run();
    CHECK(step.get<float>("total") == std::vector<float>{6 + 20.0f * static_cast<float>(at - 2)});
  }
  CHECK(prefill.get<float>("cache.now") == step.get<float>("cache.now"));

  CHECK(error_of([&] { step.use("cache.now", prefill.buffer("fresh")); }) ==
        "invalid-argument: output 'cache.now' of type f32[8, 2] is in the memory of input 'cache' of type "
        "f32[8, 2]\n"
        "  hint: use memory for that input instead");
  CHECK(error_of([&] {
          step.use("fresh", BufferView{prefill.buffer("fresh").address(), 4});
        }) == "buffer-size: input 'fresh' of type f32[1, 2] needs 8 bytes, the memory has 4");
  void* odd = static_cast<char*>(prefill.buffer("fresh").address()) + 4;
  CHECK(error_of([&] { step.use("fresh", BufferView{odd, 8}); }).starts_with("misaligned: input 'fresh'"));
  CHECK(error_of([&] { step.use("fersh", prefill.buffer("fresh")); }).starts_with("unknown-name"));
}

TEST_CASE("session: an output has a value only where a run made it", "[runtime]") {
  const Device device = Device::reference();
  Session run = compile(affine(), device).bind(affine_weights(1, 0)).session({{"B", 1}});
  run.set("x", std::vector<float>(4, 2));
  run.run();
  run.use("y", device.allocate(16));
  CHECK(error_of([&] { run.get<float>("y"); }).starts_with("unbound: output 'y'"));
  run.run();
  Session moved = std::move(run);
  run = std::move(moved);
  CHECK(run.get<float>("y") == std::vector<float>(4, 2));
  CHECK(error_of([&] {
          run.use("x", Device::reference().allocate(16));
        }).starts_with("invalid-argument: the buffer is of another device"));
}

TEST_CASE("bound: dims that the weights have are given", "[runtime]") {
  Graph g("symbolic");
  const Dim n = g.dim("N"), m = g.dim("M");
  const Tensor x = g.input("x", f32, {2, n}), w = g.parameter("w", f32, {n, m});
  g.output("y", matmul(x, w));
  const std::vector<float> values(24, 1);
  WeightsBuilder weights;
  weights.add("w", f32, {4, 6}, bytes_of(values));
  const Bound model = compile(g, Device::reference()).bind(weights.build());
  CHECK(error_of([&] {
          model.session({{"N", 6}, {"M", 4}});
        }) ==
        "shape-mismatch: parameter 'w' of type f32[6, 4]: the weight of this name is f32[4, 6]\n"
        "  hint: give the dims that the weights have");
  CHECK(model.session({{"N", 4}, {"M", 6}}).prepared().bytes(1) == 96);
}

TEST_CASE("session: runs on a stream wait for nothing, and get waits for them", "[runtime][device]") {
  const Device device = test_device();
  const Bound model = compile(affine(), device).bind(affine_weights(3, 0));
  Session run = model.session({{"B", 1}});
  Stream stream = device.stream();
  Buffer result = device.allocate(16);
  const std::vector<float> x = {1, 2, 3, 4};
  run.set(stream, "x", x);
  run.run(stream, {{"y", result.view()}});
  CHECK(run.get<float>("y") == std::vector<float>{3, 6, 9, 12});
  CHECK(error_of([&] { run.buffer("y"); }) ==
        "invalid-argument: output 'y' of type f32[1, 4] is in memory that the caller gave with `use`\n"
        "  hint: the caller has it");
}

}  // namespace
}  // namespace fuse::test
