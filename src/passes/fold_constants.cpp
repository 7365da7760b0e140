// SPDX-License-Identifier: Apache-2.0
#include "passes/fold_constants.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "eval/evaluate.hpp"

namespace fuse::ir {
namespace {

const ConstantAttr* constant_of(const Graph& graph, NodeId id) {
  return std::get_if<ConstantAttr>(&graph[id].attr);
}

struct Value {
  DType dtype;
  ConstantAttr constant;
};

/// One element of an op on constants of the given extents.
ConstantAttr evaluate_op(Op op, DType result, const std::vector<Value>& operands,
                         const std::vector<Dim>& dims = {}) {
  Graph one;
  Node last{
      .op = op, .attr = dims.empty() ? Attr{} : Attr{DimsAttr{{0}}}, .operands = {}, .type = {result, {}}};
  for (const Value& operand : operands) {
    last.operands.push_back(static_cast<NodeId>(one.nodes.size()));
    one.nodes.push_back(
        {.op = Op::constant, .attr = operand.constant, .operands = {}, .type = {operand.dtype, dims}});
  }
  one.nodes.push_back(std::move(last));
  one.outputs.push_back({"value", static_cast<NodeId>(operands.size())});
  const auto value =
      std::move(runtime::evaluate(one, {}, {}, runtime::Precision::same_type).outputs.at("value"));
  if (!value.is_real()) return {.real = 0, .integer = value.integer()[0]};
  const double real = value.real()[0];
  return {.real = std::isnan(real) ? std::numeric_limits<double>::quiet_NaN() : real, .integer = 0};
}

std::optional<ConstantAttr> fold_elements(const Graph& graph, const Node& node) {
  std::vector<Value> operands;
  for (const NodeId operand : node.operands) {
    const ConstantAttr* constant = constant_of(graph, operand);
    if (!constant) return std::nullopt;
    operands.push_back({graph[operand].type.dtype, *constant});
  }
  return evaluate_op(node.op, node.type.dtype, operands);
}

/// How many of the operands hold elements of the result; the others say where they lie.
std::size_t data_operands(const Node& node) {
  switch (info(node.op).relation) {
    case Relation::gather:
    case Relation::dynamic_slice:
      return 1;
    case Relation::update:
      return 2;
    default:
      return node.operands.size();
  }
}

std::optional<ConstantAttr> fold_movement(const Graph& graph, const Node& node) {
  const ConstantAttr* first = constant_of(graph, node.operands[0]);
  for (std::size_t i = 0; i < data_operands(node); ++i) {
    const ConstantAttr* other = constant_of(graph, node.operands[i]);
    if (!first || !other || !(*first == *other)) return std::nullopt;
  }
  return *first;
}

/// All sums of up to `count` times the value are multiples of its last bit that the type holds.
bool sums_are_exact(double value, std::int64_t count, DType dtype) {
  const double precision = dtype == f64 ? 0x1p53 : 0x1p24;
  const double greatest =
      dtype == f64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  if (!std::isfinite(value)) return false;
  int exponent = 0;
  double mantissa = std::fabs(std::frexp(value, &exponent));
  while (mantissa != std::floor(mantissa)) mantissa *= 2;
  return mantissa * static_cast<double>(count) <= precision &&
         std::fabs(value) <= greatest / static_cast<double>(count);
}

class UniformReduction {
 public:
  UniformReduction(const Node& node, const Type& operand, const ConstantAttr& value)
      : row_(info(node.op)), dtype_(operand.dtype), value_(value) {
    for (const std::int64_t dim : attr<DimsAttr>(node).dims) {
      const Dim& extent = operand.dims[static_cast<std::size_t>(dim)];
      empty_ |= extent.is(0);
      not_empty_ &= extent.min() > 0;
      if (extent.is_constant()) {
        count_ *= extent.constant();  // a type has at most 2^62 elements
      } else {
        counted_ = false;
      }
    }
  }

  std::optional<ConstantAttr> run() const {
    if (empty_) return over(0);
    if (counted_ && !is_floating(dtype_)) return times(count_);
    if (const auto value = settled()) return value;
    if (!counted_ || row_.combine != Op::add || !sums_are_exact(value_.real, count_, dtype_)) {
      return std::nullopt;
    }
    return ConstantAttr{.real = value_.real * static_cast<double>(count_), .integer = 0};
  }

 private:
  /// The reduction of so many elements, one after another.
  ConstantAttr over(std::int64_t extent) const {
    return evaluate_op(row_.op, dtype_, {{dtype_, value_}}, {extent});
  }
  ConstantAttr combine(const ConstantAttr& a, const ConstantAttr& b) const {
    return evaluate_op(row_.combine, dtype_, {{dtype_, a}, {dtype_, b}});
  }

  /// The value of one element where whatever is combined with it, in whatever order, changes nothing.
  std::optional<ConstantAttr> settled() const {
    const ConstantAttr none = over(0), one = over(1);
    if (!not_empty_ && !(one == none)) return std::nullopt;
    // What combines commutes: the other order needs no look.
    const bool settles = combine(one, value_) == one && combine(one, one) == one && combine(one, none) == one;
    return settles ? std::optional(one) : std::nullopt;
  }

  /// Combining integers and bools is associative: many by doubling.
  ConstantAttr times(std::int64_t count) const {
    constexpr std::int64_t few = 4096;
    if (count <= few) return over(count);
    ConstantAttr result = over(0), power = value_;
    for (; count > 0; count /= 2) {
      if (count % 2 != 0) result = combine(result, power);
      power = combine(power, power);
    }
    return result;
  }

  const OpInfo& row_;
  DType dtype_;
  ConstantAttr value_;
  std::int64_t count_ = 1;  ///< elements that become one
  bool counted_ = true, empty_ = false, not_empty_ = true;
};

std::optional<ConstantAttr> fold_reduction(const Graph& graph, const Node& node) {
  const ConstantAttr* value = constant_of(graph, node.operands[0]);
  if (!value) return std::nullopt;
  if (info(node.op).identity == Identity::none) return ConstantAttr{};  // the first of equals
  return UniformReduction(node, graph[node.operands[0]].type, *value).run();
}

std::optional<ConstantAttr> fold_source(const Node& node) {
  if (const auto* size = std::get_if<DimAttr>(&node.attr); size && size->dim.is_constant()) {
    return ConstantAttr{.real = 0, .integer = size->dim.constant()};
  }
  const auto* iota = std::get_if<AxisAttr>(&node.attr);
  if (iota && node.type.dims[static_cast<std::size_t>(iota->axis)].is(1)) return ConstantAttr{};
  return std::nullopt;
}

}  // namespace

std::optional<ConstantAttr> folded(const Graph& graph, const Node& node) {
  const OpInfo& row = info(node.op);
  if (row.has(Trait::movement)) return fold_movement(graph, node);
  switch (row.relation) {
    case Relation::none:
      return fold_source(node);
    case Relation::identity:
      return fold_elements(graph, node);
    case Relation::reduce:
      return fold_reduction(graph, node);
    default:
      return std::nullopt;
  }
}

Graph fold_constants(const Graph& graph) {
  Graph result = graph;
  for (Node& node : result.nodes) {
    const std::optional<ConstantAttr> value = folded(result, node);
    if (!value) continue;
    node.op = Op::constant;
    node.attr = *value;
    node.operands.clear();
  }
  return result;
}

}  // namespace fuse::ir
