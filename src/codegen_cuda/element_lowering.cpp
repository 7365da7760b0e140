// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/element_lowering.hpp"

#include <algorithm>

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::NodeId;
using ir::Op;
using ir::Relation;

Index flatten(const Coordinates& at, const std::vector<Dim>& dims) {
  Index flat = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) flat = flat * dims[i] + at[i];
  return flat;
}

Coordinates unflatten(const Index& flat, const std::vector<Dim>& dims) {
  Coordinates at(dims.size(), Index(0));
  // Nothing is ever computed at coordinates of an empty shape, and its strides divide nothing.
  if (std::any_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is(0); })) return at;
  Dim stride = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i].is(1)) continue;
    // The outermost coordinate needs no remainder: the flat index stays below the product.
    const bool outermost = std::all_of(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(i),
                                       [](const Dim& dim) { return dim.is(1); });
    at[i] = outermost ? flat / stride : flat / stride % dims[i];
    stride = stride * dims[i];
  }
  return at;
}

bool ElementLowering::Key::operator<(const Key& other) const {
  if (node != other.node) return node < other.node;
  if (predicate != other.predicate) return predicate < other.predicate;
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (const int order = compare(at[i], other.at[i])) return order < 0;
  }
  return false;
}

std::vector<Dim> ElementLowering::dims(NodeId node) const {
  std::vector<Dim> result;
  for (const Dim& dim : graph_[node].type.dims) result.push_back(rename_(dim));
  return result;
}

VarId ElementLowering::value(NodeId node, const Coordinates& at) {
  const Key wanted{node, at, std::nullopt};
  std::vector<Key> work = {wanted};
  while (!work.empty()) {
    const Key key = work.back();
    if (memo_.count(key) || step(key, work)) work.pop_back();
  }
  return memo_.at(wanted);
}

std::optional<VarId> ElementLowering::find(Key key, std::vector<Key>& work) const {
  if (const auto found = memo_.find(key); found != memo_.end()) return found->second;
  work.push_back(std::move(key));
  return std::nullopt;
}

bool ElementLowering::step(const Key& key, std::vector<Key>& work) {
  const ir::Node& node = graph_[key.node];
  std::optional<VarId> result;
  if (const auto buffer = buffers_.find(key.node); buffer != buffers_.end()) {
    result = load(key, node, buffer->second);
  } else if (info(node.op).relation == Relation::none) {
    result = source(key, node);
  } else if (info(node.op).relation == Relation::identity) {
    std::vector<VarId> operands;
    for (auto operand = node.operands.rbegin(); operand != node.operands.rend(); ++operand) {
      if (const auto var = find({*operand, key.at, key.predicate}, work)) operands.push_back(*var);
    }
    if (operands.size() == node.operands.size()) {
      std::reverse(operands.begin(), operands.end());
      builder_.at(key.node);
      result = builder_.compute(node.op, node.type.dtype, operands);
    }
  } else {
    result = movement(key, node, work);
  }
  if (result) memo_.emplace(key, *result);
  return result.has_value();
}

VarId ElementLowering::load(const Key& key, const ir::Node& node, BufferId buffer) {
  builder_.at(key.node);
  return builder_.value(node.type.dtype, Load{buffer, flatten(key.at, dims(key.node)), key.predicate});
}

VarId ElementLowering::source(const Key& key, const ir::Node& node) {
  builder_.at(key.node);
  if (const auto* constant = std::get_if<ir::ConstantAttr>(&node.attr)) {
    return builder_.value(node.type.dtype, Constant{constant->real, constant->integer});
  }
  const Index index = std::holds_alternative<ir::AxisAttr>(node.attr)
                          ? key.at[static_cast<std::size_t>(ir::attr<ir::AxisAttr>(node).axis)]
                          : rename_(ir::attr<ir::DimAttr>(node).dim);
  if (is_integer(node.type.dtype)) return builder_.value(node.type.dtype, IndexValue{index});
  return builder_.compute(Op::convert, node.type.dtype, {builder_.value(i64, IndexValue{index})});
}

