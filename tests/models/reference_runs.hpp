// Runs of small models on the reference device, and what plain loops read of their values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/access.hpp"
#include "models/model_runs.hpp"

namespace fuse::test {

using Row = std::vector<double>;

/// A session that keeps the values that it was given.
class ReferenceRun {
 public:
  explicit ReferenceRun(const Graph& graph)
      : values(model_values(graph)), executable_(compile(graph, Device::reference())), session_(executable_) {
    for (const auto& [name, tensor] : values) session_.set(name, tensor.data);
  }

  const std::vector<Slot>& slots() const { return executable_.slots(); }

  Row output(const std::string& name) {
    const std::size_t slot = executable_.output_slot(name);
    runtime::HostTensor tensor =
        runtime::HostTensor::make(executable_.slots()[slot].dtype, session_.prepared().shape(slot));
    tensor.data = session_.get(name);
    Row row;
    for (std::int64_t at = 0; at < tensor.element_count(); ++at) row.push_back(tensor.get(at));
    return row;
  }

  void set(const std::string& name, std::int64_t at, double value) {
    values.at(name).set(at, value);
    session_.set(name, values.at(name).data);
  }
  void run() { session_.run(); }

  runtime::Values values;

 private:
  Executable executable_;
  Session session_;
};

inline std::int64_t matmuls_of(const Graph& graph) {
  const auto& nodes = ir_of(graph).nodes;
  return std::count_if(nodes.begin(), nodes.end(),
                       [](const ir::Node& node) { return node.op == ir::Op::matmul; });
}

/// The values of a graph, row by row.
class PlainValues {
 public:
  explicit PlainValues(const runtime::Values& values) : values_(values) {}

  /// Row `index` of the last dim.
  Row row(const std::string& name, std::int64_t index = 0) const {
    const runtime::HostTensor& tensor = values_.at(name);
    const std::int64_t width = tensor.shape.back();
    Row row;
    for (std::int64_t i = 0; i < width; ++i) row.push_back(tensor.get(index * width + i));
    return row;
  }
  std::int64_t number(const std::string& name, std::int64_t at) const { return values_.at(name).get_int(at); }

  /// x W
  Row times(const Row& x, const std::string& name) const {
    const runtime::HostTensor& tensor = values_.at(name);
    const std::int64_t out = tensor.shape.back();
    REQUIRE(tensor.shape.front() == static_cast<std::int64_t>(x.size()));
    Row row(static_cast<std::size_t>(out));
    for (std::size_t k = 0; k < x.size(); ++k) {
      for (std::int64_t i = 0; i < out; ++i)
        row[static_cast<std::size_t>(i)] += x[k] * tensor.get(static_cast<std::int64_t>(k) * out + i);
    }
    return row;
  }

 private:
  const runtime::Values& values_;
};

/// f of the elements of rows of one length.
template <class F, class... Rows>
Row each(const F& f, const Row& first, const Rows&... more) {
  Row row;
  for (std::size_t i = 0; i < first.size(); ++i) row.push_back(f(first[i], more.at(i)...));
  return row;
}

inline Row plain_sum(const Row& a, const Row& b) {
  return each([](double x, double y) { return x + y; }, a, b);
}
inline Row plain_sigmoid(const Row& a) {
  return each([](double x) { return 1 / (1 + std::exp(-x)); }, a);
}
inline Row plain_tanh(const Row& a) {
  return each([](double x) { return std::tanh(x); }, a);
}
inline Row plain_softmax(const Row& a) {
  const double most = *std::max_element(a.begin(), a.end());
  const Row raised = each([&](double x) { return std::exp(x - most); }, a);
  double total = 0;
  for (const double x : raised) total += x;
  return each([&](double x) { return x / total; }, raised);
}

}  // namespace fuse::test
