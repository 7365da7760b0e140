// SPDX-License-Identifier: Apache-2.0
#include "fusec/values/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/quoting.hpp"
#include "base/suggest.hpp"
#include "compile/signature_of.hpp"
#include "fusec/common.hpp"
#include "fusec/values/input_wishes.hpp"
#include "runtime/execute/binding.hpp"
#include "tensors/npy.hpp"
#include "tensors/random_fill.hpp"

namespace fuse::fusec {
namespace {

using ir::NodeId;

const std::string& name_of(const ir::Node& node) { return ir::attr<ir::NameAttr>(node).name; }

std::map<std::string, std::string> files_by_name(const ir::Graph& graph,
                                                 const std::vector<std::string>& files) {
  std::vector<std::string> names;
  for (const ir::Node& node : graph.nodes) {
    if (ir::is_given(node)) names.push_back(name_of(node));
  }
  std::map<std::string, std::string> result;
  for (const std::string& text : files) {
    auto [name, path] = split_assignment("--input", text);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      user_error(ErrorCode::unknown_name,
                 fmt::format("graph '{}' has no input or parameter {}", graph.name, in_quotes(name)),
                 nearest_names(names, name));
    }
    if (!result.emplace(name, std::move(path)).second) {
      user_error(ErrorCode::duplicate_name, fmt::format("--input gives {} twice", in_quotes(name)));
    }
  }
  return result;
}

/// Extents that are a symbol alone take the value of the file's shape; a rank that differs is found later.
void infer_dims(const ir::Type& type, const runtime::HostTensor& tensor, DimValues& inferred) {
  for (std::size_t i = 0; i < std::min(type.dims.size(), tensor.shape.size()); ++i) {
    if (const std::string_view name = type.dims[i].name(); !name.empty()) {
      inferred.emplace(name, tensor.shape[i]);
    }
  }
}

void check_type(const ir::Node& node, const std::string& path, const runtime::HostTensor& tensor,
                const std::vector<std::int64_t>& shape) {
  if (tensor.dtype == node.type.dtype && tensor.shape == shape) return;
  user_error(tensor.dtype == node.type.dtype ? ErrorCode::shape_mismatch : ErrorCode::dtype_mismatch,
             fmt::format("{} holds {}; {} '{}' is {}", path, runtime::type_text(tensor.dtype, tensor.shape),
                         to_string(node.op), name_of(node), runtime::type_text(node.type.dtype, shape)));
}

/// Of each input that reaches a gather as its indices, through ops that keep values: how many there are to
/// choose from.
std::map<NodeId, std::int64_t> index_limits(const ir::Graph& graph, const runtime::Binding& binding) {
  std::map<NodeId, std::int64_t> limits;
  for (const ir::Node& node : graph.nodes) {
    if (info(node.op).relation != ir::Relation::gather) continue;
    const auto axis = static_cast<std::size_t>(ir::attr<ir::AxisAttr>(node).axis);
    const std::int64_t count =
        std::max<std::int64_t>(binding.value(graph[node.operands[0]].type.dims[axis]), 1);
    NodeId source = node.operands[1];
    while (graph[source].op == ir::Op::convert ||
           (info(graph[source].op).has(ir::Trait::movement) && graph[source].operands.size() == 1)) {
      source = graph[source].operands[0];
    }
    const auto [found, added] = limits.emplace(source, count);
    if (!added) found->second = std::min(found->second, count);
  }
  return limits;
}

void make_positive(runtime::HostTensor& tensor) {
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    const double value = tensor.get(i);
    tensor.set(i, value == 0 ? 1 : std::fabs(value));
  }
}

}  // namespace

Inputs make_inputs(const ir::Graph& graph, const std::vector<std::string>& files,
                   const std::vector<std::string>& dims, std::uint64_t seed, runtime::Values before) {
  Inputs result;
  const std::map<std::string, std::string> paths = files_by_name(graph, files);
  for (const auto& [name, path] : paths) result.values.emplace(name, runtime::read_npy(path));
  DimValues inferred;
  for (const ir::Node& node : graph.nodes) {
    if (!ir::is_given(node)) continue;
    if (const auto found = result.values.find(name_of(node)); found != result.values.end()) {
      infer_dims(node.type, found->second, inferred);
    }
  }
  result.dims = resolve_dims(graph, dims, inferred);

  const runtime::Binding binding(runtime::signature_of(graph, {}), result.dims);
  const std::map<NodeId, std::int64_t> limits = index_limits(graph, binding);
  const std::vector<bool> positive = wished_positive(graph);
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const ir::Node& node = graph[id];
    if (!ir::is_given(node)) continue;
    const std::string& name = name_of(node);
    const std::vector<std::int64_t> shape = binding.shape(node.type.dims);
    if (const auto found = result.values.find(name); found != result.values.end()) {
      check_type(node, paths.at(name), found->second, shape);
      continue;
    }
    if (const auto same = before.find(name); same != before.end() && is_floating(node.type.dtype) &&
                                             same->second.dtype == node.type.dtype &&
                                             same->second.shape == shape) {
      result.values.insert(before.extract(same));
      continue;
    }
    runtime::HostTensor tensor = runtime::HostTensor::make(node.type.dtype, shape);
    if (is_floating(node.type.dtype)) {
      runtime::random_fill_normal(tensor, seed, name, 1);
      if (positive[id]) make_positive(tensor);
    } else {
      const auto limit = limits.find(id);
      const bool index = limit != limits.end();
      const double count = index ? static_cast<double>(limit->second) : 8;
      runtime::random_fill(tensor, seed, name, positive[id] && !index ? 1 : 0, count);
    }
    result.values.emplace(name, std::move(tensor));
  }
  return result;
}

}  // namespace fuse::fusec
