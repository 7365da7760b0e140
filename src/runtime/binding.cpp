// SPDX-License-Identifier: Apache-2.0
#include "runtime/binding.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/nearest.hpp"
#include "runtime/host_tensor.hpp"

namespace fuse::runtime {
namespace {

/// Inputs, parameters, and what the outputs are made of.
std::vector<bool> live_nodes(const ir::Graph& graph) {
  std::vector<bool> live(graph.nodes.size(), false);
  for (const ir::Output& output : graph.outputs) live[output.node] = true;
  for (std::size_t id = graph.nodes.size(); id-- > 0;) {
    const ir::Node& node = graph.nodes[id];
    if (ir::is_given(node)) live[id] = true;
    if (!live[id]) continue;
    for (const ir::NodeId operand : node.operands) live[operand] = true;
  }
  return live;
}

std::vector<Dim> dims_of(const ir::Node& node) {
  std::vector<Dim> dims = ir::dims_of(node.attr);
  dims.insert(dims.begin(), node.type.dims.begin(), node.type.dims.end());
  return dims;
}

std::vector<std::string> names_of(const std::vector<ir::Symbol>& symbols) {
  std::vector<std::string> names;
  for (const ir::Symbol& symbol : symbols) names.push_back(symbol.name);
  return names;
}

void check_range(const ir::Symbol& symbol, std::int64_t value) {
  if (symbol.range.min <= value && value <= symbol.range.max) return;
  throw Error({.code = ErrorCode::invalid_extent,
               .message = fmt::format("dim {} = {} is outside of its range [{}, {}]", symbol.name, value,
                                      symbol.range.min, symbol.range.max)});
}

void check_known(const ir::Graph& graph, const DimValues& values) {
  const std::vector<std::string> known = names_of(graph.symbols);
  for (const auto& [name, value] : values) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw Error({.code = ErrorCode::unknown_name,
                 .message = fmt::format("graph '{}' has no dim {}", graph.name, in_quotes(name)),
                 .hint = known.empty() ? "it has no dims: prepare() takes no values"
                                       : ir::nearest_names(known, name)});
  }
}

void check_bound(const ir::Graph& graph, const DimValues& values) {
  std::vector<bool> live = live_nodes(graph);
  for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (!live[id]) continue;
    for (const Dim& dim : dims_of(graph[id])) {
      if (dim.is_constant()) continue;
      for (const Dim& symbol : dim.symbols()) {
        if (values.contains(symbol.name())) continue;
        throw Error({.code = ErrorCode::unbound,
                     .message = fmt::format("dim {} has no value; {} of type {} needs it", symbol.name(),
                                            graph.value_name(id), ir::to_string(graph[id].type)),
                     .hint = fmt::format("prepare({{{{\"{}\", ...}}}})", symbol.name())});
      }
    }
  }
}

class NodeCheck {
 public:
  NodeCheck(const ir::Graph& graph, const Binding& binding, ir::NodeId id)
      : graph_(graph), node_(graph[id]), binding_(binding) {}

  void run() const {
    std::vector<std::int64_t> shape;
    try {
      for (const Dim& dim : dims_of(node_)) binding_.value(dim);
      shape = binding_.shape(node_.type.dims);
    } catch (const Error& error) {
      fail(node_.type.dims, error.info().message, false);
    }
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] < 0) {
        fail({node_.type.dims[i]},
             fmt::format("extent {} of the result is {}", node_.type.dims[i].to_string(), shape[i]));
      }
    }
    const auto count = checked_element_count(shape, node_.type.dtype);
    if (!count) {
      fail(node_.type.dims,
           fmt::format("the bytes of a result of type {} overflow 63 bits", ir::to_string(node_.type)));
    }
    if (std::holds_alternative<ir::SliceAttr>(node_.attr)) check_slice();
    if (*count == 0) return;
    if (node_.op == ir::Op::gather) check_gather(*count);
    if (info(node_.op).relation == ir::Relation::reduce && info(node_.op).identity == ir::Identity::none) {
      check_position(*count);
    }
  }

 private:
  [[noreturn]] void fail(const std::vector<Dim>& dims, std::string message, bool add_values = true,
                         std::string hint = {}) const {
    std::vector<std::string> shapes;
    for (const ir::NodeId operand : node_.operands) shapes.push_back(ir::to_string(graph_[operand].type));
    if (const auto* name = std::get_if<ir::NameAttr>(&node_.attr)) shapes.push_back('\'' + name->name + '\'');
    if (add_values) message += binding_.at(dims);
    throw Error({.code = ErrorCode::invalid_extent,
                 .message = std::move(message),
                 .op = std::string(to_string(node_.op)),
                 .shapes = std::move(shapes),
                 .location = graph_.location(node_),
                 .hint = std::move(hint)});
  }

  /// An index is clamped into range, which needs a range.
  void check_gather(std::int64_t count) const {
    const std::int64_t axis = ir::attr<ir::AxisAttr>(node_).axis;
    const Dim& extent = graph_[node_.operands[0]].type.dims[static_cast<std::size_t>(axis)];
    if (binding_.value(extent) != 0) return;
    fail({extent},
         fmt::format("axis {} is empty and the result has {} elements: there is nothing to gather", axis,
                     count),
         true, extent.name().empty() ? std::string() : fmt::format("give {} a minimum of 1", extent.name()));
  }

  /// argmax and argmin find an element, which must exist.
  void check_position(std::int64_t count) const {
    const std::int64_t axis = ir::attr<ir::DimsAttr>(node_).dims.at(0);
    const Dim& extent = graph_[node_.operands[0]].type.dims[static_cast<std::size_t>(axis)];
    if (binding_.value(extent) != 0) return;
    fail({extent}, fmt::format("the reduced dim {} is empty and the result has {} elements", axis, count),
         true, extent.name().empty() ? std::string() : fmt::format("give {} a minimum of 1", extent.name()));
  }

  void check_slice() const {
    const auto& slice = ir::attr<ir::SliceAttr>(node_);
    const std::vector<Dim>& operand = graph_[node_.operands[0]].type.dims;
    for (std::size_t i = 0; i < slice.starts.size(); ++i) {
      const std::int64_t start = binding_.value(slice.starts[i]), limit = binding_.value(slice.limits[i]);
      const std::int64_t extent = binding_.value(operand[i]);
      if (0 <= start && start <= limit && limit <= extent) continue;
      fail({slice.starts[i], slice.limits[i], operand[i]},
           fmt::format("elements [{}, {}) of axis {}, which has {}", start, limit, i, extent));
    }
  }

  const ir::Graph& graph_;
  const ir::Node& node_;
  const Binding& binding_;
};

}  // namespace

