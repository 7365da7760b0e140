// OpSweep: many small op cases in one graph, so that one compiler call builds many kernels; each output is
// compared with the double-precision reference under a bound derived for its op.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <fuse/fuse.hpp>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/access.hpp"
#include "eval/bounds/error_bound.hpp"
#include "eval/evaluate.hpp"
#include "ir/builder/builder.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/sanitized.hpp"
#include "tensors/compare.hpp"
#include "tensors/host_tensor.hpp"
#include "tensors/random_fill.hpp"

namespace fuse::test {

using runtime::HostTensor;
using Shape = std::vector<std::int64_t>;

inline std::vector<Dim> dims_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

/// Values that arithmetic finds hard, at the front of a tensor.
inline void put_specials(HostTensor& tensor) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> reals = {0.0, -0.0, 1.0,  -1.0,  infinity, -infinity,
                                     nan, 0.5,  -2.5, 1e-40, 3e38,     65504.0};
  const std::int64_t most = tensor.dtype == i32 ? std::numeric_limits<std::int32_t>::max()
                                                : std::numeric_limits<std::int64_t>::max();
  const std::vector<std::int64_t> integers = {0, 1, -1, most, -most - 1, 7, -7, 2};
  const std::int64_t count = tensor.element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    if (is_floating(tensor.dtype) && i < static_cast<std::int64_t>(reals.size()))
      tensor.set(i, reals[static_cast<std::size_t>(i)]);
    if (is_integer(tensor.dtype) && i < static_cast<std::int64_t>(integers.size()))
      tensor.set_int(i, integers[static_cast<std::size_t>(i)]);
  }
}

class OpSweep {
 public:
  using BoundFor = std::function<double(std::size_t index, double exact)>;

  explicit OpSweep(const std::string& name, std::uint64_t seed = 7) : graph_(name), seed_(seed) {}

  Graph& graph() { return graph_; }

  /// A random input; `specials` puts infinities, NaN and extremes at its front.
  Tensor input(DType dtype, const Shape& shape, bool specials = false) {
    return input(dtype, shape, dims_of(shape), specials);
  }
  Tensor input(DType dtype, const Shape& shape, const std::vector<Dim>& dims, bool specials = false) {
    const std::string name = "in" + std::to_string(inputs_.size());
    HostTensor tensor = HostTensor::make(dtype, shape);
    runtime::random_fill(tensor, seed_, name, is_floating(dtype) ? -4.0 : -20.0,
                         is_floating(dtype) ? 4.0 : 20.0);
    if (specials) put_specials(tensor);
    inputs_.emplace(name, std::move(tensor));
    return graph_.input(name, dtype, dims);
  }
  Tensor input(const HostTensor& tensor) {
    const std::string name = "in" + std::to_string(inputs_.size());
    inputs_.emplace(name, tensor);
    return graph_.input(name, tensor.dtype, dims_of(tensor.shape));
  }

  /// Any op of the table, by its row.
  Tensor apply(ir::Op op, const std::vector<Tensor>& operands, ir::Attr attr = ir::NoAttr{},
               const ir::Type* declared = nullptr) {
    return detail::Builder::of(operands[0])
        ->add(op, operands, std::move(attr), declared, std::source_location::current());
  }

  /// Exact: integers and bools, and ops that do not round.
  void expect_exact(const std::string& what, const Tensor& value) { expect(what, value, nullptr); }
  void expect(const std::string& what, const Tensor& value, BoundFor bound) {
    const std::string name = "out" + std::to_string(checks_.size());
    graph_.output(name, value);
    checks_.push_back({name, what, value.dtype(), std::move(bound)});
  }
  /// Within the table's ulps of the op.
  void expect_ulp(const std::string& what, const Tensor& value, ir::Op op) {
    const DType dtype = value.dtype();
    if (!is_floating(dtype)) return expect_exact(what, value);
    expect(what, value,
           [op, dtype](std::size_t, double exact) { return runtime::elementwise_bound(op, exact, dtype); });
  }

  std::size_t size() const { return checks_.size(); }
  const Graph& built() const { return graph_; }

  /// Compiles once for the device, runs, and compares every output with the reference.
  void run(const Device& device, const DimValues& dims = {}) const {
    INFO("seed " << seed_ << " on " << device.name());
    Session session(compile(graph_, device), dims);
    for (const auto& [name, tensor] : inputs_) session.set(name, tensor.data);
    session.run();
    const auto of = [&](std::string_view symbol) { return dims.find(symbol)->second; };
    const auto exact = runtime::evaluate(ir_of(graph_), inputs_, of, runtime::Precision::exact);
    const auto same = runtime::evaluate(ir_of(graph_), inputs_, of, runtime::Precision::same_type);
    for (const Check& check : checks_) {
      const bool integral = !is_floating(check.dtype);
      const HostTensor expected = (integral ? same : exact).outputs.at(check.name).to_host(check.dtype);
      HostTensor got = HostTensor::make(check.dtype, expected.shape);
      session.get(check.name, got.data);
      const auto bound = check.bound ? check.bound : BoundFor([](std::size_t, double) { return 0.0; });
      const runtime::CompareResult result = runtime::compare(got, expected, bound);
      INFO(check.what << ": " << result.text);
      CHECK(result.ok());
    }
  }

  void run_on_test_devices(const DimValues& dims = {}) const {
    for (const Device& device : test_devices(0)) run(device, dims);
  }

 private:
  struct Check {
    std::string name, what;
    DType dtype;
    BoundFor bound;
  };
  Graph graph_;
  std::uint64_t seed_;
  std::map<std::string, HostTensor> inputs_;
  std::vector<Check> checks_;
};

/// 0-sized, 1, odd, prime, and more than a block. Under a sanitizer a few: most of a sweep's time goes to a
/// compiler, which is not under it.
inline const std::vector<Shape>& spread_of_shapes() {
  static const std::vector<Shape> all = {{}, {0}, {1}, {13}, {3, 0, 2}, {7, 1, 5}, {31, 33}, {257}};
  static const std::vector<Shape> few = {{}, {3, 0, 2}, {31, 33}};
  return sanitized() ? few : all;
}

inline const std::vector<DType>& all_dtypes() {
  static const std::vector<DType> types = {
#define FUSE_DTYPE(name, text, bytes, kind, cuda) DType::name,
#include <fuse/dtypes.def>
  };
  return types;
}

inline std::string describe(ir::Op op, DType dtype, const Shape& shape) {
  std::string text = std::string(to_string(op)) + ' ' + std::string(to_string(dtype)) + '[';
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + ']';
}

}  // namespace fuse::test
