// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/lower/emit_value.hpp"

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

namespace {
/// The coordinates of the same element. Dims of extent 1 come and go without arithmetic.
Coordinates reshaped(const Coordinates& at, const std::vector<Dim>& dims, const std::vector<Dim>& to) {
  if (ir::without_ones(dims) != ir::without_ones(to)) return unflatten(flatten(at, dims), to);
  Coordinates result;
  std::size_t next = 0;
  for (const Dim& dim : to) {
    while (!dim.is(1) && dims[next].is(1)) ++next;
    result.push_back(dim.is(1) ? Index(0) : at[next++]);
  }
  return result;
}
}  // namespace

bool ValueEmitter::Key::operator<(const Key& other) const {
  if (node != other.node) return node < other.node;
  if (predicate != other.predicate) return predicate < other.predicate;
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (const int order = compare(at[i], other.at[i])) return order < 0;
  }
  return false;
}

Coordinates ValueEmitter::broadcast_coordinates(const ir::Node& node, const Coordinates& at) const {
  const auto& map = ir::attr<ir::DimsAttr>(node).dims;
  const std::vector<Dim>& dims = graph_[node.operands[0]].type.dims;
  Coordinates result;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    result.push_back(dims[i].is(1) ? Index(0) : at[static_cast<std::size_t>(map[i])]);
  }
  return result;
}

std::vector<Dim> ValueEmitter::dims(NodeId node) const {
  std::vector<Dim> result;
  for (const Dim& dim : graph_[node].type.dims) result.push_back(rename_(dim));
  return result;
}

VarId ValueEmitter::value(NodeId node, const Coordinates& at, std::optional<VarId> predicate) {
  const Key wanted{node, at, predicate};
  std::vector<Key> work = {wanted};
  while (!work.empty()) {
    const Key key = work.back();
    if (known_.values.count(key) || step(key, work)) work.pop_back();
  }
  return known_.values.at(wanted);
}

std::optional<VarId> ValueEmitter::find(Key key, std::vector<Key>& work) const {
  if (const auto found = known_.values.find(key); found != known_.values.end()) return found->second;
  work.push_back(std::move(key));
  return std::nullopt;
}

namespace {
/// Along a dim of extent 1 there is one position. What asks for another, as the parts of a concat do of each
/// other's elements, leaves the value out.
bool same_position(const Coordinates& a, const Coordinates& b, const std::vector<Dim>& dims) {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!dims[i].is(1) && compare(a[i], b[i]) != 0) return false;
  }
  return true;
}
}  // namespace