Binding::Binding(const ir::Graph& graph, const DimValues& values) : values_(values) {
  check_known(graph, values);
  for (const ir::Symbol& symbol : graph.symbols) {
    if (const auto found = values.find(symbol.name); found != values.end())
      check_range(symbol, found->second);
  }
  check_bound(graph, values);
}

std::int64_t Binding::value(const Dim& dim) const {
  if (dim.is_constant()) return dim.constant();
  try {
    return dim.evaluate([&](std::string_view name) {
      const auto found = values_.find(name);
      if (found != values_.end()) return found->second;
      throw Error({.kind = ErrorKind::internal,
                   .code = ErrorCode::internal,
                   .message = fmt::format("'{}' in {} is no symbol of the graph", name, dim.to_string())});
    });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_extent) throw;
    throw Error({.code = ErrorCode::invalid_extent,
                 .message = fmt::format("{}: {}{}", dim.to_string(), error.info().message, at({dim}))});
  }
}

std::vector<std::int64_t> Binding::shape(const std::vector<Dim>& dims) const {
  std::vector<std::int64_t> shape;
  shape.reserve(dims.size());
  for (const Dim& dim : dims) shape.push_back(value(dim));
  return shape;
}

std::string Binding::at(const std::vector<Dim>& dims) const {
  std::vector<std::string_view> names;
  std::vector<Dim> symbols;
  for (const Dim& dim : dims) {
    for (const Dim& symbol : dim.symbols()) symbols.push_back(symbol);
  }
  for (const Dim& symbol : symbols) names.push_back(symbol.name());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string text;
  for (const std::string_view name : names) {
    const auto found = values_.find(name);
    if (found == values_.end()) continue;
    text += fmt::format("{}{} = {}", text.empty() ? " at " : ", ", name, found->second);
  }
  return text;
}

void check_extents(const ir::Graph& graph, const Binding& binding) {
  const std::vector<bool> live = live_nodes(graph);
  for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (live[id]) NodeCheck(graph, binding, id).run();
  }
}

void check_guards(const std::vector<analysis::Guard>& guards, const Binding& binding) {
  for (const analysis::Guard& guard : guards) {
    const auto& [kind, left, right] = guard.relation;
    const auto refuse = [&](ErrorCode code, std::string message, std::string hint) {
      throw Error(
          {.code = code, .message = std::move(message), .location = guard.location, .hint = std::move(hint)});
    };
    for (const Dim& side : {left, right}) {
      for (const Dim& symbol : side.symbols()) {
        if (binding.values().contains(symbol.name())) continue;
        refuse(ErrorCode::unbound,
               fmt::format("dim {} has no value; the guard {} needs it", symbol.name(),
                           guard.relation.to_string()),
               fmt::format("prepare({{{{\"{}\", ...}}}})", symbol.name()));
      }
    }
    const std::int64_t a = binding.value(left), b = binding.value(right);
    if (guard.relation.holds(a, b)) continue;
    refuse(ErrorCode::violated_guard,
           fmt::format("the guard {} does not hold: its sides are {} and {}{}", guard.relation.to_string(), a,
                       b, binding.at({left, right})),
           guard.needed_by.empty() ? "the graph assumes it" : guard.needed_by + " needs it");
  }
}

}  // namespace fuse::runtime
