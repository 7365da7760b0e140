// The one place where an example looks behind the public headers: writing a .safetensors file, and the two
// evaluations that tell how exact a result has to be. An application needs neither.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fuse/fuse.hpp>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/access.hpp"
#include "eval/evaluate.hpp"
#include "tensors/safetensors.hpp"

namespace example {

/// Host data by name, as a session is given it.
using HostData = std::map<std::string, fuse::Weights::View>;

/// How the values of one output lie around the exact ones.
struct Accuracy {
  double exact_mean = 0;     ///< of the exact values
  double largest_error = 0;  ///< of what the device made
  double op_by_op = 0;       ///< of evaluating op by op, each result rounded to its type
};

inline fuse::runtime::Values host_values(const HostData& data) {
  fuse::runtime::Values values;
  for (const auto& [name, view] : data) {
    values[name] = {view.dtype, view.shape, {view.bytes.begin(), view.bytes.end()}};
  }
  return values;
}

/// Evaluates the graph twice on the host: exactly (all floats are doubles, nothing is rounded), and in the
/// graph's own types. `made` are outputs that a device made.
inline std::map<std::string, Accuracy> accuracy_of(
    const fuse::Graph& graph, const HostData& data, const fuse::DimValues& dims,
    const std::map<std::string, std::vector<std::byte>>& made) {
  const auto dim = [&](std::string_view name) { return dims.find(name)->second; };
  const fuse::runtime::Values values = host_values(data);
  const auto exact = evaluate(ir_of(graph), values, dim, fuse::runtime::Precision::exact).outputs;
  const auto same = evaluate(ir_of(graph), values, dim, fuse::runtime::Precision::same_type).outputs;
  std::map<std::string, Accuracy> result;
  for (const auto& [name, bytes] : made) {
    const fuse::runtime::ReferenceTensor& wanted = exact.at(name);
    const fuse::runtime::HostTensor got{wanted.dtype(), wanted.shape(), bytes};
    Accuracy& accuracy = result[name];
    const std::size_t count = wanted.element_count();
    for (std::size_t i = 0; i < count; ++i) {
      const double value = wanted.get(i);
      // max would drop a NaN, which is no small error.
      const auto worse = [](double error, double so_far) { return error <= so_far ? so_far : error; };
      accuracy.exact_mean += value / static_cast<double>(count);
      accuracy.largest_error =
          worse(std::fabs(got.get(static_cast<std::int64_t>(i)) - value), accuracy.largest_error);
      accuracy.op_by_op = worse(std::fabs(same.at(name).get(i) - value), accuracy.op_by_op);
    }
  }
  return result;
}

inline void save_weights(const std::string& path, const fuse::Weights& weights) {
  std::map<std::string, fuse::runtime::HostTensor> tensors;
  for (const std::string& name : weights.names()) {
    const fuse::Weights::View view = weights.at(name);
    tensors[name] = {view.dtype, view.shape, {view.bytes.begin(), view.bytes.end()}};
  }
  fuse::runtime::write_safetensors(path, tensors);
}

}  // namespace example