bool ValueEmitter::step(const Key& key, std::vector<Key>& work) {
  const ir::Node& node = graph_[key.node];
  std::optional<VarId> result;
  if (const auto defined = defined_.find(key.node); defined != defined_.end()) {
    if (!same_position(defined->second.first, key.at, node.type.dims)) {
      throw Error(
          {.kind = ErrorKind::internal,
           .code = ErrorCode::internal,
           .message = graph_.value_name(key.node) + " is defined for another element than is asked for"});
    }
    result = defined->second.second;
  } else if (const auto kept = known_.kept.find(key.node);
             kept != known_.kept.end() && same_position(kept->second.at, key.at, node.type.dims)) {
    builder_.at(key.node);
    result = builder_.value(node.type.dtype, Load{kept->second.buffer, kept->second.index, {}});
  } else if (const auto buffer = buffers_.find(key.node); buffer != buffers_.end()) {
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
  if (result) known_.values.emplace(key, *result);
  return result.has_value();
}

VarId ValueEmitter::load(const Key& key, const ir::Node& node, BufferId buffer) {
  builder_.at(key.node);
  return builder_.value(node.type.dtype, Load{buffer, in_buffer(key.node, key.at), key.predicate});
}

Index ValueEmitter::in_buffer(NodeId node, const Coordinates& at) const {
  const auto box = boxes_.find(node);
  if (box == boxes_.end()) return in_buffer(node, flatten(at, dims(node)));
  Coordinates inside = at;
  for (std::size_t i = 0; i < at.size(); ++i) inside[i] = inside[i] - box->second.first[i];
  return flatten(inside, box->second.extents);
}

VarId ValueEmitter::source(const Key& key, const ir::Node& node) {
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

Coordinates ValueEmitter::begin_of(NodeId slice) const {
  Coordinates begin = ir::attr<ir::SliceAttr>(graph_[slice]).starts;
  for (const schedule::SliceStart& start : starts_) {
    if (start.node == slice) begin[start.axis] = start.factor * start.argument;
  }
  for (Dim& dim : begin) dim = rename_(dim);
  return begin;
}

std::optional<VarId> ValueEmitter::movement(const Key& key, const ir::Node& node, std::vector<Key>& work) {
  const NodeId operand = node.operands[0];
  const std::vector<Dim> operand_dims = dims(operand);
  Coordinates at(operand_dims.size());
  switch (info(node.op).relation) {
    case Relation::broadcast:
      at = broadcast_coordinates(node, key.at);
      break;
    case Relation::permute: {
      const auto& permutation = ir::attr<ir::DimsAttr>(node).dims;
      for (std::size_t i = 0; i < at.size(); ++i) at[static_cast<std::size_t>(permutation[i])] = key.at[i];
      break;
    }
    case Relation::reshape:
      at = reshaped(key.at, dims(key.node), operand_dims);
      break;
    case Relation::slice: {
      const auto& slice = ir::attr<ir::SliceAttr>(node);
      const Coordinates begin = begin_of(key.node);
      for (std::size_t i = 0; i < at.size(); ++i) at[i] = begin[i] + key.at[i] * slice.strides[i];
      break;
    }
    case Relation::reverse:
      at = reversed(key, node);
      break;
    case Relation::pad:
      return padded(key, node, work);
    case Relation::dynamic_slice:
      return dynamically_sliced(key, node, work);
    case Relation::update:
      return updated(key, node, work);
    case Relation::random:
      return random(key, node, work);
    case Relation::concat:
      return concatenation(key, node, work);
    case Relation::gather:
      return gathered(key, node, work);
    default:
      throw Error({.kind = ErrorKind::internal,
                   .code = ErrorCode::internal,
                   .message = graph_.value_name(key.node) + " ends a segment but stands inside one"});
  }
  return find({operand, at, key.predicate}, work);
}

/// Names the coordinates: named ones are known not to be negative, differences are taken apart by divisions.
Coordinates ValueEmitter::reversed(const Key& key, const ir::Node& node) {
  if (const auto found = known_.positions.find(key); found != known_.positions.end()) return found->second;
  const std::vector<Dim> extents = dims(key.node);
  Coordinates at = key.at;
  for (const std::int64_t dim : ir::attr<ir::DimsAttr>(node).dims) {
    const auto d = static_cast<std::size_t>(dim);
    if (extents[d].is(1)) continue;
    const std::string name = builder_.unique("r" + std::to_string(key.node));
    builder_.append(Bind{name, extents[d] - 1 - at[d]});
    at[d] = Dim::index(name, extents[d]);
  }
  known_.positions.emplace(key, at);
  return at;
}

std::optional<VarId> ValueEmitter::concatenation(const Key& key, const ir::Node& node,
                                                 std::vector<Key>& work) {
  const auto axis = static_cast<std::size_t>(ir::attr<ir::AxisAttr>(node).axis);
  const std::size_t count = node.operands.size();
  if (!known_.parts.count(key)) {
    builder_.at(key.node);
    std::vector<Part> parts(count);
    Dim end = 0;
    for (std::size_t p = 0; p < count; ++p) {
      parts[p].predicate = key.predicate;
      if (p > 0) {
        const VarId after = builder_.compute(Op::logical_not, boolean, {*parts[p - 1].below});
        parts[p].predicate = all_of(parts[p].predicate, after);
      }
      end = end + dims(node.operands[p])[axis];
      if (p + 1 == count) break;
      parts[p].below = builder_.value(boolean, IndexLess{key.at[axis], end});
      parts[p].predicate = all_of(parts[p].predicate, *parts[p].below);
    }
    known_.parts.emplace(key, std::move(parts));
  }
  const std::vector<Part>& parts = known_.parts.at(key);
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

std::optional<VarId> ValueEmitter::gathered(const Key& key, const ir::Node& node, std::vector<Key>& work) {
  const auto axis = ir::attr<ir::AxisAttr>(node).axis;
  const NodeId data = node.operands[0], indices = node.operands[1];
  const std::ptrdiff_t rank = graph_[indices].type.rank();
  const auto first = key.at.begin() + axis;
  if (!known_.positions.count(key)) {
    const auto index = find({indices, Coordinates(first, first + rank), key.predicate}, work);
    if (!index) return std::nullopt;
    builder_.at(key.node);
    const Dim extent = dims(data)[static_cast<std::size_t>(axis)];
    const std::string name = builder_.unique("g" + std::to_string(key.node));
    builder_.append(BindData{name, *index, extent});
    known_.positions.emplace(key, Coordinates{Dim::index(name, extent)});
  }
  Coordinates at(key.at.begin(), first);
  at.push_back(known_.positions.at(key)[0]);
  at.insert(at.end(), first + rank, key.at.end());
  return find({data, at, key.predicate}, work);
}

VarId ValueEmitter::all_of(std::optional<VarId> a, VarId b) {
  return a ? builder_.compute(Op::logical_and, boolean, {*a, b}) : b;
}

std::optional<VarId> ValueEmitter::in_box(const Key& key, const Coordinates& low,
                                          const std::vector<Dim>& sizes) {
  if (const auto found = known_.inside.find(key); found != known_.inside.end()) return found->second;
  builder_.at(key.node);
  const std::vector<Dim> extents = dims(key.node);
  std::optional<VarId> inside;
  for (std::size_t i = 0; i < low.size(); ++i) {
    if (!low[i].is(0)) {
      const VarId before = builder_.value(boolean, IndexLess{key.at[i], low[i]});
      inside = all_of(inside, builder_.compute(Op::logical_not, boolean, {before}));
    }
    if (low[i] + sizes[i] == extents[i]) continue;
    inside = all_of(inside, builder_.value(boolean, IndexLess{key.at[i], low[i] + sizes[i]}));
  }
  known_.inside.emplace(key, inside);
  return inside;
}

std::optional<VarId> ValueEmitter::padded(const Key& key, const ir::Node& node, std::vector<Key>& work) {
  Coordinates low;
  for (const Dim& dim : ir::attr<ir::PadAttr>(node).low) low.push_back(rename_(dim));
  const std::optional<VarId> inside = in_box(key, low, dims(node.operands[0]));
  Coordinates at = key.at;
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = at[i] - low[i];
  if (!inside) return find({node.operands[0], at, key.predicate}, work);
  if (!known_.predicates.count(key)) known_.predicates.emplace(key, all_of(key.predicate, *inside));
  const auto value = find({node.operands[0], at, known_.predicates.at(key)}, work);
  const auto filler = find({node.operands[1], {}, key.predicate}, work);
  if (!value || !filler) return std::nullopt;
  builder_.at(key.node);
  return builder_.compute(Op::select, node.type.dtype, {*inside, *value, *filler});
}

Coordinates ValueEmitter::starts(NodeId node) {
  const Key key{node, {}, std::nullopt};
  std::vector<Key> work;
  while (true) {
    if (const Coordinates* found = starts(key, graph_[node], 2, dims(graph_[node].operands[1]), work))
      return *found;
    while (!work.empty()) {
      const Key wanted = work.back();
      if (known_.values.count(wanted) || step(wanted, work)) work.pop_back();
    }
  }
}

const Coordinates* ValueEmitter::starts(const Key& key, const ir::Node& node, std::size_t first,
                                        const std::vector<Dim>& sizes, std::vector<Key>& work) {
  if (const auto found = known_.positions.find(key); found != known_.positions.end()) return &found->second;
  std::vector<VarId> values;
  for (std::size_t i = node.operands.size(); i-- > first;) {
    if (const auto var = find({node.operands[i], {}, key.predicate}, work)) values.push_back(*var);
  }
  if (values.size() + first != node.operands.size()) return nullptr;
  std::reverse(values.begin(), values.end());
  builder_.at(key.node);
  const std::vector<Dim> extents = dims(node.operands[0]);
  Coordinates at;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (extents[i] == sizes[i]) {
      at.emplace_back(0);
      continue;
    }
    const Dim positions = extents[i] - sizes[i] + 1;
    const std::string name = builder_.unique("s" + std::to_string(key.node));
    builder_.append(BindData{name, values[i], positions});
    at.push_back(Dim::index(name, positions));
  }
  return &known_.positions.emplace(key, std::move(at)).first->second;
}

std::optional<VarId> ValueEmitter::dynamically_sliced(const Key& key, const ir::Node& node,
                                                      std::vector<Key>& work) {
  const Coordinates* from = starts(key, node, 1, dims(key.node), work);
  if (!from) return std::nullopt;
  Coordinates at = key.at;
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = at[i] + (*from)[i];
  return find({node.operands[0], at, key.predicate}, work);
}

std::optional<VarId> ValueEmitter::updated(const Key& key, const ir::Node& node, std::vector<Key>& work) {
  const std::vector<Dim> sizes = dims(node.operands[1]);
  const Coordinates* from = starts(key, node, 2, sizes, work);
  if (!from) return std::nullopt;
  Coordinates at = key.at;
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = at[i] - (*from)[i];
  const std::optional<VarId> inside = in_box(key, *from, sizes);
  if (!inside) return find({node.operands[1], at, key.predicate}, work);
  if (!known_.predicates.count(key)) {
    const VarId outside = builder_.compute(Op::logical_not, boolean, {*inside});
    known_.outside.emplace(key, all_of(key.predicate, outside));
    known_.predicates.emplace(key, all_of(key.predicate, *inside));
  }
  const auto kept = find({node.operands[0], key.at, known_.outside.at(key)}, work);
  const auto update = find({node.operands[1], at, known_.predicates.at(key)}, work);
  if (!kept || !update) return std::nullopt;
  builder_.at(key.node);
  return builder_.compute(Op::select, node.type.dtype, {*inside, *update, *kept});
}

std::optional<VarId> ValueEmitter::random(const Key& key, const ir::Node& node, std::vector<Key>& work) {
  const auto offset = find({node.operands[1], {}, key.predicate}, work);
  const auto seed = find({node.operands[0], {}, key.predicate}, work);
  if (!seed || !offset) return std::nullopt;
  builder_.at(key.node);
  return builder_.value(node.type.dtype, Random{*seed, *offset, flatten(key.at, dims(key.node)),
                                                ir::attr<ir::RandomAttr>(node).stream});
}

}  // namespace fuse::codegen
