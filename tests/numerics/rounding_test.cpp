// Rounding is part of the graph: what is fused, stored or recomputed never shows in the bits.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <fuse/fuse.hpp>
#include <map>

#include "support/catch.hpp"
#include "support/devices.hpp"
#include "tensors/host_tensor.hpp"
#include "tensors/random_fill.hpp"

using namespace fuse;  // NOLINT
using runtime::HostTensor;

namespace {

HostTensor run(const Graph& g, const std::string& output, DType dtype, std::vector<std::int64_t> shape,
               const std::map<std::string, HostTensor>& inputs, const Device& device) {
  Session session(compile(g, device));
  for (const auto& [name, tensor] : inputs) session.set(name, tensor.data);
  session.run();
  HostTensor got = HostTensor::make(dtype, std::move(shape));
  session.get(output, got.data);
  return got;
}

HostTensor drawn(DType dtype, std::vector<std::int64_t> shape, const std::string& name) {
  HostTensor tensor = HostTensor::make(dtype, std::move(shape));
  runtime::random_fill(tensor, 11, name, -3, 3);
  return tensor;
}

HostTensor filled(DType dtype, const std::vector<double>& values) {
  HostTensor tensor = HostTensor::make(dtype, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<std::int64_t>(i), values[i]);
  return tensor;
}

}  // namespace

TEST_CASE("numerics: a chain has the same bits fused and with every step stored", "[numerics][device]") {
  for (const Device& device : test::test_devices()) {
    for (const DType dtype : {f64, f32, f16, bf16}) {
      const auto build = [&](bool stored) {
        Graph g("chain");
        const Tensor x = g.input("x", dtype, {33, 70}), y = g.input("y", dtype, {33, 70});
        std::vector<Tensor> steps = {x * y, x + y};
        steps.push_back(steps[0] / (abs(steps[1]) + 1.5));
        steps.push_back(exp(steps[2]) - steps[0]);
        steps.push_back(sum(steps[3], {1}));
        steps.push_back(steps[3] - reshape(steps[4], {33, 1}));
        steps.push_back(max(steps[5] * steps[1], {0}));
        for (std::size_t i = 0; stored && i + 1 < steps.size(); ++i)
          g.output("s" + std::to_string(i), steps[i]);
        g.output("last", steps.back());
        return g;
      };
      const std::map<std::string, HostTensor> inputs = {{"x", drawn(dtype, {33, 70}, "x")},
                                                        {"y", drawn(dtype, {33, 70}, "y")}};
      INFO(to_string(dtype) << " on " << device.name());
      CHECK(run(build(false), "last", dtype, {70}, inputs, device).data ==
            run(build(true), "last", dtype, {70}, inputs, device).data);
    }
  }
}

TEST_CASE("numerics: an op of a half type is convert, f32 op, convert", "[numerics][device]") {
  for (const DType dtype : {f16, bf16}) {
    Graph g("half");
    const Tensor x = g.input("x", dtype, {1000}), y = g.input("y", dtype, {1000});
    g.output("z", (x * y + x) * y);
    const HostTensor a = drawn(dtype, {1000}, "a"), b = drawn(dtype, {1000}, "b");
    HostTensor expected = HostTensor::make(dtype, {1000});
    for (std::int64_t i = 0; i < 1000; ++i) {
      // Products and sums of two halves are exact in double or round to f32 first, as the op does.
      const auto rounded = [&](double value) {
        const double single = static_cast<float>(value);
        return dtype == f16 ? static_cast<double>(half(single)) : static_cast<double>(bfloat16(single));
      };
      expected.set(i, rounded(rounded(rounded(a.get(i) * b.get(i)) + a.get(i)) * b.get(i)));
    }
    for (const Device& device : test::test_devices()) {
      INFO(to_string(dtype) << " on " << device.name());
      CHECK(run(g, "z", dtype, {1000}, {{"x", a}, {"y", b}}, device).data == expected.data);
    }
  }
}

TEST_CASE("numerics: a product and a sum are two roundings", "[numerics][device]") {
  for (const DType dtype : {f32, f64}) {
    Graph g("no_fma");
    const Tensor x = g.input("x", dtype, {500});
    g.output("zero", x * x - x * x);
    g.output("residual", x * x + (-(x * x)));
    for (const Device& device : test::test_devices()) {
      const std::map<std::string, HostTensor> inputs = {{"x", drawn(dtype, {500}, "x")}};
      for (const char* name : {"zero", "residual"}) {
        const HostTensor got = run(g, name, dtype, {500}, inputs, device);
        for (std::int64_t i = 0; i < 500; ++i)
          CHECK(got.get(i) == 0);  // a contracted one leaves the rounding error
      }
    }
  }
}

TEST_CASE("numerics: subnormals are kept", "[numerics][device]") {
  const std::map<DType, double> least = {{f32, 0x1p-149}, {f64, 0x1p-1074}, {f16, 0x1p-24}, {bf16, 0x1p-133}};
  for (const auto& [dtype, tiny] : least) {
    Graph g("subnormal");
    const Tensor x = g.input("x", dtype, {3});
    g.output("sum", x + x);
    g.output("third", x / 3);
    g.output("all", sum(x));
    g.output("positive", convert(x > 0, i32));
    const std::map<std::string, HostTensor> inputs = {{"x", filled(dtype, {tiny, 6 * tiny, 100 * tiny})}};
    for (const Device& device : test::test_devices()) {
      INFO(to_string(dtype) << " on " << device.name());
      const HostTensor sums = run(g, "sum", dtype, {3}, inputs, device);
      const HostTensor thirds = run(g, "third", dtype, {3}, inputs, device);
      const HostTensor positive = run(g, "positive", i32, {3}, inputs, device);
      CHECK(sums.get(0) == 2 * tiny);
      CHECK(sums.get(2) == 200 * tiny);
      CHECK(thirds.get(1) == 2 * tiny);
      CHECK(run(g, "all", dtype, {}, inputs, device).get(0) == 107 * tiny);
      CHECK(positive.get_int(0) == 1);
    }
  }
}

TEST_CASE("numerics: a row's maximum equals an element of the row", "[numerics][device]") {
  for (const DType dtype : {f64, f32, f16, bf16}) {
    Graph g("mask");
    const Tensor x = g.input("x", dtype, {40, 300});
    const Tensor scaled = exp(x) * 0.3;
    g.output("hits", sum(convert(scaled == max(scaled, {1}, {.keep_dims = true}), i32), {1}));
    for (const Device& device : test::test_devices()) {
      const HostTensor hits = run(g, "hits", i32, {40}, {{"x", drawn(dtype, {40, 300}, "x")}}, device);
      INFO(to_string(dtype) << " on " << device.name());
      for (std::int64_t i = 0; i < 40; ++i) CHECK(hits.get_int(i) >= 1);
    }
  }
}

TEST_CASE("numerics: the same plan twice gives the same bits", "[numerics][device]") {
  Graph g("twice");
  const Tensor x = g.input("x", f32, {7, 30000});
  g.output("y", sum(exp(x), {1}));
  const std::map<std::string, HostTensor> inputs = {{"x", drawn(f32, {7, 30000}, "x")}};
  for (const Device& device : test::test_devices()) {
    CHECK(run(g, "y", f32, {7}, inputs, device).data == run(g, "y", f32, {7}, inputs, device).data);
  }
}
