// Hand-built graphs and tensors for tests of the reference evaluator: they pass by builder and inference.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "eval/evaluate.hpp"
#include "support/catch.hpp"

namespace fuse::test {

using ir::NodeId;
using ir::Op;
using runtime::HostTensor;
using runtime::Precision;
using runtime::ReferenceTensor;
using Extents = std::vector<std::int64_t>;

inline constexpr std::int64_t low64 = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t high64 = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t low32 = std::numeric_limits<std::int32_t>::min();
inline constexpr std::int64_t high32 = std::numeric_limits<std::int32_t>::max();
inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

inline HostTensor reals(DType dtype, Extents shape, const std::vector<double>& values) {
  HostTensor tensor = HostTensor::make(dtype, std::move(shape));
  REQUIRE(tensor.element_count() == static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<std::int64_t>(i), values[i]);
  return tensor;
}

inline HostTensor integers(DType dtype, Extents shape, const std::vector<std::int64_t>& values) {
  HostTensor tensor = HostTensor::make(dtype, std::move(shape));
  REQUIRE(tensor.element_count() == static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set_int(static_cast<std::int64_t>(i), values[i]);
  return tensor;
}

/// Numbers in [-1, 1) that the dtype holds, from a fixed generator.
inline HostTensor noise(DType dtype, Extents shape, std::uint32_t seed) {
  HostTensor tensor = HostTensor::make(dtype, std::move(shape));
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    seed = seed * 1664525U + 1013904223U;
    tensor.set(i, static_cast<double>(seed >> 8) * 0x1p-23 - 1);
  }
  return tensor;
}

inline ir::Type type_of(DType dtype, const Extents& shape) {
  return {dtype, std::vector<Dim>(shape.begin(), shape.end())};
}

/// A graph and the values of its inputs.
struct Case {
  ir::Graph graph;
  runtime::Values values;

  NodeId add(Op op, std::vector<NodeId> operands, ir::Attr attr, ir::Type type) {
    graph.nodes.push_back(
        {.op = op, .attr = std::move(attr), .operands = std::move(operands), .type = std::move(type)});
    return static_cast<NodeId>(graph.nodes.size() - 1);
  }
  NodeId input(HostTensor value) {
    const std::string name = "x" + std::to_string(graph.nodes.size());
    const NodeId node = add(Op::input, {}, ir::NameAttr{name}, type_of(value.dtype, value.shape));
    values.emplace(name, std::move(value));
    return node;
  }
  void output(NodeId node, std::string name = "y") { graph.outputs.push_back({std::move(name), node}); }
  ReferenceTensor run(Precision precision, std::uint64_t variant = 0) const {
    return runtime::evaluate(graph, values, {}, precision, {}, variant).outputs.at("y");
  }
};

/// One op on inputs.
inline ReferenceTensor run_op(Op op, std::vector<HostTensor> inputs, ir::Attr attr, DType dtype,
                              Extents shape, Precision precision) {
  Case test;
  std::vector<NodeId> operands;
  for (HostTensor& input : inputs) operands.push_back(test.input(std::move(input)));
  test.output(test.add(op, operands, std::move(attr), type_of(dtype, shape)));
  return test.run(precision);
}

inline std::vector<double> list(const ReferenceTensor& tensor) {
  std::vector<double> values;
  for (std::size_t i = 0; i < tensor.element_count(); ++i) values.push_back(tensor.get(i));
  return values;
}
inline std::vector<std::int64_t> int_list(const ReferenceTensor& tensor) {
  return {tensor.integer().begin(), tensor.integer().end()};
}

/// Equal, telling -0 from 0; every NaN is the same.
inline bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}
inline void require_same(const std::vector<double>& got, const std::vector<double>& expected) {
  CAPTURE(got, expected);
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    REQUIRE(same(got[i], expected[i]));
  }
}

template <class F>
Error error_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  FAIL("nothing was thrown");
  return Error({.message = "nothing was thrown"});
}

}  // namespace fuse::test
