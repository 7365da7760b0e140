// SPDX-License-Identifier: Apache-2.0
#include "compile/signature_of.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>

#include "ir/graph/hash.hpp"
#include "runtime/execute/binding.hpp"

namespace fuse::runtime {
namespace {

std::vector<Slot> slots_of(const ir::Graph& graph) {
  std::vector<Slot> slots;
  for (const ir::Node& node : graph.nodes) {
    if (!ir::is_given(node)) continue;
    const Slot::Kind kind = node.op == ir::Op::input ? Slot::Kind::input : Slot::Kind::parameter;
    slots.push_back({kind, ir::attr<ir::NameAttr>(node).name, node.type.dtype, node.type.dims});
  }
  for (const ir::Output& output : graph.outputs) {
    const ir::Type& type = graph[output.node].type;
    slots.push_back({Slot::Kind::output, output.name, type.dtype, type.dims});
    if (!output.donated()) continue;
    const std::string& donor = ir::attr<ir::NameAttr>(graph[output.donor]).name;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].kind == Slot::Kind::input && slots[i].name == donor) slots.back().donor = i;
    }
  }
  return slots;
}

/// Inputs, parameters, and what the outputs are made from.
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

/// The conditions on the dims; `describe` names the op that needs them.
Signature::Op conditions_of(const ir::Graph& graph, const ir::Node& node) {
  Signature::Op op;
  op.dtype = node.type.dtype;
  op.dims = node.type.dims;
  op.other_dims = ir::dims_of(node.attr);
  const auto filled = [&](bool gathered, std::int64_t axis) {
    op.filled = {gathered, axis, graph[node.operands[0]].type.dims[static_cast<std::size_t>(axis)]};
  };
  if (const auto* slice = std::get_if<ir::SliceAttr>(&node.attr)) {
    const std::vector<Dim>& operand = graph[node.operands[0]].type.dims;
    for (std::size_t i = 0; i < slice->starts.size(); ++i) {
      op.slices.push_back({slice->starts[i], slice->limits[i], operand[i]});
    }
  } else if (node.op == ir::Op::gather) {
    filled(true, ir::attr<ir::AxisAttr>(node).axis);
  } else if (info(node.op).relation == ir::Relation::reduce && info(node.op).identity == ir::Identity::none) {
    filled(false, ir::attr<ir::DimsAttr>(node).dims.at(0));
  }
  return op;
}

void describe(const ir::Graph& graph, const ir::Node& node, Signature::Op& op) {
  op.op = std::string(to_string(node.op));
  for (const ir::NodeId operand : node.operands) op.shapes.push_back(ir::to_string(graph[operand].type));
  if (const auto* name = std::get_if<ir::NameAttr>(&node.attr)) op.shapes.push_back('\'' + name->name + '\'');
  op.location = graph.location(node);
  op.type = ir::to_string(node.type);
}

/// Checks everything that is required of the dims.
template <class F>
void for_each_dim(const Signature::Op& op, F&& f) {
  for (const Dim& dim : op.dims) f(dim);
  for (const Dim& dim : op.other_dims) f(dim);
  for (const Signature::Slice& slice : op.slices) {
    for (const Dim* dim : {&slice.start, &slice.limit, &slice.extent}) f(*dim);
  }
  if (op.filled) f(op.filled->extent);
}

bool asks_the_same(const Signature::Op& a, const Signature::Op& b) {
  if (a.dtype != b.dtype || a.dims.size() != b.dims.size() || a.other_dims.size() != b.other_dims.size() ||
      a.slices.size() != b.slices.size() || a.filled.has_value() != b.filled.has_value()) {
    return false;
  }
  std::vector<const Dim*> dims;
  for_each_dim(a, [&](const Dim& dim) { dims.push_back(&dim); });
  std::size_t next = 0;
  bool same = true;
  for_each_dim(b, [&](const Dim& dim) { same = same && *dims[next++] == dim; });
  return same;
}

/// The ops whose dims only run time can check, those that ask the same once.
class Asked {
 public:
  void add(const ir::Graph& graph, const ir::Node& node) {
    Signature::Op op = conditions_of(graph, node);
    bool constant = true;
    ir::Hasher hasher;
    hasher.add(static_cast<std::uint64_t>(op.dtype));
    for_each_dim(op, [&](const Dim& dim) {
      constant = constant && dim.is_constant();
      hasher.add(dim);
    });
    if (constant && holds(op)) return;
    const auto [begin, end] = by_hash_.equal_range(hasher.value());
    for (auto at = begin; at != end; ++at) {
      if (asks_the_same(ops[at->second], op)) return;
    }
    by_hash_.emplace(hasher.value(), ops.size());
    describe(graph, node, op);
    ops.push_back(std::move(op));
  }

  std::vector<Signature::Op> ops;

 private:
  bool holds(const Signature::Op& op) const {
    try {
      check_extents(op, nothing_);
      return true;
    } catch (const Error&) {
      return false;  // prepare says so
    }
  }

  std::unordered_multimap<std::uint64_t, std::size_t> by_hash_;
  const Binding nothing_ = Binding(Signature{}, {});
};

/// In the order in which a graph is walked, so that the first that has no value is the one that is reported.
void add_needs(const ir::Graph& graph, ir::NodeId id, std::set<std::string, std::less<>>& known,
               std::vector<Signature::Need>& needs) {
  const ir::Node& node = graph[id];
  const auto add = [&](const std::vector<Dim>& dims) {
    for (const Dim& dim : dims) {
      if (dim.is_constant()) continue;
      for (const Dim& symbol : dim.symbols()) {
        if (known.contains(symbol.name())) continue;
        known.emplace(symbol.name());
        needs.push_back({std::string(symbol.name()),
                         fmt::format("{} of type {}", graph.value_name(id), ir::to_string(node.type))});
      }
    }
  };
  add(node.type.dims);
  add(ir::dims_of(node.attr));
}

}  // namespace

Signature signature_of(const ir::Graph& graph, std::vector<ir::Guard> guards) {
  Signature signature{.name = graph.name,
                      .symbols = graph.symbols,
                      .slots = slots_of(graph),
                      .guards = std::move(guards),
                      .values = graph.nodes.size()};
  const std::vector<bool> live = live_nodes(graph);
  Asked asked;
  std::set<std::string, std::less<>> known;
  for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (!live[id]) continue;
    add_needs(graph, id, known, signature.needs);
    asked.add(graph, graph[id]);
  }
  signature.ops = std::move(asked.ops);
  return signature;
}

}  // namespace fuse::runtime