std::optional<VarId> ElementLowering::movement(const Key& key, const ir::Node& node, std::vector<Key>& work) {
  const NodeId operand = node.operands[0];
  const std::vector<Dim> operand_dims = dims(operand);
  Coordinates at(operand_dims.size());
  switch (info(node.op).relation) {
    case Relation::broadcast: {
      const auto& map = ir::attr<ir::DimsAttr>(node).dims;
      for (std::size_t i = 0; i < at.size(); ++i) {
        at[i] = operand_dims[i].is(1) ? Index(0) : key.at[static_cast<std::size_t>(map[i])];
      }
      break;
    }
    case Relation::permute: {
      const auto& permutation = ir::attr<ir::DimsAttr>(node).dims;
      for (std::size_t i = 0; i < at.size(); ++i) at[static_cast<std::size_t>(permutation[i])] = key.at[i];
      break;
    }
    case Relation::reshape:
      at = unflatten(flatten(key.at, dims(key.node)), operand_dims);
      break;
    case Relation::slice: {
      const auto& slice = ir::attr<ir::SliceAttr>(node);
      for (std::size_t i = 0; i < at.size(); ++i)
        at[i] = rename_(slice.starts[i]) + key.at[i] * slice.strides[i];
      break;
    }
    case Relation::concat:
      return concatenation(key, node, work);
    case Relation::gather:
      return gathered(key, node, work);
    default:
      throw Error({.kind = ErrorKind::internal,
                   .code = ErrorCode::internal,
                   .message = graph_.value_name(key.node) + " ends a piece but stands inside one"});
  }
  return find({operand, at, key.predicate}, work);
}

std::optional<VarId> ElementLowering::concatenation(const Key& key, const ir::Node& node,
                                                    std::vector<Key>& work) {
  const auto axis = static_cast<std::size_t>(ir::attr<ir::AxisAttr>(node).axis);
  const std::size_t count = node.operands.size();
  if (!parts_.count(key)) {
    builder_.at(key.node);
    std::vector<Part> parts(count);
    Dim end = 0;
    const auto both = [&](std::optional<VarId> a, VarId b) {
      return a ? builder_.compute(Op::logical_and, boolean, {*a, b}) : b;
    };
    for (std::size_t p = 0; p < count; ++p) {
      parts[p].predicate = key.predicate;
      if (p > 0) {
        const VarId after = builder_.compute(Op::logical_not, boolean, {*parts[p - 1].below});
        parts[p].predicate = both(parts[p].predicate, after);
      }
      end = end + dims(node.operands[p])[axis];
      if (p + 1 == count) break;
      parts[p].below = builder_.value(boolean, IndexLess{key.at[axis], end});
      parts[p].predicate = both(parts[p].predicate, *parts[p].below);
    }
    parts_.emplace(key, std::move(parts));
  }
  const std::vector<Part>& parts = parts_.at(key);
  std::vector<VarId> values;
  Dim start = 0;
  for (std::size_t p = 0; p < count; ++p) {
    Coordinates at = key.at;
    at[axis] = at[axis] - start;
    if (const auto var = find({node.operands[p], at, parts[p].predicate}, work)) values.push_back(*var);
    start = start + dims(node.operands[p])[axis];
  }
  if (values.size() != count) return std::nullopt;
  builder_.at(key.node);
  VarId result = values.back();
  for (std::size_t p = count - 1; p-- > 0;) {
    result = builder_.compute(Op::select, node.type.dtype, {*parts[p].below, values[p], result});
  }
  return result;
}

std::optional<VarId> ElementLowering::gathered(const Key& key, const ir::Node& node, std::vector<Key>& work) {
  const auto axis = ir::attr<ir::AxisAttr>(node).axis;
  const NodeId data = node.operands[0], indices = node.operands[1];
  const std::ptrdiff_t rank = graph_[indices].type.rank();
  const auto first = key.at.begin() + axis;
  if (!positions_.count(key)) {
    const auto index = find({indices, Coordinates(first, first + rank), key.predicate}, work);
    if (!index) return std::nullopt;
    builder_.at(key.node);
    const Dim extent = dims(data)[static_cast<std::size_t>(axis)];
    const std::string name = builder_.unique("g" + std::to_string(key.node));
    builder_.append(BindData{name, *index, extent});
    positions_.emplace(key, Dim::index(name, extent));
  }
  Coordinates at(key.at.begin(), first);
  at.push_back(positions_.at(key));
  at.insert(at.end(), first + rank, key.at.end());
  return find({data, at, key.predicate}, work);
}

}  // namespace fuse::codegen
